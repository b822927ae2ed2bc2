// SPDX-License-Identifier: GPL-2.0-or-later
//
// The lives of the largest blocks, stacked: a block lies on those that were allocated before it and sinks when one of them
// is freed. A block's outline is a list of steps, so drawing costs what changes, not what there is.

import { countUpTo } from '../base/search.js';
import type { Run, Side } from './run.js';
import { CACHE, ownerOf } from './segments.js';

/** `floor[i]` from the time `at[i]` on. */
export type Life = { block: number; begin: number; end: number; bytes: number; at: Float64Array; floor: Float64Array };
export type Lives = { lives: Life[]; end: number; top: number; least: number; nLeftOut: number };

/** How each block lies on those below it, and how high the pile was at most. `blocks`: by birth. */
function piled(run: Run, blocks: number[]) {
    const { begin, end, bytes } = run.blocks;
    const steps = blocks.map((): { at: number[]; floor: number[] } => ({ at: [], floor: [] }));
    const events = blocks.flatMap((block, index) => [
        { time: begin[block], isEnd: false, index },
        ...(end[block] ? [{ time: end[block] - 1, isEnd: true, index }] : []),
    ]);
    // A block that is freed within its first tick is never seen: its end is not before its beginning.
    events.sort((a, b) => a.time - b.time || a.index - b.index || Number(a.isEnd) - Number(b.isEnd));
    const pile: number[] = [];
    let height = 0;
    let top = 0;
    for (const { time, isEnd, index } of events) {
        const size = bytes[blocks[index]];
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
        for (const above of pile.slice(place)) {
            const { at, floor } = steps[above];
            const now = floor[floor.length - 1] - size;
            if (at[at.length - 1] === time) floor.pop();
            else at.push(time);
            floor.push(now);
        }
    }
    return { steps, top };
}

/** Of the `most` largest blocks. */
export function livesOf(run: Run, side: Side, most: number): Lives {
    const { begin, end, bytes, cell } = run.blocks;
    const last = Math.max(run.head.end_time ?? 0, run.moments.at(-1)?.time ?? 0, run.outline.time.at(-1) ?? 0);
    const wanted = side === 'device' ? 1 : 0;
    // A segment is there for what lies in it, and would hide it.
    const candidates = [...cell.keys()].filter((block) => bytes[block] && run.side[cell[block]] === wanted && ownerOf(run, block) !== CACHE);
    const kept = candidates.sort((a, b) => bytes[b] - bytes[a]).slice(0, most);
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
export const floorAt = ({ at, floor }: Life, time: number) => floor[Math.max(1, countUpTo(at, time)) - 1];
