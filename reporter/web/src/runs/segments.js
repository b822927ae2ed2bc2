// SPDX-License-Identifier: GPL-2.0-or-later
//
// Device memory as it lies: segments, which a caching allocator hands out in parts, the blocks inside them, and the holes
// between. What is in no segment is a block by itself.

import { liveBlocks, nested } from './blocks.js';

/** @typedef {import('./run.js').Run} Run */
/** @typedef {{block: number, offset: number, bytes: number}} Part `block`: place among the run's blocks; -1: a hole */
/** @typedef {{block: number, address: bigint, bytes: number, isSegment: boolean, parts: Part[], used: number, largestHole: number, holes: number}} Segment */

/** The owner of what an allocator has reserved and not handed out. */
export const CACHE = 'cache';

/** @param {Run} run @param {number} block */
export const ownerOf = (run, block) => run.head.owners[run.cells.owner[run.blocks.cell[block]]].name;

/** The parts of a segment with the holes between them. @param {Run} run @param {number} segment @param {number[]} inside by address @returns {Part[]} */
function partsOf(run, segment, inside) {
    const { address, bytes } = run.blocks;
    /** @type {Part[]} */
    const parts = [];
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

/** Device memory at a time, the largest pieces first. @param {Run} run @param {number} now */
export const segmentsAt = (run, now) => segmentsOf(run, liveBlocks(run, now));

/** Likewise right after the record with this place among those of blocks. @param {Run} run @param {number} place */
export function segmentsAfter(run, place) {
    const { came, went, cell } = run.blocks;
    const live = [];
    for (let block = 0; came && went && block < cell.length; block++) if (came[block] <= place && (!went[block] || went[block] - 1 > place)) live.push(block);
    return segmentsOf(run, live);
}

/** @param {Run} run @param {number[]} blocks @returns {Segment[]} */
function segmentsOf(run, blocks) {
    const { address, bytes } = run.blocks;
    const onDevice = blocks.filter((block) => run.side[run.blocks.cell[block]] === 1);
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
 * @param {Segment[]} segments
 */
export function fragmentation(segments) {
    const free = segments.reduce((all, segment) => all + segment.bytes - segment.used, 0);
    const largest = segments.reduce((most, segment) => Math.max(most, segment.largestHole), 0);
    const holes = segments.reduce((all, segment) => all + segment.holes, 0);
    return { free, largest, holes, fragmentation: free ? 1 - largest / free : 0 };
}
