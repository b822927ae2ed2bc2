// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tensors by their role in training.

import { Table } from '../charts/table.js';
import { rowsOf, sumOf } from '../runs/sums.js';
import { allocated, figures } from './columns.js';
import { View } from './view.js';

/** @typedef {import('../runs/run.js').Run} Run */
/** @typedef {import('../runs/sums.js').Row} Row */

export class Roles extends View {
    static id = 'roles';
    static title = 'Tensors by role';

    /** @param {Run} run */
    static fits(run) {
        return run.head.roles.some((role) => role);
    }

    /** @type {Table<Row>} */
    #grid = new Table('Tensors by role', { sum: (rows) => sumOf(rows, 'all tensors') });

    content() {
        return [this.#grid.element];
    }

    update() {
        const { page, run } = this;
        const rows = rowsOf(page, 'role').filter((row) => run.head.roles[row.index]);
        this.#grid.show([{ head: 'role', value: (row) => row.name }, ...figures(page, rows), allocated], rows, `at ${run.label(page.moment)}`);
    }
}
