// SPDX-License-Identifier: GPL-2.0-or-later
//
// Never freed: what was still held when the program ended, by owner, and where most of it came from. A Python program ends
// twice: its own code does, and then the interpreter lets go of all modules, so that little is left at the exit.

import { choice, h } from '../base/dom.js';
import { moment as time, percent, size, whole } from '../base/units.js';
import { Table } from '../charts/table.js';
import { allocatorOf } from '../runs/blocks.js';
import { View } from './view.js';

/** @typedef {import('../runs/run.js').Run} Run */
/** @typedef {{name: string, group: string, host: number, device: number, blocks: number}} Row */
/** @typedef {{place: string, owner: string, kind: string, bytes: number, blocks: number}} Place */

const PLACES = 100;

/** The moments at which a program has ended, with what they are called. @param {Run} run @returns {[string, string][]} */
function ends({ head: { at }, moments }) {
    const found = /** @type {[number, string][]} */ ([
        [at.before_clean_up, "before the interpreter's clean-up"],
        [at.exit, at.before_clean_up < 0 ? 'at exit' : 'at exit, after it'],
    ]);
    return found.filter(([moment]) => moment >= 0 && moments[moment].host + moments[moment].device > 0).map(([moment, name]) => [String(moment), name]);
}

/** The cells that hold what a program could free: libraries stay mapped. @param {Run} run @param {number} moment @returns {number[]} */
function leaked(run, moment) {
    const { bytes } = run.at(moment);
    const cells = [];
    for (let cell = 0; cell < run.nCells; cell++) {
        if (run.side[cell] < 2 && bytes[cell] && !run.head.kinds[run.cells.kind[cell]].is_sampled) cells.push(cell);
    }
    return cells;
}

/** @param {Run} run @param {number} moment @param {number[]} cells @returns {Row[]} */
function byOwner(run, moment, cells) {
    const held = run.at(moment);
    const rows = run.head.owners.map(({ name, group }) => ({ name, group, host: 0, device: 0, blocks: 0 }));
    for (const cell of cells) {
        const row = rows[run.cells.owner[cell]];
        row[run.side[cell] ? 'device' : 'host'] += held.bytes[cell];
        row.blocks += held.blocks[cell];
    }
    return rows.filter((row) => row.host || row.device).sort((a, b) => b.host + b.device - a.host - a.device);
}

/** @param {Run} run @param {number} moment @param {number[]} cells @returns {Place[]} */
function byPlace(run, moment, cells) {
    const held = run.at(moment);
    const { head } = run;
    /** @type {Map<string, Place>} */
    const found = new Map();
    for (const cell of cells) {
        const line = run.cells.line[cell];
        const kind = head.kinds[run.cells.kind[cell]].name;
        const owner = head.owners[run.cells.owner[cell]].name;
        const site = allocatorOf(run, cell);
        const place = head.lines.path[line] ? `${head.lines.label[line]} (${head.lines.function[line]})` : run.cells.places[cell] ? `${site} and below` : site;
        const key = JSON.stringify([place, kind, owner]);
        const row = found.get(key) ?? { place, owner, kind, bytes: 0, blocks: 0 };
        row.bytes += held.bytes[cell];
        row.blocks += held.blocks[cell];
        found.set(key, row);
    }
    return [...found.values()].sort((a, b) => b.bytes - a.bytes).slice(0, PLACES);
}

/** @param {Run} run @param {Row[]} rows @returns {import('../charts/table.js').Column<Row>[]} */
function columns(run, rows) {
    const all = rows.reduce((bytes, row) => bytes + row.host + row.device, 0);
    /** @type {import('../charts/table.js').Column<Row>[]} */
    const made = [
        { head: 'owner', value: (row) => row.name },
        { head: 'group', value: (row) => row.group },
    ];
    for (const side of /** @type {('host'|'device')[]} */ (['host', 'device'])) {
        if (run.uses(side)) made.push({ head: side, isFigure: true, value: (row) => row[side], show: (row) => (row[side] ? size(row[side]) : '–') });
    }
    if (!run.head.is_discrete || !run.uses('device')) {
        made.push({ head: 'share', isFigure: true, value: (row) => (100 * (row.host + row.device)) / all, show: (row) => percent(row.host + row.device, all), title: () => '' });
    }
    made.push({ head: 'blocks', isFigure: true, value: (row) => row.blocks, show: (row) => whole(row.blocks) });
    return made;
}

/** @type {import('../charts/table.js').Column<Place>[]} */
const PLACE_COLUMNS = [
    { head: 'size', isFigure: true, value: (row) => row.bytes, show: (row) => size(row.bytes) },
    { head: 'blocks', isFigure: true, value: (row) => row.blocks, show: (row) => whole(row.blocks) },
    { head: 'kind', value: (row) => row.kind },
    { head: 'owner', value: (row) => row.owner },
    { head: 'place', isLong: true, value: (row) => row.place },
];

/** @param {Row[]} rows @returns {Row} */
const sumOf = (rows) => rows.reduce((all, row) => ({ ...all, host: all.host + row.host, device: all.device + row.device, blocks: all.blocks + row.blocks }), { name: 'total', group: '', host: 0, device: 0, blocks: 0 });

export class Leaks extends View {
    static id = 'leaks';
    static title = 'Never freed';

    /** @param {Run} run */
    static fits(run) {
        return ends(run).some(([moment]) => leaked(run, Number(moment)).length > 0);
    }

    /** @type {Table<Row>} */
    #grid = new Table('Never freed, by owner', { empty: 'nothing was left', sum: sumOf });
    /** @type {Table<Place>} */
    #places = new Table('Never freed, by place', { limit: 10, empty: 'nothing was left' });

    content() {
        const found = ends(this.run);
        const show = (/** @type {string} */ value) => this.#show(Number(value), found.find(([index]) => index === value)?.[1] ?? '');
        show(found[0][0]);
        return [found.length > 1 ? h('div', { class: 'above' }, choice('Held', found, found[0][0], show)) : '', this.#grid.element, this.#places.element];
    }

    /** @param {number} moment @param {string} name */
    #show(moment, name) {
        const { run } = this;
        const cells = leaked(run, moment);
        const rows = byOwner(run, moment, cells);
        this.#grid.show(columns(run, rows), rows, `${name} (${time(run.moments[moment].time, run.head.unit)})`);
        this.#places.show(PLACE_COLUMNS, byPlace(run, moment, cells), 'Python lines where there are any, else the function that allocated');
    }
}
