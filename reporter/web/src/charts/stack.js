// SPDX-License-Identifier: GPL-2.0-or-later
//
// Who allocated a block: its stack, in a box below the view that the block was chosen in.

import { h, replace } from '../base/dom.js';

/** A box that is hidden while no block is chosen. */
export function stackBox() {
    const frames = h('ol', { class: 'stack' });
    const element = h('div', { class: 'detail', 'aria-live': 'polite', hidden: true }, h('h3', {}, 'Allocated by'), frames);
    return {
        element,
        /** @param {import('../runs/run.js').Run} run @param {number} block place among the run's blocks; -1: none */
        show(run, block) {
            element.hidden = block < 0;
            replace(frames, ...(block < 0 ? [] : run.stack(run.blocks.cell[block]).map((label) => h('li', {}, label))));
        },
    };
}
