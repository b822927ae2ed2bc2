// SPDX-License-Identifier: GPL-2.0-or-later
//
// How one part is distributed: a row of bars for each group on one scale, and the runs of the bar that was chosen.

import { h, replace } from '../base/dom.js';
import { count, size, whole } from '../base/units.js';
import { Table } from '../charts/table.js';
import { bins } from './data.js';

const BARS = 40;

/** @typedef {import('./data.js').Bin} Bin */
/** @typedef {{host: string, board: string, bytes: number, file: string, start: string}} RunRow */

/** @type {import('../charts/table.js').Column<RunRow>[]} */
const RUN_COLUMNS = [
    { head: 'run', value: (run) => run.host || run.file },
    { head: 'bytes', isFigure: true, value: (run) => run.bytes, show: (run) => size(run.bytes) },
    { head: 'board', value: (run) => run.board },
    { head: 'began', value: (run) => run.start },
    { head: 'trace', value: (run) => run.file, isLong: true },
];

export class DistributionView {
    #title = h('h2', {}, '');
    #groups = h('div', { class: 'distributions' });
    /** @type {Table<RunRow>} */
    #runs = new Table('Runs');
    #chosen = h('div', { hidden: true }, this.#runs.element);

    /** @param {import('./data.js').Fleet} fleet */
    constructor(fleet) {
        this.fleet = fleet;
        this.element = h('section', { id: 'distribution', 'aria-label': 'Distribution' }, this.#title, h('p', { class: 'quiet' }, 'Runs by size. Click a bar for its runs; click a row below for another part.'), this.#groups, this.#chosen);
    }

    /** @param {number} row */
    show(row) {
        const { head } = this.fleet;
        const { view, name, groups } = head.rows[row];
        const values = this.fleet.values(row);
        const all = bins(values, BARS);
        const most = Math.max(1, ...all.flat().map((bin) => bin.runs.length));
        const first = all[0];
        this.#title.textContent = view === 'total' ? 'Total' : `${view.replaceAll('-', ' ')} ${name}`;
        this.#chosen.hidden = true;
        const line = (/** @type {number} */ group) => {
            const of = groups[group];
            const bars = all[group].map((bin) => this.#bar(group, bin, values[group], most));
            const text = `${count(of.n, 'run')}: median ${size(of.median)}, spread ${size(of.spread)}, 5 % below ${size(of.low)}, 5 % above ${size(of.high)}`;
            return h('div', { class: 'distribution' }, h('h3', {}, head.groups[group].label), h('p', { class: 'quiet' }, text), h('div', { class: 'bins' }, ...bars));
        };
        const ends = h('div', { class: 'ends quiet' }, h('span', {}, size(first[0].from)), h('span', {}, size(first[first.length - 1].to)));
        replace(this.#groups, ...groups.map((_, group) => line(group)), ends);
    }

    /** @param {number} group @param {Bin} bin @param {Float64Array} values @param {number} most */
    #bar(group, bin, values, most) {
        const n = bin.runs.length;
        const text = `${count(n, 'run')} from ${size(bin.from)} to ${size(bin.to)}`;
        if (!n) return h('span', { class: 'bin' });
        const height = `${Math.max(3, (100 * n) / most)}%`;
        return h('button', { type: 'button', class: 'bin', title: text, 'aria-label': text, 'data-value': n, onclick: () => this.#choose(group, bin, values) }, h('i', { style: { height } }));
    }

    /** @param {number} group @param {Bin} bin @param {Float64Array} values */
    #choose(group, bin, values) {
        const { groups, runs } = this.fleet.head;
        const of = runs[group];
        const rows = bin.runs.map((run) => ({ host: of.host[run], board: of.board[run], bytes: values[run], file: of.file[run], start: of.start[run] }));
        rows.sort((a, b) => b.bytes - a.bytes);
        this.#runs.show(RUN_COLUMNS, rows, `${whole(rows.length)} of ${groups[group].label}, from ${size(bin.from)} to ${size(bin.to)}`);
        this.#chosen.hidden = false;
    }
}
