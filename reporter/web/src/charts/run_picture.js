// SPDX-License-Identifier: GPL-2.0-or-later
//
// Head of a picture of a run: command, view, and the statements of the first screen, if it is of their moment.

import { Picture } from './picture.js';

/** @typedef {import('../runs/page.js').Page} Page */

/** A picture with its head. @param {Page} page @param {string} subtitle */
export function begun(page, subtitle) {
    const { data, run } = page;
    const picture = new Picture();
    const isAll = page.moment === run.mainMoment && page.other === null && !page.only && !data.difference;
    const summary = run.parts.together?.summary ?? run.head.summary;
    const texts = data.difference ? data.difference.headline.map((text) => ({ text, severity: 'note' })) : isAll ? summary : [];
    picture.head(data.title, subtitle, texts);
    return picture;
}

/** Its file. @param {Page} page @param {Picture} picture @param {string} what */
export const finished = (page, picture, what) => picture.file(`${page.data.title}: ${what}`);
