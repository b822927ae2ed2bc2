// SPDX-License-Identifier: GPL-2.0-or-later
//
// What each kind of page does when it is opened.

import { type PageData, unpack } from './runs/data.js';

export const unpacked = () => unpack(document.getElementById('data')?.textContent ?? '');

export const madeBy = ({ generator }: PageData) =>
    document.querySelector('footer')?.prepend(Object.assign(document.createElement('p'), { textContent: `Made by ${generator}.` }));

export function start(open: (place: HTMLElement) => Promise<void>) {
    const place = document.getElementById('page');
    if (!place) return;
    open(place).catch((error: unknown) => {
        const text = `The rest of this page cannot be shown: ${String(error)}`;
        place.append(Object.assign(document.createElement('p'), { role: 'alert', className: 'problem', textContent: text }));
        console.error(error);
    });
}
