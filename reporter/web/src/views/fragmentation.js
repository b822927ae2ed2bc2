// SPDX-License-Identifier: GPL-2.0-or-later
//
// Fragmentation of a caching allocator's segments over time: the share of their free memory that is not in the largest hole.

import { h } from '../base/dom.js';
import { moment as time, percent, size } from '../base/units.js';
import { Table } from '../charts/table.js';
import { View } from './view.js';

/** @typedef {import('../runs/run.js').Run} Run */
/** @typedef {{time: number, reserved: number, free: number, hole: number, share: number}} Row */

export class Fragmentation extends View {
    static id = 'fragmentation';
    static title = 'Fragmentation over time';
    static isWhole = true;

    /** @param {Run} run */
    static fits(run) {
        return run.head.oom.over_time.time.length > 0;
    }

    content() {
        const { unit, oom } = this.run.head;
        const { time: times, reserved, free, largest_hole: holes } = oom.over_time;
        const rows = times.map((at, i) => ({ time: at, reserved: reserved[i], free: free[i], hole: holes[i], share: free[i] ? 1 - holes[i] / free[i] : 0 }));
        const bars = rows.map((row) => h('span', { title: `${time(row.time, unit)}: ${percent(row.share, 1)}; ${size(row.free)} free, the largest hole ${size(row.hole)}`, style: { height: `${100 * row.share}%` } }));
        /** @type {Table<Row>} */
        const grid = new Table('Segments at snapshots', { limit: 8, note: 'fragmentation: share of the free memory that is not in the largest hole' });
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
        const ends = [times[0], times[times.length - 1]].map((at) => h('span', {}, time(at, unit)));
        return [
            h('figure', { class: 'fragmentation' }, h('figcaption', {}, h('b', {}, 'Fragmentation at each snapshot')), h('div', { class: 'scale quiet', 'aria-hidden': 'true' }, h('span', {}, '100 %'), h('span', {}, '0 %')), h('div', { class: 'bars', role: 'img', 'aria-label': 'fragmentation at each snapshot, from 0 to 100 percent' }, ...bars), h('div', { class: 'ends quiet' }, ...ends)),
            grid.element,
        ];
    }
}
