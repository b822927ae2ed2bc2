// SPDX-License-Identifier: GPL-2.0-or-later
//
// The page of a fleet: how one part is distributed (a row of bars for each group on one scale, and the runs of the chosen bar), and
// tables of each part in each group with its change, of outliers, and of other differences.

import './page.css';
import { append, h, replace } from './base/dom.js';
import { count, growth, size, whole } from './base/units.js';
import { Table, type Column } from './charts/table.js';
import { bins, Fleet, type Bin, type Fact, type FleetHead, type FleetRow, type Outlier } from './fleet/data.js';
import { unpack } from './runs/data.js';

const BARS = 40;

type RunRow = { host: string; board: string; bytes: number; file: string; start: string };

const RUN_COLUMNS: Column<RunRow>[] = [
    { head: 'run', value: (run) => run.host || run.file },
    { head: 'bytes', isFigure: true, value: (run) => run.bytes, show: (run) => size(run.bytes) },
    { head: 'board', value: (run) => run.board },
    { head: 'start', value: (run) => run.start },
    { head: 'trace', value: (run) => run.file, isLong: true },
];

class DistributionView {
    #title = h('h2', {}, '');
    #groups = h('div', { class: 'distributions' });
    #runs = new Table<RunRow>('Runs');
    #chosen = h('div', { hidden: true }, this.#runs.element);
    readonly fleet;
    readonly element;

    constructor(fleet: Fleet) {
        this.fleet = fleet;
        const hint = h('p', { class: 'quiet' }, 'Runs by size. Click a bar for its runs; click a row below for another part.');
        this.element = h('section', { id: 'distribution', 'aria-label': 'Distribution' }, this.#title, hint, this.#groups, this.#chosen);
    }

    show(row: number) {
        const { head } = this.fleet;
        const { view, name, groups } = head.rows[row];
        const values = this.fleet.values(row);
        const all = bins(values, BARS);
        const most = Math.max(1, ...all.flat().map((bin) => bin.runs.length));
        const first = all[0];
        this.#title.textContent = view === 'total' ? 'Total' : `${view.replaceAll('-', ' ')} ${name}`;
        this.#chosen.hidden = true;
        const line = (group: number) => {
            const of = groups[group];
            const bars = all[group].map((bin) => this.#bar(group, bin, values[group], most));
            const text = `${count(of.n, 'run')}: median ${size(of.median)}, spread ${size(of.spread)}, 5 % below ${size(of.low)}, 5 % above ${size(of.high)}`;
            return h(
                'div',
                { class: 'distribution' },
                h('h3', {}, head.groups[group].label),
                h('p', { class: 'quiet' }, text),
                h('div', { class: 'bins' }, ...bars),
            );
        };
        const ends = h('div', { class: 'ends quiet' }, h('span', {}, size(first[0].from)), h('span', {}, size(first[first.length - 1].to)));
        replace(this.#groups, ...groups.map((_, group) => line(group)), ends);
    }

    #bar(group: number, bin: Bin, values: Float64Array, most: number) {
        const n = bin.runs.length;
        const text = `${count(n, 'run')} from ${size(bin.from)} to ${size(bin.to)}`;
        if (!n) return h('span', { class: 'bin' });
        const height = `${Math.max(3, (100 * n) / most)}%`;
        const onclick = () => this.#choose(group, bin, values);
        return h(
            'button',
            { type: 'button', class: 'bin', title: text, 'aria-label': text, 'data-value': n, onclick },
            h('i', { style: { height } }),
        );
    }

    #choose(group: number, bin: Bin, values: Float64Array) {
        const { groups, runs } = this.fleet.head;
        const of = runs[group];
        const rows = bin.runs.map((run) => ({
            host: of.host[run],
            board: of.board[run],
            bytes: values[run],
            file: of.file[run],
            start: of.start[run],
        }));
        rows.sort((a, b) => b.bytes - a.bytes);
        this.#runs.show(RUN_COLUMNS, rows, `${whole(rows.length)} of ${groups[group].label}, from ${size(bin.from)} to ${size(bin.to)}`);
        this.#chosen.hidden = false;
    }
}

type Part = { row: FleetRow; index: number };

const titleOf = (view: string) =>
    view === 'total' ? 'Memory at the peak' : view === 'scope' ? 'Cost by call' : `By ${view.replaceAll('-', ' ')}, at the peak`;

function partColumns(head: FleetHead) {
    const columns: Column<Part>[] = [{ head: 'name', value: ({ row }) => row.name }];
    head.groups.forEach(({ label }, group) => {
        const median = ({ row }: Part) => row.groups[group].median;
        columns.push({ head: label, isFigure: true, value: median, show: (part) => size(median(part)) });
    });
    head.groups.forEach(({ label }, group) => {
        if (group === head.base) return;
        const bytes = ({ row }: Part) => row.changes[group]?.bytes ?? 0;
        const kind = (part: Part) => (part.row.changes[group]?.is_change ? (bytes(part) > 0 ? 'grown' : 'shrunk') : 'quiet');
        const show = (part: Part) => h('span', { class: kind(part) }, growth(bytes(part)));
        columns.push({ head: `change, ${label}`, isFigure: true, value: bytes, show });
        columns.push({ head: 'from … to', value: ({ row }) => row.changes[group]?.interval?.map(growth).join(' … ') ?? 'too few runs' });
    });
    return columns;
}

/** A table for each view; a click on a row shows its distribution. */
function partTables(head: FleetHead, choose: (row: number) => void) {
    const parts = head.rows.map((row, index) => ({ row, index }));
    const columns = partColumns(head);
    let chosen = 0;
    const draw: (() => void)[] = [];
    return [...new Set(head.rows.map((row) => row.view))].map((view) => {
        const rows = parts.filter(({ row }) => row.view === view);
        const table = new Table<Part>(titleOf(view), {
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

function outlierTable(head: FleetHead) {
    const table = new Table<Outlier>('Outliers', { empty: 'none' });
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

function factsTable(head: FleetHead) {
    const table = new Table<Fact>('Facts that differ between most runs of the groups', { empty: 'none' });
    const columns: Column<Fact>[] = [{ head: 'name', value: (fact) => fact.label }];
    head.groups.forEach(({ label, runs }, group) =>
        columns.push({
            head: label,
            value: ({ values }) =>
                `${values[group].value || '?'}${values[group].runs < runs ? ` (${Math.floor((100 * values[group].runs) / runs)} %)` : ''}`,
        }),
    );
    table.show(columns, head.facts);
    return h('section', { id: 'facts' }, table.element);
}

/** `place` has the headline in it. */
async function open(place: HTMLElement) {
    const data = await unpack(document.getElementById('data')?.textContent ?? '');
    if (!data.fleet) throw new Error('the data is that of another page');
    const fleet = new Fleet(data.fleet as FleetHead, data.runs[0].column);
    const distribution = new DistributionView(fleet);
    const choose = (row: number) => {
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
