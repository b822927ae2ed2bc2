// SPDX-License-Identifier: GPL-2.0-or-later
//
// Memory that start-up calls took: loading libraries, cuInit, contexts, cudnnCreate …

import { h } from '../base/dom.js';
import { count, growth, moment as time, whole } from '../base/units.js';
import { Table } from '../charts/table.js';
import { View } from './view.js';

/** @typedef {import('../runs/run.js').Run} Run */

/** @typedef {import('../runs/data.js').Scope} Row */
/** @typedef {import('../runs/data.js').ScopeSum} Many */

/** @param {Row|Many} growths */
const kinds = (growths) => growths.kinds.map(([kind, bytes]) => `${kind} ${growth(bytes)}`).join(', ');

/** @param {string} head @param {(row: any) => number} of @returns {import('../charts/table.js').Column<any>} */
const grown = (head, of) => ({ head, isFigure: true, value: of, show: (row) => growth(of(row)) });

export class Scopes extends View {
    static id = 'start-up';
    static title = 'Start-up cost';
    static isWhole = true;

    /** @param {Run} run */
    static fits(run) {
        return run.head.scopes.length + run.head.scope_sums.length > 0;
    }

    content() {
        const { scopes_left_out: [n, bytes], scope_sums: sums } = this.run.head;
        return [this.#single(), n > 0 && h('p', { class: 'quiet' }, `and ${count(n, 'more call')}, each smaller, ${growth(bytes)} in all`), sums.length > 0 && this.#many()];
    }

    /** Calls by themselves. */
    #single() {
        const { unit, scopes: rows } = this.run.head;
        const most = rows.reduce((top, row) => Math.max(top, Math.abs(row.host + row.device)), 1);
        const bar = (/** @type {Row} */ row) => {
            const width = (100 * Math.abs(row.host + row.device)) / most;
            return h('span', { class: 'meter', 'aria-hidden': 'true' }, h('span', { style: { width: `${width}%` } }));
        };
        /** @type {Table<Row>} */
        const grid = new Table('Start-up calls', { note: 'net growth by the time each call returned, with the calls inside it', limit: 40 });
        grid.show(
            [
                { head: 'call', isLong: true, value: (row) => row.name, show: (row) => h('span', { style: { 'padding-left': `${row.depth * 1.2}em` } }, row.name) },
                { head: 'at', isFigure: true, value: (row) => row.begin, show: (row) => time(row.begin, unit), title: () => '' },
                { head: 'took', isFigure: true, value: (row) => row.end - row.begin, show: (row) => time(row.end - row.begin, unit), title: () => '' },
                grown('host', (row) => row.host),
                grown('device', (row) => row.device),
                { head: 'cost', value: (row) => row.host + row.device, show: bar, isFigure: true },
                { head: 'by kind', isLong: true, value: kinds },
            ],
            rows,
        );
        return grid.element;
    }

    /** Sums of calls. */
    #many() {
        const { unit, scope_sums: sums } = this.run.head;
        /** @type {Table<Many>} */
        const grid = new Table('Repeated calls', { limit: 10 });
        grid.show(
            [
                { head: 'call', value: (row) => row.name },
                { head: 'calls', isFigure: true, value: (row) => row.calls, show: (row) => whole(row.calls) },
                { head: 'took', isFigure: true, value: (row) => row.time, show: (row) => time(row.time, unit), title: () => '' },
                grown('host', (row) => row.host),
                grown('device', (row) => row.device),
                { head: 'by kind', isLong: true, value: kinds },
            ],
            sums,
        );
        return grid.element;
    }
}
