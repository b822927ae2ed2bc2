// SPDX-License-Identifier: GPL-2.0-or-later
//
// A list of what the device's allocators did, around one step; choosing another shows the memory right after it.
// Records are ordered by their places: a millisecond may have many.

import { h, replace } from '../base/dom.js';
import { moment, size, whole } from '../base/units.js';
import { CACHE, ownerOf } from '../runs/segments.js';

/** @typedef {import('../runs/run.js').Run} Run */

/** @typedef {{place: number, block: number, isEnd: boolean, time: number}} Step */

/** In their order. @param {Run} run @returns {Step[]} */
function stepsOf(run) {
    const { came, went, begin, end, cell } = run.blocks;
    /** @type {Step[]} */
    const steps = [];
    for (let block = 0; came && went && block < cell.length; block++) {
        if (run.side[cell[block]] !== 1) continue;
        steps.push({ place: came[block], block, isEnd: false, time: begin[block] });
        if (went[block]) steps.push({ place: went[block] - 1, block, isEnd: true, time: end[block] - 1 });
    }
    steps.sort((a, b) => a.place - b.place);
    return steps.filter((step, i) => !isRenamed(run, step, steps[i + 1]) && !isRenamed(run, steps[i - 1], step));
}

/**
 * A block's end and the record right behind it, of the same place, may say what a tensor turned out to be for: no allocator did
 * anything then.
 * @param {Run} run @param {Step|undefined} before @param {Step|undefined} after
 */
function isRenamed(run, before, after) {
    if (!before?.isEnd || !after || after.isEnd || after.place !== before.place + 1) return false;
    const { address, bytes, cell } = run.blocks;
    const [a, b] = [before.block, after.block];
    const { node, owner, role } = run.cells;
    return address[a] === address[b] && bytes[a] === bytes[b] && node[cell[a]] === node[cell[b]] && owner[cell[a]] === owner[cell[b]] && role[cell[a]] !== role[cell[b]];
}

/** How many steps there had been by a time. @param {Step[]} steps @param {number} now */
function stepsBy(steps, now) {
    let [low, high] = [0, steps.length];
    while (low < high) {
        const middle = (low + high) >> 1;
        if (steps[middle].time <= now) low = middle + 1;
        else high = middle;
    }
    return low;
}

const AROUND = 12; // steps shown before and after the chosen one

/** @param {Run} run @param {Step} step */
export function describe(run, { block, isEnd, time }) {
    const { address, bytes, cell } = run.blocks;
    const owner = ownerOf(run, block);
    const role = run.head.roles[run.cells.role[cell[block]]];
    const done = owner === CACHE ? ['reserved', 'released'] : ['allocated', 'freed'];
    const what = owner === CACHE ? 'segment' : role ? `${owner} (${role})` : owner;
    return `${moment(time, run.head.unit)}: ${done[isEnd ? 1 : 0]} ${size(bytes[block])} at 0x${address[block].toString(16)}, ${what}`;
}

export class StepList {
    /** @type {Step[]|null} made when it is first opened */
    #steps = null;
    /** Steps that have been made. */
    #done = 0;
    #list = h('ol', { class: 'step-list' });
    #position = h('output', { class: 'readout', 'aria-live': 'polite' });

    /** @param {Run} run @param {(step: Step|null, number: number, of: number) => void} choose */
    constructor(run, choose) {
        this.run = run;
        this.choose = choose;
        this.now = 0;
        const [left, upTo] = run.head.blocks_left_out;
        const go = (/** @type {number} */ by, /** @type {string} */ name, /** @type {string} */ sign) =>
            h('button', { type: 'button', 'aria-label': name, title: name, onclick: () => this.#go(this.#done + by) }, sign);
        this.body = h('div', {}, h('span', { class: 'buttons' }, go(-1, 'Previous step', '◂'), go(1, 'Next step', '▸')), ' ', this.#position, this.#list, left > 0 && h('p', { class: 'quiet' }, `blocks up to ${size(upTo)}, and their steps, are not on this page`));
        this.element = h('details', { class: 'step-by-step', ontoggle: () => this.#open() }, h('summary', {}, 'Step by step'), this.body);
    }

    /** Back to what the moment shows. @param {number} now */
    reset(now) {
        this.now = now;
        if (this.element.open) this.#open();
    }

    #open() {
        if (!this.element.open) return;
        this.#steps ??= stepsOf(this.run);
        this.#done = stepsBy(this.#steps, this.now);
        this.#draw();
    }

    /** @param {number} done */
    #go(done) {
        const steps = this.#steps ?? [];
        this.#done = Math.max(1, Math.min(steps.length, done));
        this.#draw();
        this.choose(steps[this.#done - 1] ?? null, this.#done, steps.length);
    }

    #draw() {
        const steps = this.#steps ?? [];
        const first = Math.max(0, this.#done - 1 - AROUND);
        const shown = steps.slice(first, first + 2 * AROUND + 1);
        const at = steps[this.#done - 1];
        replace(this.#position, at ? `step ${whole(this.#done)} of ${whole(steps.length)}: ${describe(this.run, at)}` : `before the first of ${whole(steps.length)} steps`);
        this.#list.start = first + 1;
        replace(
            this.#list,
            ...shown.map((step, i) =>
                h('li', {}, h('button', { type: 'button', class: step.isEnd ? 'end' : '', 'aria-current': step === at ? 'step' : null, onclick: () => this.#go(first + i + 1) }, describe(this.run, step))),
            ),
        );
        const current = this.#list.children[this.#done - 1 - first];
        if (current instanceof HTMLElement) this.#list.scrollTop = current.offsetTop - this.#list.clientHeight / 2;
    }
}
