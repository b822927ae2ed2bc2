// SPDX-License-Identifier: GPL-2.0-or-later
//
// What start-up calls cost: loading libraries, cuInit, contexts, cudnnCreate …

import { h } from '../dom.js';
import { table } from '../table.js';
import { count, growth, moment as time, whole } from '../units.js';

/** @typedef {import('../data.js').Scope} Row */
/** @typedef {import('../data.js').ScopeSum} Many */

/** @param {import('../data.js').Growth} growths */
const kinds = (growths) => growths.kinds.map(([kind, bytes]) => `${kind} ${growth(bytes)}`).join(', ');

/** @param {string} head @param {(row: any) => number} of @returns {import('../table.js').Column<any>} */
const grown = (head, of) => ({ head, isFigure: true, value: of, show: (row) => growth(of(row)) });

/** @type {import('../page.js').View} */
export const scopes = {
    id: 'start-up',
    title: 'What start-up calls cost',
    fits: (run) => run.head.scopes.length + run.head.scope_sums.length > 0,
    mount(place, page) {
        const { run } = page;
        const { unit, scopes: rows, scope_sums: sums, scopes_left_out: [n, bytes] } = run.head;
        const most = rows.reduce((top, row) => Math.max(top, Math.abs(row.host + row.device)), 1);
        const grid = /** @type {ReturnType<typeof table<Row>>} */ (table('Start-up calls', { note: 'net growth by the time each call returned, with the calls inside it', limit: 40 }));
        place.append(grid.element);
        const bar = (/** @type {Row} */ row) => {
            const width = (100 * Math.abs(row.host + row.device)) / most;
            return h('span', { class: 'meter', 'aria-hidden': 'true' }, h('span', { style: { width: `${width}%` } }));
        };
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
        if (n) place.append(h('p', { class: 'quiet' }, `and ${count(n, 'more call')} that cost less, ${growth(bytes)} in all`));
        if (sums.length) {
            const many = /** @type {ReturnType<typeof table<Many>>} */ (table('Calls that came many times', { limit: 10 }));
            place.append(many.element);
            many.show(
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
        }
        return () => {};
    },
};
