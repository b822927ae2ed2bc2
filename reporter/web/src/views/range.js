// SPDX-License-Identifier: GPL-2.0-or-later
//
// Memory between two moments, by call site: allocated, freed (which follows from the rest), and the change. The moments are chosen
// in the timeline, or here.

import { append, h, kept, replace } from '../base/dom.js';
import { growth, size } from '../base/units.js';
import { Table } from '../charts/table.js';
import { allocatorOf, lineOf } from '../runs/blocks.js';
import { View } from './view.js';

/** @typedef {import('../runs/run.js').Run} Run */

/** Bytes. @typedef {{before: number, allocated: number, freed: number, after: number}} Flow */

/** By cell, the first of those that differ in the role of their tensors alone, for that may change without an allocation. @param {Run} run */
function sitesOf(run) {
    const { node, kind, owner, library, thread, line, places } = run.cells;
    /** @type {Map<string, number>} */
    const known = new Map();
    return Uint32Array.from(node, (_, cell) => {
        const key = [node[cell], kind[cell], owner[cell], library[cell], thread[cell], line[cell], places[cell] ? 1 : 0].join();
        const site = known.get(key) ?? cell;
        known.set(key, site);
        return site;
    });
}

/** Of the sites where anything is or was, each by its first cell. @param {Run} run @param {number} first @param {number} second @returns {{cell: number, flow: Flow}[]} */
function rangeOf(run, first, second) {
    const sites = sitesOf(run);
    const sums = (/** @type {Float64Array} */ column) => column.reduce((sum, n, cell) => ((sum[sites[cell]] += n), sum), new Float64Array(run.nCells));
    const [before, after] = [sums(run.at(first).bytes), sums(run.at(second).bytes)];
    const [allocatedThen, allocatedNow] = [sums(run.at(first).allocated), sums(run.at(second).allocated)];
    const found = [];
    for (let cell = 0; cell < run.nCells; cell++) {
        const allocated = Math.max(allocatedNow[cell] - allocatedThen[cell], after[cell] - before[cell], 0);
        const flow = { before: before[cell], allocated, freed: before[cell] + allocated - after[cell], after: after[cell] };
        if (run.side[cell] !== 2 && (flow.before || allocated || flow.after)) found.push({ cell, flow });
    }
    return found;
}

/** @typedef {{name: string, flow: Flow}} Row */

/** Keys of rows. @type {[string, (run: Run, cell: number) => string][]} */
const KEYS = [
    ['owner', (run, cell) => run.head.owners[run.cells.owner[cell]].name],
    ['line', (run, cell) => lineOf(run, cell) || allocatorOf(run, cell)],
    ['library', (run, cell) => run.head.libraries[run.cells.library[cell]]],
    ['kind', (run, cell) => run.head.kinds[run.cells.kind[cell]].name],
];

/** @type {(keyof Flow)[]} */
const FIGURES = ['before', 'allocated', 'freed', 'after'];

/** @param {string} by @returns {import('../charts/table.js').Column<Row>[]} */
const columns = (by) => [
    { head: by, value: (row) => row.name, isLong: true },
    ...FIGURES.map((figure) => ({ head: figure, isFigure: true, value: (/** @type {Row} */ row) => row.flow[figure], show: (/** @type {Row} */ row) => (row.flow[figure] ? size(row.flow[figure]) : '') })),
    { head: 'change', isFigure: true, value: (row) => row.flow.after - row.flow.before, show: (row) => growth(row.flow.after - row.flow.before) },
];

/** @param {Row} row @param {Flow} flow */
function add(row, flow) {
    for (const figure of FIGURES) row.flow[figure] += flow[figure];
    return row;
}

/** @param {string} name @returns {Row} */
const nothing = (name) => ({ name, flow: { before: 0, allocated: 0, freed: 0, after: 0 } });

/** @param {Row[]} rows */
const total = (rows) => rows.reduce((all, { flow }) => add(all, flow), nothing('total'));

export class Range extends View {
    static id = 'range';
    static title = 'Between two moments';

    /** @param {Run} run */
    static fits(run) {
        return run.moments.length > 1 && run.measures.includes('allocated') && new Set(run.cells.process).size < 2;
    }

    #by = 0;
    #said = h('p', {});
    #from = h('select', { class: 'from', onchange: () => this.#choose() });
    #to = h('select', { class: 'to', onchange: () => this.#choose() });
    #select = h(
        'select',
        {
            ...kept('by'),
            onchange: () => {
                this.#by = this.#select.selectedIndex;
                this.update();
            },
        },
        ...KEYS.map(([name]) => h('option', { value: name }, name)),
    );
    /** @type {Table<Row>} */
    #grid = new Table('Allocated and freed', { sum: total, empty: 'nothing was allocated or freed' });

    content() {
        const { run } = this;
        for (const place of [this.#from, this.#to]) append(place, ...run.moments.map((_, index) => h('option', { value: index }, run.label(index))));
        const choices = [h('label', {}, 'from ', this.#from), h('label', {}, 'to ', this.#to), h('label', {}, 'by ', this.#select)];
        return [h('div', { class: 'buttons' }, ...choices), this.#said, this.#grid.element];
    }

    #choose() {
        const { page } = this;
        const [from, to] = [this.#from.selectedIndex, this.#to.selectedIndex];
        page.compare(null);
        page.select(Math.max(from, to));
        page.compare(Math.min(from, to));
    }

    update() {
        const { page, run } = this;
        const isRange = page.other !== null && page.other !== page.moment;
        this.#from.selectedIndex = page.other ?? page.moment;
        this.#to.selectedIndex = page.moment;
        this.#grid.element.hidden = !isRange;
        if (page.other === null || !isRange) {
            replace(this.#said, 'Choose two moments, here or in the timeline (the second with Shift).');
            return;
        }
        const [name, keyOf] = KEYS[this.#by];
        /** @type {Map<string, Row>} */
        const sums = new Map();
        for (const { cell, flow } of rangeOf(run, page.other, page.moment)) {
            const key = keyOf(run, cell);
            sums.set(key, add(sums.get(key) ?? nothing(key), flow));
        }
        const rows = [...sums.values()].sort((a, b) => b.flow.allocated - a.flow.allocated || b.flow.freed - a.flow.freed);
        const { flow } = total(rows);
        // A peak has no count of all that was allocated by then.
        const isPeak = run.moments[page.moment].isPeak || run.moments[page.other].isPeak;
        replace(this.#said, `${isPeak ? 'At least ' : ''}${size(flow.allocated)} allocated, ${size(flow.freed)} freed: ${growth(flow.after - flow.before)}.`);
        this.#grid.show(columns(name), rows, `from ${run.label(page.other)} to ${run.label(page.moment)}`);
    }
}
