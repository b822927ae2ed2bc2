// SPDX-License-Identifier: GPL-2.0-or-later
//
// Difference of each column to the one that it is compared with, in all and by owner.

import { append, h, replace } from '../base/dom.js';
import { growth, size, whole } from '../base/units.js';
import { waterfall } from '../charts/waterfall.js';
import { REST, groupColour } from '../runs/colours.js';
import { changeOf, comparisonOf, held, isBeyondNoise } from '../runs/comparison.js';
import { View } from './view.js';

/** @typedef {import('../runs/comparison.js').Comparison} Comparison */
/** @typedef {import('../runs/data.js').Pool} Pool */
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
