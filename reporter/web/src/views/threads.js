// SPDX-License-Identifier: GPL-2.0-or-later
//
// Which thread has allocated what is held, where that was recorded (--threads=yes): threads that share a name are one.

import { Table } from '../charts/table.js';
import { rowsOf, sumOf } from '../runs/sums.js';
import { allocated, figures } from './columns.js';
import { View } from './view.js';

/** @typedef {import('../runs/run.js').Run} Run */
/** @typedef {import('../runs/sums.js').Row} Row */

export class Threads extends View {
    static id = 'threads';
    static title = 'Threads';

    /** @param {Run} run */
    static fits(run) {
        return run.head.threads.some((thread) => thread);
    }

    /** @type {Table<Row>} */
    #grid = new Table('Threads', { sum: (rows) => sumOf(rows) });

    content() {
        return [this.#grid.element];
    }

    update() {
        const { page, run } = this;
        const rows = rowsOf(page, 'thread');
        this.#grid.show([{ head: 'thread', value: (row) => row.name }, ...figures(page, rows), allocated], rows, `by the thread that allocated, at ${run.label(page.moment)}`);
    }
}
