// SPDX-License-Identifier: GPL-2.0-or-later
//
// How the segments of a caching allocator were used over time: how much of what they have free is not in the largest hole.

import { h } from '../dom.js';
import { table } from '../table.js';
import { moment as time, percent, size } from '../units.js';

/** @typedef {{time: number, reserved: number, free: number, hole: number, share: number}} Row */

/** @type {import('../page.js').View} */
export const fragmentation = {
    id: 'fragmentation',
    title: 'Fragmentation over time',
    fits: (run) => run.head.exhaustion.over_time.time.length > 0,
    mount(place, page) {
        const { run } = page;
        const { unit } = run.head;
        const { time: times, reserved, free, largest_hole: holes } = run.head.exhaustion.over_time;
        const rows = times.map((at, i) => ({ time: at, reserved: reserved[i], free: free[i], hole: holes[i], share: free[i] ? 1 - holes[i] / free[i] : 0 }));
        const bars = rows.map((row) => h('span', { title: `${time(row.time, unit)}: ${percent(row.share, 1)}; ${size(row.free)} free, the largest hole ${size(row.hole)}`, style: { height: `${100 * row.share}%` } }));
        const grid = /** @type {ReturnType<typeof table<Row>>} */ (table('Segments at snapshots', { limit: 8, note: 'fragmentation: what of the free memory is not in the largest hole' }));
        place.append(h('div', { class: 'bars', role: 'img', 'aria-label': 'fragmentation at each snapshot, from 0 to 100 percent' }, ...bars), grid.element);
        grid.show(
            [
                { head: 'at', isFigure: true, value: (row) => row.time, show: (row) => time(row.time, unit), title: () => '' },
                { head: 'reserved', isFigure: true, value: (row) => row.reserved, show: (row) => size(row.reserved) },
                { head: 'free', isFigure: true, value: (row) => row.free, show: (row) => size(row.free) },
                { head: 'largest hole', isFigure: true, value: (row) => row.hole, show: (row) => size(row.hole) },
                { head: 'fragmentation', isFigure: true, value: (row) => row.share, show: (row) => percent(row.share, 1), title: () => '' },
            ],
            rows,
        );
        return () => {};
    },
};
