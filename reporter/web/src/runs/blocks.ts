// SPDX-License-Identifier: GPL-2.0-or-later
//
// Single blocks: which are live at a time, and which lie in others.

import type { Run } from './run.js';

/** The blocks that are live at a time, the largest first. */
export function liveBlocks(run: Run, now: number) {
    const { begin, end, bytes } = run.blocks;
    const live: number[] = [];
    for (let block = 0; block < begin.length; block++) {
        // `end` is the time of the free plus one; freed and allocated within one tick of the clock counts as gone.
        if (bytes[block] && begin[block] <= now && (!end[block] || end[block] - 1 > now)) live.push(block);
    }
    return live.sort((a, b) => bytes[b] - bytes[a]);
}

/** Its address is a handle, and says nothing of where the memory lies. */
const isHandle = (run: Run, block: number) => run.head.kinds[run.cells.kind[run.blocks.cell[block]]].is_handle;

/**
 * Blocks with those that lie in them, such as the tensors in a segment: what is inside is not to be counted again. In no
 * particular order, but for what is `inside`, which is by address.
 */
export function nested(run: Run, blocks: number[]) {
    const { address, bytes, cell } = run.blocks;
    const sideOf = (block: number) => run.side[cell[block]];
    const processOf = (block: number) => run.cells.process[cell[block]];
    const placed = blocks.filter((block) => !isHandle(run, block));
    // An outer block begins where its first inner one does: the larger one comes first.
    placed.sort(
        (a, b) =>
            sideOf(a) - sideOf(b) ||
            processOf(a) - processOf(b) ||
            (address[a] < address[b] ? -1 : address[a] > address[b] ? 1 : bytes[b] - bytes[a]),
    );
    const outer: { block: number; inside: number[] }[] = [];
    for (const block of placed) {
        const last = outer.at(-1);
        const isApart = !last || sideOf(last.block) !== sideOf(block) || processOf(last.block) !== processOf(block);
        if (!isApart && address[block] < address[last.block] + BigInt(bytes[last.block])) last.inside.push(block);
        else outer.push({ block, inside: [] });
    }
    for (const block of blocks) if (isHandle(run, block)) outer.push({ block, inside: [] });
    return outer;
}
