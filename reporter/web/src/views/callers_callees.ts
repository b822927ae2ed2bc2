// SPDX-License-Identifier: GPL-2.0-or-later
//
// Callers and callees of one function or line. A click on one goes on to it. A stack that goes through it several times counts once:
// with the caller of the outermost call, and the callee of the innermost.

import { h, kept, replace } from '../base/dom.js';
import { size } from '../base/units.js';
import { Table, type Column } from '../charts/table.js';
import type { Run } from '../runs/run.js';
import { rowsOfSums, sumOf, sumsBy, total, type Row } from '../runs/sums.js';
import { View } from './view.js';

const NO_FRAME = ['(itself)', '(root)', '(smaller ones)'];
const [ITSELF, ROOT, DEEPER] = NO_FRAME;

function callersOf(run: Run, label: string, moment: number) {
    return sumsBy(run, moment, (cell) => {
        const stack = run.stack(cell);
        const outermost = stack.lastIndexOf(label);
        return outermost < 0 ? null : (stack[outermost + 1] ?? ROOT);
    });
}

function calleesOf(run: Run, label: string, moment: number) {
    return sumsBy(run, moment, (cell) => {
        const stack = run.stack(cell);
        const innermost = stack.indexOf(label);
        return innermost < 0 ? null : (stack[innermost - 1] ?? (run.cells.places[cell] ? DEEPER : ITSELF));
    });
}

/** The labels of frames, those that hold most at a moment by all that they called first. */
function labelsByTotal(run: Run, moment: number) {
    const totals = new Map<string, number>();
    const { bytes } = run.at(moment);
    for (let cell = 0; cell < run.nCells; cell++) {
        const held = run.side[cell] === 2 ? 0 : bytes[cell];
        for (const label of new Set(run.stack(cell))) totals.set(label, (totals.get(label) ?? 0) + held);
    }
    return [...totals].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([label]) => label);
}

const OFFERED = 300;

const columns = (head: string): Column<Row>[] => [
    { head, value: (row) => row.name, isLong: true },
    { head: 'bytes', isFigure: true, value: (row) => total(row.sum), show: (row) => size(total(row.sum)) },
    { head: 'blocks', isFigure: true, value: (row) => row.sum.hostBlocks + row.sum.deviceBlocks },
    { head: 'allocated so far', isFigure: true, value: (row) => row.sum.allocated, show: (row) => size(row.sum.allocated) },
];

export class CallersCallees extends View {
    static override id = 'callers-callees';
    static override title = 'Callers and callees';

    static override fits(run: Run) {
        return run.nodes.parent.length > 1 && run.measures.includes('allocated');
    }

    #label = '';
    #said = h('p', { role: 'status', class: 'quiet' });
    #offers = h('datalist', { id: 'callers-callees-of' });
    #input = h('input', {
        ...kept('of'),
        type: 'search',
        class: 'filter',
        placeholder: 'a function or a line',
        'aria-label': 'Callers and callees of',
        spellcheck: false,
        onchange: () => this.#find(this.#input.value),
    });
    #callers = new Table<Row>('Callers', { sum: (rows) => sumOf(rows), limit: 10, empty: 'none', onClick: (row) => this.#go(row) });
    #callees = new Table<Row>('Callees', { sum: (rows) => sumOf(rows), limit: 10, empty: 'none', onClick: (row) => this.#go(row) });

    override content() {
        this.#input.setAttribute('list', 'callers-callees-of');
        return [
            h('div', { class: 'buttons' }, h('label', {}, 'of ', this.#input)),
            this.#offers,
            this.#said,
            this.#callers.element,
            this.#callees.element,
        ];
    }

    #go(row: Row) {
        if (!NO_FRAME.includes(row.name)) this.#ask(row.name);
    }

    /** As if the reader had written it. */
    #ask(name: string) {
        this.#input.value = name;
        this.#input.dispatchEvent(new Event('change', { bubbles: true }));
    }

    /** The frame that is called so, or else the first in whose name it is. */
    #find(wanted: string) {
        const labels = labelsByTotal(this.run, this.page.moment);
        this.#label = labels.find((label) => label === wanted) ?? labels.find((label) => label.includes(wanted)) ?? '';
        this.update();
        if (!this.#label) replace(this.#said, 'No match');
    }

    override update() {
        const { page, run } = this;
        const labels = labelsByTotal(run, page.moment);
        replace(this.#offers, ...labels.slice(0, OFFERED).map((label) => h('option', { value: label })));
        const look = page.taken(CallersCallees.id);
        if (look) return this.#ask(look.name);
        this.#label ||= labels[0] ?? '';
        this.#input.value = this.#label;
        replace(this.#said, run.moments.length ? `at ${run.label(page.moment)}; click a row to go to it` : '');
        this.#callers.show(columns('caller'), rowsOfSums(callersOf(run, this.#label, page.moment)));
        this.#callees.show(columns('callee'), rowsOfSums(calleesOf(run, this.#label, page.moment)));
    }
}
