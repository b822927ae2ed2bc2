// SPDX-License-Identifier: GPL-2.0-or-later
//
// Call stack of a block, in a box below the view that the block was chosen in.

import { h, replace } from '../base/dom.js';

/** @typedef {import('../runs/run.js').Run} Run */

/** @param {Run} run @param {number} frame */
function line(run, frame) {
    return h('li', { title: run.around(frame) || null }, run.head.frames.label[frame]);
}

/** A box that is hidden while no block is chosen. */
export function stackBox() {
    const frames = h('ol', { class: 'stack' });
    const element = h('div', { class: 'detail', 'aria-live': 'polite', hidden: true }, h('h3', {}, 'Allocated by'), frames);
    return {
        element,
        /** @param {Run} run @param {number} block place among the run's blocks; -1: none */
        show(run, block) {
            element.hidden = block < 0;
            replace(frames, ...(block < 0 ? [] : run.frames(run.blocks.cell[block]).map((frame) => line(run, frame))));
        },
    };
}
