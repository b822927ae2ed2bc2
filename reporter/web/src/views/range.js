// SPDX-License-Identifier: GPL-2.0-or-later
//
// What came, what went and what only passed from one chosen moment to the other. Two moments are chosen in the timeline, or
// here the whole run until the chosen one.

import { append, h, kept, replace } from '../base/dom.js';
import { size } from '../base/units.js';
import { Table } from '../charts/table.js';
import { allocatorOf, lineOf } from '../runs/blocks.js';
import { add, nothing, rangeOf } from '../runs/range.js';
import { View } from './view.js';

/** @typedef {import('../runs/run.js').Run} Run */
/** @typedef {import('../runs/range.js').Flow} Flow */
/** @typedef {{name: string, flow: Flow}} Row */

/** What rows are of. @type {[string, (run: Run, cell: number) => string][]} */
const KEYS = [
    ['owner', (run, cell) => run.head.owners[run.cells.owner[cell]].name],
    ['line', (run, cell) => lineOf(run, cell) || allocatorOf(run, cell)],
    ['library', (run, cell) => run.head.libraries[run.cells.library[cell]]],
    ['kind', (run, cell) => run.head.kinds[run.cells.kind[cell]].name],
];

/** @type {[keyof Flow, string][]} */
const FIGURES = [
    ['before', 'held before'],
    ['fresh', 'new'],
    ['freed', 'freed'],
    ['passing', 'passing'],
    ['uncertain', 'uncertain'],
    ['after', 'held after'],
];

/** @param {boolean} isUncertain @param {string} by @returns {import('../charts/table.js').Column<Row>[]} */
const columns = (isUncertain, by) => [
    { head: by, value: (row) => row.name, isLong: true },
    ...FIGURES.filter(([figure]) => figure !== 'uncertain' || isUncertain).map(([figure, head]) => ({
        head,
        isFigure: true,
        value: (/** @type {Row} */ row) => row.flow[figure],
        show: (/** @type {Row} */ row) => (row.flow[figure] ? size(row.flow[figure]) : ''),
    })),
];

/** @param {Row[]} rows @returns {Row} */
function total(rows) {
    const flow = nothing();
    for (const row of rows) add(flow, row.flow);
    return { name: 'total', flow };
}

export class Range extends View {
    static id = 'range';
    static title = 'From one moment to another';

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
    #grid = new Table('What came and went', { sum: total, empty: 'nothing came or went' });

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
            replace(this.#said, 'Choose two moments, here or in the timeline (the second with Shift): what came, what went and what only passed in between.');
            return;
        }
        const [name, keyOf] = KEYS[this.#by];
        /** @type {Map<string, Flow>} */
        const sums = new Map();
        for (const { cell, flow } of rangeOf(run, page.other, page.moment)) {
            const key = keyOf(run, cell);
            const sum = sums.get(key) ?? nothing();
            add(sum, flow);
            sums.set(key, sum);
        }
        const rows = [...sums].map(([key, flow]) => ({ name: key, flow })).sort((a, b) => b.flow.fresh + b.flow.uncertain - a.flow.fresh - a.flow.uncertain || b.flow.freed - a.flow.freed || b.flow.passing - a.flow.passing);
        replace(this.#said, this.#sentence(total(rows).flow));
        this.#grid.show(columns(total(rows).flow.uncertain > 0, name), rows, `from ${run.label(page.other)} to ${run.label(page.moment)}`);
    }

    /** @param {Flow} flow */
    #sentence(flow) {
        const { page, run } = this;
        const hasAll = run.head.manifest.some(([key, value]) => key === 'option.large' && value === '0');
        const isPeak = [page.other, page.moment].some((moment) => moment !== null && run.moments[moment].isPeak);
        const all = flow.fresh + flow.passing + flow.uncertain;
        const parts = [`${isPeak ? 'At least ' : ''}${size(all)} allocated in between; of that ${size(flow.fresh)} still there (new), ${size(flow.passing)} not (passing). Of the ${size(flow.before)} before, ${size(flow.freed)} are gone (freed).`];
        if (flow.uncertain) parts.push(`${size(flow.uncertain)} more are uncertain: either new too, in place of as much that was freed, or passing.${hasAll ? '' : ' Blocks with records tell; recorded with --large=0 all have them.'}`);
        if (isPeak) parts.push('What has been allocated is told at snapshots, and a peak is none: more may have passed.');
        return parts.join(' ');
    }
}
