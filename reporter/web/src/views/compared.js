// SPDX-License-Identifier: GPL-2.0-or-later
//
// The tables of a comparison: a row a name, a column a column, and the change between the two that are compared.

import { comparisonOf, held, isBeyond } from '../comparison.js';
import { h } from '../dom.js';
import { table as grid } from '../table.js';
import { growth, size, whole } from '../units.js';
import { percentOf } from './changes.js';

/** @typedef {import('../comparison.js').Comparison} Comparison */
/** @typedef {import('../comparison.js').Pool} Pool */
/** @typedef {import('../comparison.js').Row} Row */
/** @typedef {import('../comparison.js').Table} Table */
/** @typedef {import('../comparison.js').Figures} Figures */

/** @param {Row} row */
const isListed = (row) => !row.in_total && !row.inside.length;

/** @param {Row} row */
const fullName = (row) => [...row.inside, row.name].join(' > ') + (isListed(row) ? ': further calls, in no sum' : '');

/** @param {number} n */
const signed = (n) => (n ? `${n > 0 ? '+' : ''}${whole(n)}` : '');

/** @param {Comparison} run @param {Table} table @param {Pool} pool @param {number} now @param {number|null} before @returns {import('../table.js').Column<Row>[]} */
function columnsOf(run, table, pool, now, before) {
    const { columns } = run.difference;
    /** @type {import('../table.js').Column<Row>[]} */
    const found = [
        {
            head: table.by.replaceAll('-', ' '),
            value: fullName,
            show: (row) => h('span', { class: 'nested', style: { 'padding-left': `${1.2 * row.inside.length}em` } }, row.inside.length ? row.name : fullName(row)),
            title: (row) => (row.inside.length ? fullName(row) : ''),
        },
    ];
    columns.forEach(({ label }, n) => found.push({ head: label, isFigure: true, value: (row) => held(row.cells[n], pool), show: (row) => (held(row.cells[n], pool) ? size(held(row.cells[n], pool)) : '–') }));
    columns.forEach(({ label, runs }, n) => {
        const spread = (/** @type {Row} */ row) => row.cells[n].ranges[pool][1] - row.cells[n].ranges[pool][0];
        const ends = (/** @type {Row} */ row) => row.cells[n].ranges[pool].map((bytes) => size(bytes)).join(' to ');
        if (runs.length > 1) found.push({ head: `${label} spread`, isFigure: true, value: spread, show: (row) => size(spread(row)), title: ends });
    });
    if (before === null) return found;
    const bytes = (/** @type {Row} */ row, /** @type {Pool} */ of) => held(row.cells[now], of) - held(row.cells[before], of);
    const percent = (/** @type {Row} */ row) => (row === table.remainder ? '' : percentOf(held(row.cells[before], pool), held(row.cells[now], pool)));
    const change = (/** @type {string} */ head, /** @type {Pool} */ of) =>
        found.push({ head, isFigure: true, value: (row) => bytes(row, of), show: (row) => h('span', { class: bytes(row, of) > 0 ? 'grown' : bytes(row, of) ? 'shrunk' : '' }, growth(bytes(row, of))) });
    change('change', pool);
    found.push({ head: '%', value: percent });
    if (run.hasRanges) found.push({ head: 'beyond', value: (row) => (isBeyond(run, row, before, now) ? 'yes' : '') });
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

/** A section for a table of the difference. @param {Table} table @returns {import('../page.js').View} */
export function compared(table) {
    const isCalls = table.by === 'scope';
    const title = isCalls ? 'What calls have cost' : `By ${table.by.replaceAll('-', ' ')}`;
    return {
        id: `by-${table.by}`,
        title,
        // Where nobody used tensors, or Python, the rows say just that.
        fits: () => table.rows.some((row) => !row.name.startsWith('(')) || !!table.other,
        mount(place, page) {
            const run = comparisonOf(page);
            const pools = run.pools(table);
            const grids = pools.map((pool) => /** @type {ReturnType<typeof grid<Row>>} */ (grid(pool === 'bytes' ? title : `${title}: ${pool} memory`, { sum: (_rows, isPart) => (isPart ? null : table.total) })));
            if (table.rows.some((row) => row.inside.length)) place.append(h('p', { class: 'quiet' }, 'Calls beneath others were made in them, and are in their figures and not in the total.'));
            place.append(...grids.map(({ element }) => element));
            return () => {
                pools.forEach((pool, i) => {
                    const rows = table.rows.filter((row) => pool === 'bytes' || row.cells.some((cell) => cell.ranges[pool][0] || cell.ranges[pool][1]));
                    if (table.other) rows.push({ ...table.other, name: `${whole(table.other_rows)} more below ${size(run.difference.min_bytes)}` });
                    if (table.remainder) rows.push(table.remainder);
                    const note = isCalls ? 'over the whole run' : `at ${run.difference.moment}`;
                    grids[i].show(columnsOf(run, table, pool, page.moment, page.other), rows, note);
                });
            };
        },
    };
}
