// SPDX-License-Identifier: GPL-2.0-or-later
//
// A chip with what the call tree is narrowed to, and the way back: one owner, one Python line, one block's place.

import { h, replace } from '../base/dom.js';

/** @typedef {import('../runs/page.js').Page} Page */

const KINDS = { owner: 'owner', line: 'line', cell: 'allocated by' };

/** @param {Page} page @param {boolean} isApart it is not in the section of the call tree, and leads there */
export function chip(page, isApart) {
    const element = h('span', { class: 'chips', role: 'status' });
    return {
        element,
        update() {
            const { only } = page;
            if (!only) return replace(element);
            const what = `${KINDS[only.dimension]} ${only.name}`;
            const remove = h('button', { type: 'button', class: 'chip', 'aria-label': `The call tree shows only ${what}: reset`, onclick: () => page.narrow(null) }, `only ${what} `, h('span', { 'aria-hidden': 'true' }, '✕'));
            replace(element, isApart && h('a', { href: '#calls' }, 'call tree'), isApart && ': ', remove);
        },
    };
}
