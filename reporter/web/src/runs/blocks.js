// SPDX-License-Identifier: GPL-2.0-or-later
//
// Single blocks: which are live at a time, and who allocated them.

/** @typedef {import('./run.js').Run} Run */

/** The blocks that are live at a time, the largest first. @param {Run} run @param {number} now @returns {number[]} */
export function liveBlocks(run, now) {
    const { begin, end, bytes } = run.blocks;
    const live = [];
    for (let block = 0; block < begin.length; block++) {
        // `end` is the time of the free plus one; freed and allocated within one tick of the clock counts as gone.
        if (begin[block] <= now && (!end[block] || end[block] - 1 > now)) live.push(block);
    }
    return live.sort((a, b) => bytes[b] - bytes[a]);
}

/** The first frame that is not the recorder's own. @param {Run} run @param {number} cell */
export const allocatorOf = (run, cell) => run.stack(cell).find((label) => !label.includes('vgpreload_')) || '(no stack)';

/** The line of Python that a cell's memory is due to; "" where there is none. @param {Run} run @param {number} cell */
export const lineOf = (run, cell) => (run.head.lines.path[run.cells.line[cell]] ? run.head.lines.label[run.cells.line[cell]] : '');
