// SPDX-License-Identifier: GPL-2.0-or-later
//
// Device memory as it lies: segments, which a caching allocator hands out in parts, the blocks inside them, and the holes
// between. What is in no segment is a block by itself.

import { liveBlocks, nested } from './blocks.js';
import type { Run } from './run.js';

/** `block`: place among the run's blocks; -1: a hole. */
export type Part = { block: number; offset: number; bytes: number };
export type Segment = {
    block: number;
    address: bigint;
    bytes: number;
    isSegment: boolean;
    parts: Part[];
    used: number;
    largestHole: number;
    holes: number;
};

/** The owner of what an allocator has reserved and not handed out. */
export const CACHE = 'cache';

export const ownerOf = (run: Run, block: number) => run.head.owners[run.cells.owner[run.blocks.cell[block]]].name;

/** The parts of a segment with the holes between them; `inside`: by address. */
function partsOf(run: Run, segment: number, inside: number[]) {
    const { address, bytes } = run.blocks;
    const parts: Part[] = [];
    let at = 0;
    for (const block of inside) {
        const offset = Number(address[block] - address[segment]);
        if (offset > at) parts.push({ block: -1, offset: at, bytes: offset - at });
        const size = Math.min(bytes[block], bytes[segment] - offset);
        parts.push({ block, offset, bytes: size });
        at = Math.max(at, offset + size);
    }
    if (at < bytes[segment]) parts.push({ block: -1, offset: at, bytes: bytes[segment] - at });
    return parts;
}

/** Device memory at a time, the largest pieces first. */
export function segmentsAt(run: Run, now: number): Segment[] {
    const { address, bytes } = run.blocks;
    const onDevice = liveBlocks(run, now).filter((block) => run.side[run.blocks.cell[block]] === 1);
    return nested(run, onDevice)
        .map(({ block, inside }) => {
            const isSegment = inside.length > 0 || ownerOf(run, block) === CACHE;
            const parts = isSegment ? partsOf(run, block, inside) : [{ block, offset: 0, bytes: bytes[block] }];
            const holes = parts.filter((part) => part.block < 0);
            const free = holes.reduce((all, hole) => all + hole.bytes, 0);
            return {
                block,
                address: address[block],
                bytes: bytes[block],
                isSegment,
                parts,
                used: bytes[block] - free,
                largestHole: holes.reduce((most, hole) => Math.max(most, hole.bytes), 0),
                holes: holes.length,
            };
        })
        .sort((a, b) => b.bytes - a.bytes || (a.address < b.address ? -1 : 1));
}

/**
 * Free memory of segments: in all, in how many holes, the largest, and the part of it that the largest is not
 * (0: one hole; near 1: crumbs).
 */
export function fragmentation(segments: Segment[]) {
    const free = segments.reduce((all, segment) => all + segment.bytes - segment.used, 0);
    const largest = segments.reduce((most, segment) => Math.max(most, segment.largestHole), 0);
    const holes = segments.reduce((all, segment) => all + segment.holes, 0);
    return { free, largest, holes, fragmentation: free ? 1 - largest / free : 0 };
}
