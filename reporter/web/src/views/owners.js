// SPDX-License-Identifier: GPL-2.0-or-later
//
// Bytes and blocks of each owner, with its group: a click narrows the call tree to one. Likewise of tensors' roles and of threads.

import { h } from '../base/dom.js';
import { size } from '../base/units.js';
import { Table } from '../charts/table.js';
import { rowsOf, sumOf } from '../runs/sums.js';
import { allocated, figures, ownersLegend } from './columns.js';
import { View } from './view.js';

/** @typedef {import('../runs/run.js').Run} Run */
/** @typedef {import('../runs/sums.js').Row} Row */

export class Owners extends View {
    static id = 'owners';
    static title = 'Owners';

    /** @type {Table<Row>} */
    #grid = new Table('Owners', {
        sum: (rows) => sumOf(rows),
        onClick: ({ index, name }) => this.page.narrow({ dimension: 'owner', index, name }),
        isChosen: ({ index }) => this.page.isOnly('owner', index),
    });
    #listed = h('p', { class: 'quiet' });

    content() {
        return [this.#grid.element, this.#listed, ownersLegend(this.run.head.owners)];
    }

    update() {
        const { page, run } = this;
        const rows = rowsOf(page, 'owner');
        const group = { head: 'group', value: (/** @type {Row} */ row) => (row.index < 0 ? '' : run.head.owners[row.index].group) };
        this.#grid.show([{ head: 'owner', value: (row) => row.name, title: (row) => run.head.owners[row.index]?.about ?? '' }, group, ...figures(page, rows), allocated], rows, rows.length ? `at ${run.label(page.moment)}` : '');
        const imported = run.moments.length ? run.sums('owner', page.moment).reduce((all, sum) => all + sum.listed, 0) : 0;
        this.#listed.textContent = imported ? `Not counted: ${size(imported)} imported from other processes.` : '';
        this.#listed.hidden = !imported;
    }
}

/** A table of a dimension that not every run has. @param {'role'|'thread'} dimension @param {string} title @param {string} sumName @param {string} note */
const tableBy = (dimension, title, sumName, note) =>
    class extends View {
        static id = `${dimension}s`;
        static title = title;

        /** @param {Run} run */
        static fits(run) {
            return run.head[/** @type {'roles'|'threads'} */ (`${dimension}s`)].some((name) => name);
        }

        /** @type {Table<Row>} */
        grid = new Table(title, { sum: (rows) => sumOf(rows, sumName) });

        content() {
            return [this.grid.element];
        }

        update() {
            const { page, run } = this;
            const rows = rowsOf(page, dimension).filter((row) => dimension === 'thread' || run.head.roles[row.index]);
            this.grid.show([{ head: dimension, value: (row) => row.name }, ...figures(page, rows), allocated], rows, `${note}at ${run.label(page.moment)}`);
        }
    };

export const Roles = tableBy('role', 'Tensors by role', 'all tensors', '');
/** Threads that share a name are one; they are recorded with --threads=yes. */
export const Threads = tableBy('thread', 'Threads', 'total', 'by the thread that allocated, ');
