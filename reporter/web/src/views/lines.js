// SPDX-License-Identifier: GPL-2.0-or-later
//
// Memory that each line of the program's own Python code allocated by itself, and with all lines that it called, with its text where it
// could be read. A click narrows the call tree to what is its own.

import { h, replace } from '../base/dom.js';
import { growth } from '../base/units.js';
import { Table } from '../charts/table.js';
import { rowsOf, sumOf, total } from '../runs/sums.js';
import { allocated, figures } from './columns.js';
import { View } from './view.js';

/** @typedef {import('../runs/run.js').Run} Run */
/** @typedef {import('../runs/sums.js').Row} Row */

const SELF_AND_TOTAL = 'self: allocated by the line, also in packages that it called; total: with all lines of the program that it called';

export class Lines extends View {
    static id = 'lines';
    static title = 'Python lines';

    /** @param {Run} run */
    static fits(run) {
        return run.head.lines.path.some((path) => path);
    }

    /** @type {Table<Row>} */
    #grid = new Table('Python lines', {
        sum: (rows) => sumOf(rows),
        note: SELF_AND_TOTAL,
        onClick: ({ index, name }) => this.page.narrow({ dimension: 'line', index, name }),
        isChosen: ({ index }) => this.page.isOnly('line', index),
    });
    #changed = h('p', { class: 'quiet' });

    content() {
        return [this.#grid.element, this.#changed];
    }

    update() {
        const { page, run } = this;
        const { lines } = run.head;
        const look = page.taken(Lines.id);
        if (look) this.#grid.find(look.name);
        const totals = run.moments.length ? run.totals(page.moment) : [];
        // Memory without a line has no callees, and neither has a sum of rows.
        const totalOf = (/** @type {Row} */ row) => (lines.path[row.index] ? totals[row.index] : row.sum);
        const rows = rowsOf(page, 'line', (sum, index) => sum.allocated > 0 || total(sum) > 0 || total(totals[index]) > 0);
        rows.sort((a, b) => total(b.sum) - total(a.sum) || total(totalOf(b)) - total(totalOf(a)));
        /** @type {import('../charts/table.js').Column<Row>[]} */
        const columns = [
            { head: 'line', value: (row) => row.name, title: (row) => (row.index < 0 ? '' : [lines.path[row.index], lines.around[row.index]].filter((text) => text).join('\n')) },
            ...figures(page, rows, totalOf),
            allocated,
        ];
        if (run.head.at.end >= 0) {
            const atEnd = run.sums('line', run.head.at.end);
            const left = (/** @type {Row} */ row) => row.members.reduce((bytes, line) => bytes + total(atEnd[line]), 0);
            columns.push({ head: 'at exit', isFigure: true, value: left, show: (row) => growth(left(row)) });
        }
        columns.push({ head: 'function', value: (row) => lines.function[row.index] ?? '' });
        if (lines.source.some((text) => text)) {
            columns.push({ head: 'source', isLong: true, value: (row) => lines.source[row.index] ?? '', title: (row) => lines.around[row.index] ?? '', show: (row) => h('code', {}, lines.source[row.index] ?? '') });
        }
        this.#grid.show(columns, rows, `at ${run.label(page.moment)}; ${SELF_AND_TOTAL}`);
        replace(this.#changed, lines.changed.length > 0 && `Changed since the run, so the text may be another line's: ${lines.changed.join(', ')}.`);
    }
}
