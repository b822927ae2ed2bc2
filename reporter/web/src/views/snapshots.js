// SPDX-License-Identifier: GPL-2.0-or-later
//
// The moments that can be chosen, as a table: what the timeline shows, for those who cannot see it; and regions and marks.

import { growth, moment as time, size } from '../base/units.js';
import { Table } from '../charts/table.js';
import { View } from './view.js';

/** @typedef {import('../runs/data.js').RunHead} RunHead */
/** @typedef {import('../runs/run.js').Moment} Row */
/** @typedef {{at: number, what: string, name: string, took: number|null, thread: number|null, most: number|null, host: number, device: number}} Event */

const REASONS = /** @type {Record<string, string>} */ ({
    time: 'periodic',
    'peak-total': 'peak of host and device',
    'peak-host': 'host peak',
    'peak-device': 'device peak',
    request: 'requested',
    'out-of-memory': 'failed allocation',
    ended: 'end of a process',
});

/** Regions and marks, in order. @param {RunHead} head @returns {Event[]} */
const eventsOf = (head) =>
    [
        ...head.regions.map((region) => ({ at: region.begin, what: 'region', name: region.text, took: region.end === null ? null : region.end - region.begin, thread: region.thread, most: region.most, host: region.host, device: region.device })),
        ...head.marks.map((mark) => ({ at: mark.time, what: 'mark', name: mark.text, took: null, thread: null, most: null, host: 0, device: 0 })),
    ].sort((a, b) => a.at - b.at);

/** @param {RunHead} head @param {Event[]} events */
function eventTable(head, events) {
    const { unit } = head;
    /** @type {Table<Event>} */
    const grid = new Table('Regions and marks', { limit: 15 });
    const change = (/** @type {Event} */ row, /** @type {'host'|'device'} */ side) => (row.what === 'mark' ? '' : growth(row[side]));
    const took = (/** @type {Event} */ row) => (row.took === null ? (row.what === 'mark' ? '' : 'still open at the end') : time(row.took, unit));
    grid.show(
        [
            { head: 'at', isFigure: true, value: (row) => row.at, show: (row) => time(row.at, unit), title: () => '' },
            { head: 'what', value: (row) => row.what },
            { head: 'name', isLong: true, value: (row) => row.name },
            { head: 'took', isFigure: true, value: (row) => row.took ?? -1, show: took, title: () => '' },
            { head: 'max', isFigure: true, value: (row) => row.most ?? -1, show: (row) => (row.most === null ? '' : size(row.most)) },
            { head: 'host', isFigure: true, value: (row) => row.host, show: (row) => change(row, 'host') },
            { head: 'device', isFigure: true, value: (row) => row.device, show: (row) => change(row, 'device') },
        ],
        events,
        head.events_left_out ? `${head.events_left_out.toLocaleString('en-US')} more are not on this page` : '',
    );
    return grid.element;
}

export class Snapshots extends View {
    static id = 'snapshots';
    static title = 'Snapshots, regions and marks';

    /** @type {Table<Row>} */
    #grid = new Table('Snapshots', {
        note: 'click a row to show that moment',
        limit: 12,
        onClick: (row) => this.page.select(row.index),
        isChosen: (row) => row.index === this.page.moment,
    });

    content() {
        const { head } = this.run;
        const events = eventsOf(head);
        return [this.#grid.element, events.length > 0 && eventTable(head, events)];
    }

    update() {
        const { run } = this;
        const { unit } = run.head;
        /** @type {import('../charts/table.js').Column<Row>[]} */
        const columns = [
            { head: 'moment', value: (row) => row.name },
            { head: 'at', isFigure: true, value: (row) => row.time, show: (row) => time(row.time, unit), title: (row) => `${row.time} ${unit}` },
        ];
        if (run.uses('device')) {
            columns.push({ head: 'host', isFigure: true, value: (row) => row.host, show: (row) => size(row.host) });
            columns.push({ head: 'device', isFigure: true, value: (row) => row.device, show: (row) => size(row.device) });
        }
        if (!run.head.is_discrete || !run.uses('device')) {
            columns.push({ head: 'total', isFigure: true, value: (row) => row.host + row.device, show: (row) => size(row.host + row.device) });
        }
        columns.push({ head: 'why', value: (row) => REASONS[row.reason] ?? row.reason });
        this.#grid.show(columns, run.moments);
    }
}
