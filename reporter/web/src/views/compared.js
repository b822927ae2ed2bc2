// SPDX-License-Identifier: GPL-2.0-or-later
//
// The tables of a comparison: a row a name, a column a column, and the change between the two that are compared.

import { h } from '../base/dom.js';
import { count, growth, size, whole } from '../base/units.js';
import { Table } from '../charts/table.js';
import { changeOf, comparisonOf, held, isBeyondNoise } from '../runs/comparison.js';
import { ownersLegend } from './columns.js';
import { View } from './view.js';

/** @typedef {import('../runs/comparison.js').Comparison} Comparison */
/** @typedef {import('../runs/data.js').Pool} Pool */
/** @typedef {import('../runs/data.js').DifferenceRow} Row */
/** @typedef {import('../runs/data.js').DifferenceTable} DifferenceTable */

/** @param {Row} row */
const isListed = (row) => !row.in_total && !row.inside.length;

/** @param {Row} row */
const fullName = (row) => [...row.inside, row.name].join(' > ') + (isListed(row) ? ' (further calls, not counted)' : '');

/** @param {number} n */
const signed = (n) => (n ? `${n > 0 ? '+' : ''}${whole(n)}` : '');

/** Description of an owner; '' without one. @param {Comparison} run @param {string} name */
const aboutOf = (run, name) => run.head.owners.find((owner) => owner.name === name)?.about ?? '';

/** @param {Comparison} run @param {DifferenceTable} table @param {Pool} pool @param {number} now @param {number|null} before @returns {import('../charts/table.js').Column<Row>[]} */
function columnsOf(run, table, pool, now, before) {
    const { columns } = run.difference;
    /** @type {import('../charts/table.js').Column<Row>[]} */
    const found = [
        {
            head: table.by.replaceAll('-', ' '),
            value: fullName,
            show: (row) => h('span', { class: 'nested', style: { 'padding-left': `${1.2 * row.inside.length}em` } }, row.inside.length ? row.name : fullName(row)),
            title: (row) => (table.by === 'owner' ? aboutOf(run, row.name) : row.inside.length ? fullName(row) : ''),
        },
    ];
    columns.forEach(({ label }, n) => found.push({ head: label, isFigure: true, value: (row) => held(row.cells[n], pool), show: (row) => (held(row.cells[n], pool) ? size(held(row.cells[n], pool)) : '–') }));
    if (before === null) return found;
    const bytes = (/** @type {Row} */ row, /** @type {Pool} */ of) => held(row.cells[now], of) - held(row.cells[before], of);
    const percent = (/** @type {Row} */ row) => (row === table.rounding ? '' : changeOf(held(row.cells[before], pool), held(row.cells[now], pool)));
    const change = (/** @type {string} */ head, /** @type {Pool} */ of) =>
        found.push({ head, isFigure: true, value: (row) => bytes(row, of), show: (row) => h('span', { class: bytes(row, of) > 0 ? 'grown' : bytes(row, of) ? 'shrunk' : '' }, growth(bytes(row, of))) });
    change('change', pool);
    found.push({ head: '%', value: percent });
    if (run.hasRepeats && before === 0) found.push({ head: 'noise', value: (row) => (isBeyondNoise(row, now, before) ? '' : 'within') });
    if (pool !== 'bytes') return found; // blocks of either side are not known
    const uses = (/** @type {'host'|'device'} */ side) => table.total.cells.some((cell) => cell[side]);
    if (uses('host') && uses('device')) {
        change('host change', 'host');
        change('device change', 'device');
    }
    const number = (/** @type {Row} */ row) => row.cells[now].number - row.cells[before].number;
    found.push({ head: `${table.number_is} change`, isFigure: true, value: number, show: (row) => signed(number(row)) });
    return found;
}

/** The view of a table of the difference. @param {DifferenceTable} table @returns {import('./view.js').ViewClass} */
export function compared(table) {
    const isCalls = table.by === 'scope';
    const name = isCalls ? 'Cost by call' : `By ${table.by.replaceAll('-', ' ')}`;
    return class Compared extends View {
        static id = `by-${table.by}`;
        static title = name;

        // Without tensors, or Python, the rows say just that.
        static fits() {
            return table.rows.some((row) => !row.name.startsWith('(')) || !!table.other;
        }

        /** @type {[Pool, Table<Row>][]} */
        #grids = comparisonOf(this.page)
            .pools(table)
            .map((pool) => [pool, new Table(pool === 'bytes' ? name : `${name}: ${pool} memory`, { sum: (_rows, isPart) => (isPart ? null : table.total) })]);

        content() {
            const isNested = table.rows.some((row) => row.inside.length);
            const run = comparisonOf(this.page);
            const owners = table.by === 'owner' ? run.head.owners.filter(({ name: owner, about }) => about && table.rows.some((row) => row.name === owner)) : [];
            return [isNested && h('p', { class: 'quiet' }, 'Nested calls are included in their callers.'), ...this.#grids.map(([, { element }]) => element), ownersLegend(owners)];
        }

        update() {
            const { page } = this;
            const run = comparisonOf(page);
            const { min_bytes, moment } = run.difference;
            for (const [pool, grid] of this.#grids) {
                const rows = table.rows.filter((row) => pool === 'bytes' || row.cells.some((cell) => cell[pool]));
                if (table.other) rows.push({ ...table.other, name: `${count(table.other_rows, 'other')}, each under ${size(min_bytes)}` });
                if (table.rounding) rows.push({ ...table.rounding, name: 'rounding of medians' });
                grid.show(columnsOf(run, table, pool, page.moment, page.other), rows, isCalls ? 'over the whole run' : `at ${moment}`);
            }
        }
    };
}
