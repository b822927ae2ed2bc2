// SPDX-License-Identifier: GPL-2.0-or-later
//
// A comparison: the difference of each column to the one that it is compared with, tables with a row a name and a column a column,
// and the traces of each column.

import { append, h, replace } from '../base/dom.js';
import { count, growth, size, whole } from '../base/units.js';
import { Table } from '../charts/table.js';
import { changeOf, comparisonOf, held, isBeyondNoise } from '../runs/comparison.js';
import { ownersLegend } from './columns.js';
import { View } from './view.js';
import { waterfall } from '../charts/waterfall.js';
import { groupColour, REST } from '../runs/colours.js';

/** @typedef {import('../runs/comparison.js').Comparison} Comparison */
/** @typedef {import('../runs/data.js').Pool} Pool */
/** @typedef {import('../runs/data.js').DifferenceRow} Row */
/** @typedef {import('../runs/data.js').DifferenceTable} DifferenceTable */

const MOST_STEPS = 14;

/** Suffix of pools that do not add up. @param {Pool} pool */
const suffix = (pool) => (pool === 'bytes' ? '' : `, ${pool}`);

/** From the total of one column to that of the other, owner by owner. @param {Comparison} run @param {DifferenceTable} table @param {Pool} pool @param {number} from @param {number} to */
function steps(run, table, pool, from, to) {
    const groups = new Map(run.head.owners.map(({ name, group }) => [name, group]));
    const rows = [...table.rows, ...[table.other, table.rounding].filter((row) => row !== null)];
    const all = rows
        .map((row) => ({ name: row.name, group: groups.get(row.name) ?? '', bytes: held(row.cells[to], pool) - held(row.cells[from], pool) }))
        .filter(({ bytes }) => bytes)
        .sort((a, b) => Math.abs(b.bytes) - Math.abs(a.bytes));
    const small = all.splice(MOST_STEPS);
    if (small.length) all.push({ name: `${whole(small.length)} smaller changes`, group: '', bytes: small.reduce((sum, { bytes }) => sum + bytes, 0) });
    const first = { name: run.label(from), group: 'total', bytes: held(table.total.cells[from], pool), colour: REST };
    return [first, ...all.map((step) => ({ ...step, text: growth(step.bytes), colour: groupColour(step.group || 'other') }))];
}

/** @param {import('../runs/data.js').Difference['ladders'][0]} ladder */
const ladderTable = ({ title, heads, rows, data }) =>
    h(
        'table',
        { class: 'table steps' },
        h('caption', {}, title),
        h('thead', {}, h('tr', {}, ...['', ...heads].map((head, n) => h('th', { scope: 'col', class: n ? 'figure' : '' }, head || h('span', { class: 'unseen' }, 'step'))))),
        h('tbody', {}, ...rows.map(([name, ...figures], n) => h('tr', { 'data-key': data[n].key, 'data-role': data[n].role }, h('th', { scope: 'row' }, name), ...figures.map((figure) => h('td', { class: 'figure' }, figure))))),
    );

export class Changes extends View {
    static id = 'changes';
    static title = 'Changes';

    #tiles = h('div', { class: 'tiles' });
    #falls = h('div', {});

    content() {
        const { difference, hasRepeats } = comparisonOf(this.page);
        return [
            h('p', { class: 'quiet' }, `At ${difference.moment}.`),
            this.#tiles,
            ...difference.ladders.map(ladderTable),
            this.#falls,
            hasRepeats && h('p', { class: 'quiet' }, 'Figures of repeated runs are medians. Noise: "within" where runs of both columns overlap.'),
        ];
    }

    update() {
        const run = comparisonOf(this.page);
        const tables = run.difference.views.filter(({ by }) => by !== 'scope');
        replace(this.#tiles);
        replace(this.#falls);
        if (!tables.length) return;
        const owners = tables.find(({ by }) => by === 'owner');
        for (const pool of run.pools(tables[0])) {
            run.difference.columns.forEach((_, column) => this.#tiles.append(this.#tile(run, tables[0], pool, column)));
            if (owners) append(this.#falls, this.#fall(run, owners, pool));
        }
    }

    /** The total of a column. @param {Comparison} run @param {DifferenceTable} table @param {Pool} pool @param {number} column */
    #tile(run, table, pool, column) {
        const { page } = this;
        const { label } = run.difference.columns[column];
        const bytes = held(table.total.cells[column], pool);
        const before = page.other === null || page.other === column ? null : held(table.total.cells[page.other], pool);
        const isNoise = isBeyondNoise(table.total, column, page.other) === false;
        const change = before === null ? '' : [growth(bytes - before), changeOf(before, bytes), isNoise ? 'within noise' : ''].filter(Boolean).join(', ');
        return h(
            'button',
            { type: 'button', class: 'tile', 'data-column': column, 'data-pool': pool, 'data-bytes': bytes, 'aria-pressed': String(column === page.moment), onclick: () => page.select(column) },
            h('span', {}, `${label}${suffix(pool)}`),
            h('span', { class: 'large', title: `${whole(bytes)} bytes` }, size(bytes)),
            h('span', { class: 'change' }, change || (page.other === column ? 'base' : ' ')),
        );
    }

    /** From the one column to the other. @param {Comparison} run @param {DifferenceTable} owners @param {Pool} pool */
    #fall(run, owners, pool) {
        const { moment, other } = this.page;
        if (other === null || !(held(owners.total.cells[other], pool) + held(owners.total.cells[moment], pool) > 0)) return null;
        return waterfall(steps(run, owners, pool, other, moment), `From ${run.label(other)} to ${run.label(moment)}, by owner${suffix(pool)}`, run.label(moment));
    }
}

/** @typedef {{label: string, values: string[]}} Line */

/** A line by line comparison. @param {string} caption @param {Line[]} rows @param {import('../runs/data.js').DifferenceColumn[]} columns */
function facing(caption, rows, columns) {
    /** @type {Table<Line>} */
    const grid = new Table(caption, { limit: 40 });
    grid.show([{ head: 'fact', value: (row) => row.label }, ...columns.map(({ label }, n) => ({ head: label, isLong: true, value: (/** @type {Line} */ row) => row.values[n] || '?' }))], rows);
    return grid.element;
}

export class Sides extends View {
    static id = 'sides';
    static title = 'Compared runs';

    content() {
        const { columns, facts, common } = comparisonOf(this.page).difference;
        const traces = columns.map(({ runs }) => runs.map(({ file, complete }) => (complete ? file : `${file} (truncated)`)).join(', '));
        const main = facing('Differences', [{ label: 'traces', values: traces }, ...facts.filter((fact) => !fact.is_detail)], columns);
        const repeated = columns.filter(({ runs }) => runs.length > 1).map(({ label, stacks_of }) => `${label}: ${stacks_of}`);
        const details = facts.filter((fact) => fact.is_detail);
        const same = h('dl', {}, ...common.flatMap(([name, text]) => [h('dt', {}, name), h('dd', {}, text)]));
        return [
            main,
            repeated.length > 0 && h('p', { class: 'quiet' }, `Call trees of repeated runs are of the median run (${repeated.join('; ')}).`),
            details.length > 0 && h('details', {}, h('summary', {}, `${whole(details.length)} more: options, environment, packages`), facing('Options, environment and packages', details, columns)),
            common.length > 0 && h('details', {}, h('summary', {}, 'The same in all runs'), same),
        ];
    }
}

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
