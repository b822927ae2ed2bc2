// SPDX-License-Identifier: GPL-2.0-or-later
//
// The tables of a fleet: each part in each group with its change, the runs that lie far out, and what else differs.

import { h } from '../base/dom.js';
import { growth, size } from '../base/units.js';
import { Table } from '../charts/table.js';

/** @typedef {import('./data.js').FleetHead} FleetHead */
/** @typedef {import('./data.js').FleetRow} FleetRow */
/** @typedef {{row: FleetRow, index: number}} Part */

/** @param {string} view */
const titleOf = (view) => (view === 'total' ? 'Memory at the peak' : view === 'scope' ? 'Cost by call' : `By ${view.replaceAll('-', ' ')}, at the peak`);

/** @param {FleetHead} head @returns {import('../charts/table.js').Column<Part>[]} */
function partColumns(head) {
    /** @type {import('../charts/table.js').Column<Part>[]} */
    const columns = [{ head: 'name', value: ({ row }) => row.name }];
    head.groups.forEach(({ label }, group) => columns.push({ head: label, isFigure: true, value: ({ row }) => row.groups[group].median, show: ({ row }) => size(row.groups[group].median) }));
    head.groups.forEach(({ label }, group) => {
        if (group === head.base) return;
        const of = (/** @type {Part} */ part) => /** @type {import('./data.js').Change} */ (part.row.changes[group]);
        columns.push({
            head: `change, ${label}`,
            isFigure: true,
            value: (part) => of(part).bytes,
            show: (part) => h('span', { class: of(part).is_change ? (of(part).bytes > 0 ? 'grown' : 'shrunk') : 'quiet' }, growth(of(part).bytes)),
        });
        columns.push({
            head: 'between',
            value: (part) => {
                const { interval } = of(part);
                return interval ? interval.map(growth).join(' … ') : 'too few runs';
            },
        });
    });
    return columns;
}

/** A table for each view; a click on a row shows its distribution. @param {FleetHead} head @param {(row: number) => void} choose */
export function partTables(head, choose) {
    const parts = head.rows.map((row, index) => ({ row, index }));
    const columns = partColumns(head);
    let chosen = 0;
    /** @type {(() => void)[]} */
    const draw = [];
    return [...new Set(head.rows.map((row) => row.view))].map((view) => {
        const rows = parts.filter(({ row }) => row.view === view);
        /** @type {Table<Part>} */
        const table = new Table(titleOf(view), {
            isChosen: ({ index }) => index === chosen,
            onClick: ({ index }) => {
                chosen = index;
                choose(index);
                draw.forEach((each) => each());
            },
        });
        draw.push(() => table.show(columns, rows, 'medians; a change in colour is one'));
        draw[draw.length - 1]();
        return h('section', { id: `by-${view}` }, table.element);
    });
}

/** @param {FleetHead} head */
export function outsideTable(head) {
    /** @type {Table<import('./data.js').Outside>} */
    const table = new Table('Runs that lie far from their group', { empty: 'none' });
    table.show(
        [
            { head: 'run', value: (run) => run.host || run.file },
            { head: 'group', value: (run) => head.groups[run.group].label },
            { head: 'bytes', isFigure: true, value: (run) => run.bytes, show: (run) => size(run.bytes) },
            { head: 'median', isFigure: true, value: (run) => run.median, show: (run) => size(run.median) },
            { head: 'of what', value: (run) => (run.view === 'total' ? 'in all' : `${run.view} ${run.name}`) },
            { head: 'trace', value: (run) => run.file, isLong: true },
        ],
        head.outside,
        head.n_outside > head.outside.length ? `the farthest of ${head.n_outside}` : '',
    );
    return h('section', { id: 'outside' }, table.element);
}

/** @param {FleetHead} head */
export function factsTable(head) {
    /** @type {Table<FleetHead['facts'][0]>} */
    const table = new Table('What else differs, as most runs have it', { empty: 'nothing' });
    /** @type {import('../charts/table.js').Column<FleetHead['facts'][0]>[]} */
    const columns = [{ head: 'name', value: (fact) => fact.label }];
    head.groups.forEach(({ label, runs }, group) =>
        columns.push({
            head: label,
            value: ({ values }) => `${values[group].value || '?'}${values[group].runs < runs ? ` (${Math.floor((100 * values[group].runs) / runs)} %)` : ''}`,
        }),
    );
    table.show(columns, head.facts);
    return h('section', { id: 'facts' }, table.element);
}
