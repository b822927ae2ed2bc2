// SPDX-License-Identifier: GPL-2.0-or-later
//
// The page of a fleet: how one part is distributed (a row of bars for each group on one scale, and the runs of the chosen bar), and
// tables of each part in each group with its change, of outliers, and of other differences.

import './page.css';
import { append, h, replace } from './base/dom.js';
import { bins, Fleet } from './fleet/data.js';
import { unpack } from './runs/data.js';
import { count, growth, size, whole } from './base/units.js';
import { Table } from './charts/table.js';

/** @typedef {import('./fleet/data.js').FleetHead} FleetHead */
/** @typedef {import('./fleet/data.js').FleetRow} FleetRow */
/** @typedef {import('./fleet/data.js').Bin} Bin */

const BARS = 40;

/** @typedef {{host: string, board: string, bytes: number, file: string, start: string}} RunRow */

/** @type {import('./charts/table.js').Column<RunRow>[]} */
const RUN_COLUMNS = [
    { head: 'run', value: (run) => run.host || run.file },
    { head: 'bytes', isFigure: true, value: (run) => run.bytes, show: (run) => size(run.bytes) },
    { head: 'board', value: (run) => run.board },
    { head: 'start', value: (run) => run.start },
    { head: 'trace', value: (run) => run.file, isLong: true },
];

class DistributionView {
    #title = h('h2', {}, '');
    #groups = h('div', { class: 'distributions' });
    /** @type {Table<RunRow>} */
    #runs = new Table('Runs');
    #chosen = h('div', { hidden: true }, this.#runs.element);

    /** @param {import('./fleet/data.js').Fleet} fleet */
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

/** @typedef {{row: FleetRow, index: number}} Part */

/** @param {string} view */
const titleOf = (view) => (view === 'total' ? 'Memory at the peak' : view === 'scope' ? 'Cost by call' : `By ${view.replaceAll('-', ' ')}, at the peak`);

/** @param {FleetHead} head @returns {import('./charts/table.js').Column<Part>[]} */
function partColumns(head) {
    /** @type {import('./charts/table.js').Column<Part>[]} */
    const columns = [{ head: 'name', value: ({ row }) => row.name }];
    head.groups.forEach(({ label }, group) => columns.push({ head: label, isFigure: true, value: ({ row }) => row.groups[group].median, show: ({ row }) => size(row.groups[group].median) }));
    head.groups.forEach(({ label }, group) => {
        if (group === head.base) return;
        const of = (/** @type {Part} */ part) => /** @type {import('./fleet/data.js').Change} */ (part.row.changes[group]);
        columns.push({
            head: `change, ${label}`,
            isFigure: true,
            value: (part) => of(part).bytes,
            show: (part) => h('span', { class: of(part).is_change ? (of(part).bytes > 0 ? 'grown' : 'shrunk') : 'quiet' }, growth(of(part).bytes)),
        });
        columns.push({
            head: 'from … to',
            value: (part) => {
                const { interval } = of(part);
                return interval ? interval.map(growth).join(' … ') : 'too few runs';
            },
        });
    });
    return columns;
}

/** A table for each view; a click on a row shows its distribution. @param {FleetHead} head @param {(row: number) => void} choose */
function partTables(head, choose) {
    const parts = head.rows.map((row, index) => ({ row, index }));
    const columns = partColumns(head);
    let chosen = 0;
    /** @type {(() => void)[]} */
    const draw = [];
    return [...new Set(head.rows.map((row) => row.view))].map((view) => {
        const rows = parts.filter(({ row }) => row.view === view);
        /** @type {Table<Part>} */
        const table = new Table(titleOf(view), {
            isChosen: ({ index }) => index === chosen,
            onClick: ({ index }) => {
                chosen = index;
                choose(index);
                draw.forEach((each) => each());
            },
        });
        draw.push(() => table.show(columns, rows, 'medians; significant changes are coloured'));
        draw[draw.length - 1]();
        return h('section', { id: `by-${view}` }, table.element);
    });
}

/** @param {FleetHead} head */
function outlierTable(head) {
    /** @type {Table<import('./fleet/data.js').Outlier>} */
    const table = new Table('Outliers', { empty: 'none' });
    table.show(
        [
            { head: 'run', value: (run) => run.host || run.file },
            { head: 'group', value: (run) => head.groups[run.group].label },
            { head: 'bytes', isFigure: true, value: (run) => run.bytes, show: (run) => size(run.bytes) },
            { head: 'median', isFigure: true, value: (run) => run.median, show: (run) => size(run.median) },
            { head: 'part', value: (run) => (run.view === 'total' ? 'total' : `${run.view} ${run.name}`) },
            { head: 'trace', value: (run) => run.file, isLong: true },
        ],
        head.outliers,
    );
    return h('section', { id: 'outliers' }, table.element);
}

/** @param {FleetHead} head */
function factsTable(head) {
    /** @type {Table<FleetHead['facts'][0]>} */
    const table = new Table('Facts that differ between most runs of the groups', { empty: 'none' });
    /** @type {import('./charts/table.js').Column<FleetHead['facts'][0]>[]} */
    const columns = [{ head: 'name', value: (fact) => fact.label }];
    head.groups.forEach(({ label, runs }, group) =>
        columns.push({
            head: label,
            value: ({ values }) => `${values[group].value || '?'}${values[group].runs < runs ? ` (${Math.floor((100 * values[group].runs) / runs)} %)` : ''}`,
        }),
    );
    table.show(columns, head.facts);
    return h('section', { id: 'facts' }, table.element);
}

/** @param {HTMLElement} place with the headline in it */
async function open(place) {
    const data = await unpack(document.getElementById('data')?.textContent ?? '');
    if (!data.fleet) throw new Error('the data is that of another page');
    const fleet = new Fleet(/** @type {FleetHead} */ (data.fleet), data.runs[0].column);
    const distribution = new DistributionView(fleet);
    const choose = (/** @type {number} */ row) => {
        distribution.show(row);
        distribution.element.scrollIntoView({ block: 'nearest' });
    };
    append(place, distribution.element, ...partTables(fleet.head, choose), outlierTable(fleet.head), factsTable(fleet.head));
    distribution.show(0);
    document.querySelector('footer')?.prepend(h('p', {}, `Made by ${data.generator}.`));
    document.documentElement.dataset.state = 'ready';
}

const place = document.getElementById('page');
if (place) {
    open(place).catch((error) => {
        append(place, h('p', { role: 'alert', class: 'problem' }, `The rest of this page cannot be shown: ${error}`));
        console.error(error);
    });
}
