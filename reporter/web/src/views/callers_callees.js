// SPDX-License-Identifier: GPL-2.0-or-later
//
// Callers and callees of one function or line. A click on one goes on to it.

import { h, kept, replace } from '../base/dom.js';
import { size } from '../base/units.js';
import { Table } from '../charts/table.js';
import { labelsByTotal, callersAndCalleesOf } from '../runs/callers_callees.js';
import { View } from './view.js';

/** @typedef {import('../runs/run.js').Run} Run */
/** @typedef {import('../runs/callers_callees.js').Neighbour} Neighbour */

const OFFERED = 300;

/** @param {string} head @returns {import('../charts/table.js').Column<Neighbour>[]} */
const columns = (head) => [
    { head, value: (row) => row.name, isLong: true },
    { head: 'bytes', isFigure: true, value: (row) => row.bytes, show: (row) => size(row.bytes) },
    { head: 'blocks', isFigure: true, value: (row) => row.blocks },
    { head: 'allocated so far', isFigure: true, value: (row) => row.allocated, show: (row) => size(row.allocated) },
];

/** @param {Neighbour[]} rows @returns {Neighbour} */
const total = (rows) => {
    const sum = { name: 'total', bytes: 0, blocks: 0, allocated: 0, isFrame: false };
    for (const row of rows) {
        sum.bytes += row.bytes;
        sum.blocks += row.blocks;
        sum.allocated += row.allocated;
    }
    return sum;
};

export class CallersCallees extends View {
    static id = 'callers-callees';
    static title = 'Callers and callees';

    /** @param {Run} run */
    static fits(run) {
        return run.nodes.parent.length > 1 && run.measures.includes('allocated');
    }

    #label = '';
    #said = h('p', { role: 'status', class: 'quiet' });
    #offers = h('datalist', { id: 'callers-callees-of' });
    #input = h('input', { ...kept('of'), type: 'search', class: 'filter', placeholder: 'a function or a line', 'aria-label': 'Callers and callees of', spellcheck: false, onchange: () => this.#find(this.#input.value) });
    /** @type {Table<Neighbour>} */
    #callers = new Table('Callers', { sum: total, limit: 10, empty: 'none', onClick: (row) => this.#go(row) });
    /** @type {Table<Neighbour>} */
    #callees = new Table('Callees', { sum: total, limit: 10, empty: 'none', onClick: (row) => this.#go(row) });

    content() {
        this.#input.setAttribute('list', 'callers-callees-of');
        return [h('div', { class: 'buttons' }, h('label', {}, 'of ', this.#input)), this.#offers, this.#said, this.#callers.element, this.#callees.element];
    }

    /** @param {Neighbour} row */
    #go(row) {
        if (row.isFrame) this.#ask(row.name);
    }

    /** As if the reader had written it. @param {string} name */
    #ask(name) {
        this.#input.value = name;
        this.#input.dispatchEvent(new Event('change', { bubbles: true }));
    }

    /** The frame that is called so, or else the first in whose name it is. @param {string} wanted */
    #find(wanted) {
        const labels = labelsByTotal(this.run, this.page.moment);
        this.#label = labels.find((label) => label === wanted) ?? labels.find((label) => label.includes(wanted)) ?? '';
        this.update();
        if (!this.#label) replace(this.#said, 'No match');
    }

    update() {
        const { page, run } = this;
        const labels = labelsByTotal(run, page.moment);
        replace(this.#offers, ...labels.slice(0, OFFERED).map((label) => h('option', { value: label })));
        const look = page.taken(CallersCallees.id);
        if (look) return this.#ask(look.name);
        this.#label ||= labels[0] ?? '';
        this.#input.value = this.#label;
        const { callers, callees } = callersAndCalleesOf(run, this.#label, page.moment);
        replace(this.#said, run.moments.length ? `at ${run.label(page.moment)}; click a row to go to it` : '');
        this.#callers.show(columns('caller'), callers);
        this.#callees.show(columns('callee'), callees);
    }
}
