// SPDX-License-Identifier: GPL-2.0-or-later
//
// Steps of the device's allocators: each block of the device that is on the page comes and, mostly, goes.
// Records are ordered by their places: a millisecond may have many.

/** @typedef {import('./run.js').Run} Run */
/** @typedef {{place: number, block: number, isEnd: boolean, time: number}} Step */

/** In their order. @param {Run} run @returns {Step[]} */
export function stepsOf(run) {
    const { came, went, begin, end, cell } = run.blocks;
    /** @type {Step[]} */
    const steps = [];
    for (let block = 0; came && went && block < cell.length; block++) {
        if (run.side[cell[block]] !== 1) continue;
        steps.push({ place: came[block], block, isEnd: false, time: begin[block] });
        if (went[block]) steps.push({ place: went[block] - 1, block, isEnd: true, time: end[block] - 1 });
    }
    steps.sort((a, b) => a.place - b.place);
    return steps.filter((step, i) => !isRenamed(run, step, steps[i + 1]) && !isRenamed(run, steps[i - 1], step));
}

/**
 * A block's end and the record right behind it, of the same place, may say what a tensor turned out to be for: no allocator did
 * anything then.
 * @param {Run} run @param {Step|undefined} before @param {Step|undefined} after
 */
function isRenamed(run, before, after) {
    if (!before?.isEnd || !after || after.isEnd || after.place !== before.place + 1) return false;
    const { address, bytes, cell } = run.blocks;
    const [a, b] = [before.block, after.block];
    const { node, owner, role } = run.cells;
    return address[a] === address[b] && bytes[a] === bytes[b] && node[cell[a]] === node[cell[b]] && owner[cell[a]] === owner[cell[b]] && role[cell[a]] !== role[cell[b]];
}

/** How many steps there had been by a time. @param {Step[]} steps @param {number} now */
export function stepsBy(steps, now) {
    let [low, high] = [0, steps.length];
    while (low < high) {
        const middle = (low + high) >> 1;
        if (steps[middle].time <= now) low = middle + 1;
        else high = middle;
    }
    return low;
}
