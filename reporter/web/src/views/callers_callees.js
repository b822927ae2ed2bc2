// SPDX-License-Identifier: GPL-2.0-or-later
//
// Callers and callees of one function or line. A click on one goes on to it. A stack that goes through it several times counts once:
// with the caller of the outermost call, and the callee of the innermost (analysis/callers_callees.py has the same).

import { h, kept, replace } from '../base/dom.js';
import { size } from '../base/units.js';
import { Table } from '../charts/table.js';
import { View } from './view.js';

/** @typedef {import('../runs/run.js').Run} Run */

/** @typedef {{name: string, bytes: number, blocks: number, allocated: number, isFrame: boolean}} Neighbour */

const ITSELF = '(itself)';
const NOBODY = '(root)';
export const DEEPER = '(smaller ones)';

/** @param {Map<string, Neighbour>} sums @param {string} name @param {boolean} isFrame @param {number} bytes @param {number} blocks @param {number} allocated */
function count(sums, name, isFrame, bytes, blocks, allocated) {
    const sum = sums.get(name) ?? { name, bytes: 0, blocks: 0, allocated: 0, isFrame };
    sum.bytes += bytes;
    sum.blocks += blocks;
    sum.allocated += allocated;
    sums.set(name, sum);
}

/** The caller of the outermost node with that label on the way from a node, and the callee of the innermost; null: there is none. @param {Run} run @param {string} label @param {number} innermost */
function around(run, label, innermost) {
    const { parent, frame } = run.nodes;
    const labelOf = (/** @type {number} */ node) => run.head.frames.label[frame[node]];
    let inner = 0;
    let callee = -1;
    let last = 0;
    for (let node = innermost; node; node = parent[node]) {
        if (labelOf(node) === label) {
            if (callee < 0) callee = inner;
            last = node;
        }
        inner = node;
    }
    if (!last) return null;
    return { caller: parent[last] ? labelOf(parent[last]) : '', callee: callee ? labelOf(callee) : '' };
}

/** @param {Run} run @param {string} label as frames are called @param {number} moment @returns {{callers: Neighbour[], callees: Neighbour[]}} */
function callersAndCalleesOf(run, label, moment) {
    const held = run.at(moment);
    /** @type {Map<string, Neighbour>} */
    const callers = new Map();
    /** @type {Map<string, Neighbour>} */
    const callees = new Map();
    /** @type {Map<number, ReturnType<typeof around>>} */
    const known = new Map();
    for (let cell = 0; cell < run.nCells; cell++) {
        const node = run.cells.node[cell];
        const figures = /** @type {const} */ ([held.bytes[cell], held.blocks[cell], held.allocated[cell]]);
        if (run.side[cell] === 2 || !node || !figures.some((n) => n)) continue;
        let found = known.get(node);
        if (found === undefined) known.set(node, (found = around(run, label, node)));
        if (!found) continue;
        const own = run.cells.places[cell] ? DEEPER : ITSELF;
        count(callers, found.caller || NOBODY, !!found.caller, ...figures);
        count(callees, found.callee || own, !!found.callee, ...figures);
    }
    const ranked = (/** @type {Map<string, Neighbour>} */ sums) => [...sums.values()].sort((a, b) => b.bytes - a.bytes || b.allocated - a.allocated || (a.name < b.name ? -1 : 1));
    return { callers: ranked(callers), callees: ranked(callees) };
}

/** The labels of frames, those that hold most at a moment by all that they called first. @param {Run} run @param {number} moment @returns {string[]} */
function labelsByTotal(run, moment) {
    const { parent, frame } = run.nodes;
    const totals = new Float64Array(parent.length);
    const { bytes } = run.at(moment);
    for (let cell = 0; cell < run.nCells; cell++) if (run.side[cell] !== 2) totals[run.cells.node[cell]] += bytes[cell];
    for (let node = parent.length - 1; node > 0; node--) totals[parent[node]] += totals[node];
    /** @type {Map<string, number>} */
    const most = new Map();
    for (let node = 1; node < parent.length; node++) {
        const label = run.head.frames.label[frame[node]];
        most.set(label, Math.max(most.get(label) ?? 0, totals[node]));
    }
    return [...most.keys()].sort((a, b) => (most.get(b) ?? 0) - (most.get(a) ?? 0) || (a < b ? -1 : 1));
}

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
