// SPDX-License-Identifier: GPL-2.0-or-later
//
// The lives of the largest blocks, stacked: a block lies on those that were allocated before it and sinks when one of them
// is freed. A block's outline is a list of steps, so drawing costs what changes, not what there is.

import type { Run, Side } from './run.js';

/** `floor[i]` from the time `at[i]` on. */
export type Life = { block: number; begin: number; end: number; bytes: number; at: Float64Array; floor: Float64Array };
export type Lives = { lives: Life[]; end: number; top: number; least: number; nLeftOut: number };

/** The largest first. */
function blocksOf(run: Run, side: Side) {
    const { begin, bytes, cell } = run.blocks;
    const wanted = side === 'device' ? 1 : 0;
    const blocks: number[] = [];
    for (let block = 0; block < begin.length; block++) {
        // A segment is there for what lies in it, and would hide it.
        if (run.side[cell[block]] === wanted && run.head.owners[run.cells.owner[cell[block]]].name !== 'cache') blocks.push(block);
    }
    return blocks.sort((a, b) => bytes[b] - bytes[a]);
}

/** Births and deaths in order; `index` is the block's in the list. `blocks`: by birth. */
function eventsOf(run: Run, blocks: number[]) {
    const { begin, end } = run.blocks;
    const events: { time: number; isEnd: boolean; index: number }[] = [];
    blocks.forEach((block, index) => {
        events.push({ time: begin[block], isEnd: false, index });
        if (end[block]) events.push({ time: end[block] - 1, isEnd: true, index });
    });
    // A block that is freed within its first tick is never seen: its end is not before its beginning.
    return events.sort((a, b) => a.time - b.time || a.index - b.index || Number(a.isEnd) - Number(b.isEnd));
}

/** How each block lies on those below it, and how high the pile was at most. `blocks`: by birth. */
function piled(run: Run, blocks: number[]) {
    const steps = blocks.map((): { at: number[]; floor: number[] } => ({ at: [], floor: [] }));
    const pile: number[] = [];
    let height = 0;
    let top = 0;
    for (const { time, isEnd, index } of eventsOf(run, blocks)) {
        const size = run.blocks.bytes[blocks[index]];
        if (!isEnd) {
            steps[index].at.push(time);
            steps[index].floor.push(height);
            pile.push(index);
            height += size;
            top = Math.max(top, height);
            continue;
        }
        const place = pile.indexOf(index);
        pile.splice(place, 1);
        height -= size;
        for (let above = place; above < pile.length; above++) {
            const { at, floor } = steps[pile[above]];
            const now = floor[floor.length - 1] - size;
            if (at[at.length - 1] === time) floor[floor.length - 1] = now;
            else {
                at.push(time);
                floor.push(now);
            }
        }
    }
    return { steps, top };
}

/** Of `most` blocks. */
export function livesOf(run: Run, side: Side, most: number): Lives {
    const { begin, end, bytes } = run.blocks;
    const last = Math.max(run.head.end_time ?? 0, run.moments.at(-1)?.time ?? 0, run.outline.time.at(-1) ?? 0);
    const candidates = blocksOf(run, side);
    const kept = candidates.slice(0, most);
    const least = kept.length ? bytes[kept[kept.length - 1]] : 0;
    kept.sort((a, b) => begin[a] - begin[b] || a - b);
    const { steps, top } = piled(run, kept);
    const lives = kept.map((block, index) => ({
        block,
        begin: begin[block],
        end: end[block] ? end[block] - 1 : last,
        bytes: bytes[block],
        at: Float64Array.from(steps[index].at),
        floor: Float64Array.from(steps[index].floor),
    }));
    return { lives, end: last, top, least, nLeftOut: candidates.length - kept.length };
}

/** Height of a block's floor at a time. */
export function floorAt({ at, floor }: Life, time: number) {
    let low = 0;
    let high = at.length;
    while (low + 1 < high) {
        const middle = (low + high) >> 1;
        if (at[middle] <= time) low = middle;
        else high = middle;
    }
    return floor[low];
}
