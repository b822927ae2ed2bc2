// SPDX-License-Identifier: GPL-2.0-or-later
//
// The balance of the whole machine: what was in use before, the program by owner, Valgrind, what nobody can explain, what is free.

import { choice, h, replace } from '../base/dom.js';
import { waterfall } from '../charts/waterfall.js';
import { coloursOf } from '../runs/colours.js';
import { sumsOf } from '../runs/sums.js';
import { View } from './view.js';

/** @typedef {import('../runs/data.js').Balance} Balance */
/** @typedef {import('../runs/run.js').Run} Run */
/** @typedef {import('../charts/waterfall.js').Step} Step */

const SCOPES = /** @type {[string, string][]} */ ([
    ['machine', 'system'],
    ['process', 'this process'],
]);
const QUIET = 'var(--edge)';

/** Of what the fullest holds: who holds as much is as full, as analysis/balance.py has it. */
const AS_FULL = 0.95;

/** The balance of the nearest moment that has any; for a peak of the nearest that is full. @param {Run} run @param {number} moment */
function balanceOf(run, moment) {
    const { balances, is_discrete } = run.head;
    const filled = (/** @type {Balance} */ made) => run.moments[made.moment].host + (is_discrete ? 0 : run.moments[made.moment].device);
    const away = (/** @type {Balance} */ made) => Math.abs(run.moments[made.moment].time - run.moments[moment].time);
    const least = run.moments[moment].isPeak ? AS_FULL * Math.max(...balances.map(filled)) : 0;
    const full = balances.filter((made) => filled(made) >= least);
    return full.reduce((best, made) => (away(made) < away(best) || (away(made) === away(best) && filled(made) > filled(best)) ? made : best), full[0]);
}

/** @param {Run} run @param {Balance} made @returns {Step[]} */
function owners(run, made) {
    const side = (/** @type {import('../runs/run.js').Sum} */ sum) => sum.host + (run.head.is_discrete ? 0 : sum.device);
    const colours = coloursOf(run, 'owner');
    return sumsOf(run, 'owner', made.moment)
        .map(({ name, index, sum }) => ({ name, group: run.head.owners[index].group, bytes: side(sum), colour: colours[index] }))
        .filter((step) => step.bytes > 0)
        .sort((a, b) => b.bytes - a.bytes);
}

/** @param {Run} run @param {Balance} made @param {boolean} isWhole @returns {Step[]} */
function steps(run, made, isWhole) {
    const row = (/** @type {'before'|'untouched'|'allocators'|'valgrind'|'unaccounted'|'elsewhere'|'free'} */ field, colour = QUIET) => ({ name: made.names[field], group: made.notes[field], bytes: made[field], colour });
    const taken = [...owners(run, made), row('untouched'), row('allocators'), row('valgrind'), row('unaccounted')];
    return isWhole ? [row('before'), ...taken, row('elsewhere'), row('free', 'transparent')] : taken;
}

export class SystemMemory extends View {
    static id = 'balance';
    static title = 'System memory';
    static isWhole = true;

    /** @param {Run} run */
    static fits(run) {
        return run.head.balances.length > 0;
    }

    #scope = 'machine';
    #when = h('h3', {});
    #picture = h('div', {});
    #doubts = h('div', {});

    content() {
        const choose = choice('Show', SCOPES, this.#scope, (value) => {
            this.#scope = value;
            this.update();
        });
        return [h('div', { class: 'above' }, this.#when, choose), this.#picture, this.#doubts];
    }

    update() {
        const { page, run } = this;
        const made = balanceOf(run, page.moment);
        const isWhole = this.#scope === 'machine';
        const moment = run.label(made.moment);
        replace(this.#when, made.moment === page.moment ? `At ${moment}` : `At ${moment}, the nearest sample of pages`);
        replace(this.#picture, waterfall(steps(run, made, isWhole), isWhole ? 'System memory' : 'This process', isWhole ? 'the machine' : 'this process'));
        replace(this.#doubts, ...made.doubts.map((text) => h('p', { class: 'doubt' }, text)));
    }
}
