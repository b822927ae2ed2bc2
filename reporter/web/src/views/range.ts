// SPDX-License-Identifier: GPL-2.0-or-later
//
// Memory between two moments, by call site: allocated, freed (which follows from the rest), and the change. The moments are chosen
// in the timeline, or here.

import { append, h, kept, replace } from '../base/dom.js';
import { growth, size } from '../base/units.js';
import { Table, type Column } from '../charts/table.js';
import { allocatorOf, lineOf } from '../runs/blocks.js';
import type { Run } from '../runs/run.js';
import { sumsBy, total } from '../runs/sums.js';
import { View } from './view.js';

const FIGURES = ['before', 'allocated', 'freed', 'after'] as const;
type Row = Record<(typeof FIGURES)[number], number> & { name: string };

/** Keys of rows. */
const KEYS: [string, (run: Run, cell: number) => string][] = [
    ['owner', (run, cell) => run.head.owners[run.cells.owner[cell]].name],
    ['line', (run, cell) => lineOf(run, cell) || allocatorOf(run, cell)],
    ['library', (run, cell) => run.head.libraries[run.cells.library[cell]]],
    ['kind', (run, cell) => run.head.kinds[run.cells.kind[cell]].name],
];

/** The names that hold or held anything, or allocated in between. */
function rowsOf(run: Run, first: number, second: number, keyOf: (cell: number) => string): Row[] {
    const [then, now] = [sumsBy(run, first, keyOf), sumsBy(run, second, keyOf)];
    const rows = [...now].map(([name, sum]) => {
        const [was, after] = [then.get(name), total(sum)];
        const before = was ? total(was) : 0;
        // What a cache takes back comes to it without being allocated.
        const allocated = Math.max(sum.allocated - (was?.allocated ?? 0), after - before, 0);
        return { name, before, allocated, freed: before + allocated - after, after };
    });
    return rows.filter((row) => row.before || row.allocated).sort((a, b) => b.allocated - a.allocated || b.freed - a.freed);
}

const columns = (by: string): Column<Row>[] => [
    { head: by, value: (row) => row.name, isLong: true },
    ...FIGURES.map((head): Column<Row> => ({ head, isFigure: true, value: (row) => row[head], show: (row) => (row[head] ? size(row[head]) : '') })),
    { head: 'change', isFigure: true, value: (row) => row.after - row.before, show: (row) => growth(row.after - row.before) },
];

function sumOf(rows: Row[]): Row {
    const all = { name: 'total', before: 0, allocated: 0, freed: 0, after: 0 };
    for (const row of rows) for (const figure of FIGURES) all[figure] += row[figure];
    return all;
}

export class Range extends View {
    static override id = 'range';
    static override title = 'Between two moments';

    static override fits(run: Run) {
        return run.moments.length > 1 && run.measures.includes('allocated') && run.parts.processes.length < 2;
    }

    #by = 0;
    #said = h('p', {});
    #from = h('select', { class: 'from', onchange: () => this.#choose() });
    #to = h('select', { class: 'to', onchange: () => this.#choose() });
    #select = h('select', { ...kept('by'), onchange: () => this.#group() }, ...KEYS.map(([name]) => h('option', { value: name }, name)));
    #grid = new Table<Row>('Allocated and freed', { sum: sumOf, empty: 'nothing was allocated or freed' });

    override content() {
        const { run } = this;
        for (const place of [this.#from, this.#to]) append(place, ...run.moments.map((_, index) => h('option', { value: index }, run.label(index))));
        const choices = [h('label', {}, 'from ', this.#from), h('label', {}, 'to ', this.#to), h('label', {}, 'by ', this.#select)];
        return [h('div', { class: 'buttons' }, ...choices), this.#said, this.#grid.element];
    }

    #group() {
        this.#by = this.#select.selectedIndex;
        this.update();
    }

    #choose() {
        const { page } = this;
        const [from, to] = [this.#from.selectedIndex, this.#to.selectedIndex];
        page.compare(null);
        page.select(Math.max(from, to));
        page.compare(Math.min(from, to));
    }

    override update() {
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
        const rows = rowsOf(run, page.other, page.moment, (cell) => keyOf(run, cell));
        const all = sumOf(rows);
        // A peak has no count of all that was allocated by then.
        const isPeak = run.moments[page.moment].isPeak || run.moments[page.other].isPeak;
        replace(
            this.#said,
            `${isPeak ? 'At least ' : ''}${size(all.allocated)} allocated, ${size(all.freed)} freed: ${growth(all.after - all.before)}.`,
        );
        this.#grid.show(columns(name), rows, `from ${run.label(page.other)} to ${run.label(page.moment)}`);
    }
}
