// SPDX-License-Identifier: GPL-2.0-or-later
//
// Leaks: lines that keep growing, and memory still allocated at exit, by owner and call site. A Python program ends twice: its own
// code, then the interpreter, which drops all modules. The reporter reads leaks before the second, so all reports agree.

import { h } from '../base/dom.js';
import { moment as time, percent, size, whole } from '../base/units.js';
import { Table } from '../charts/table.js';
import { View } from './view.js';

/** @typedef {import('../runs/run.js').Run} Run */
/** @typedef {import('../runs/data.js').LeaksData} LeaksData */
/** @typedef {LeaksData['owners'][number]} Row */
/** @typedef {LeaksData['places'][number]} Place */
/** @typedef {LeaksData['growing'][number]} Growing */

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
    { head: 'call site', isLong: true, value: (row) => row.label },
];

/** @param {Run} run @param {LeaksData} leaks @returns {import('../charts/table.js').Column<Growing>[]} */
function growthColumns(run, leaks) {
    return [
        { head: 'line', isLong: true, value: (row) => row.label },
        { head: 'owner', value: (row) => row.owner },
        { head: `per ${leaks.step}`, isFigure: true, value: (row) => row.slope, show: (row) => size(Math.round(row.slope)) },
        { head: 'grown by', isFigure: true, value: (row) => row.grown, show: (row) => size(row.grown) },
        { head: 'at exit', isFigure: true, value: (row) => row.held, show: (row) => size(row.held) },
        { head: 'since', isFigure: true, value: (row) => row.since, show: (row) => time(row.since, run.head.unit) },
    ];
}

/** @param {Row[]} rows @returns {Row} */
const sumOf = (rows) => rows.reduce((all, row) => ({ ...all, host: all.host + row.host, device: all.device + row.device, blocks: all.blocks + row.blocks }), { name: 'total', group: '', host: 0, device: 0, blocks: 0 });

export class Leaks extends View {
    static id = 'leaks';
    static title = 'Still allocated at exit';
    static isWhole = true;

    /** @param {Run} run */
    static fits(run) {
        return run.head.leaks !== null && run.head.leaks.owners.length > 0;
    }

    /** @type {Table<Growing>} */
    #growing = new Table('Growing', { limit: 10 });
    /** @type {Table<Row>} */
    #grid = new Table('Still allocated at exit, by owner', { sum: sumOf });
    /** @type {Table<Place>} */
    #places = new Table('Still allocated at exit, by call site', { limit: 10 });

    content() {
        const { run } = this;
        const leaks = /** @type {LeaksData} */ (run.head.leaks);
        const others = leaks.not_counted.map(([what, bytes]) => `${size(bytes)} ${what}`);
        const growth = leaks.unknown ? `Growth is unknown: ${leaks.unknown}.` : leaks.growing.length ? '' : 'No line keeps growing.';
        if (leaks.growing.length) this.#growing.show(growthColumns(run, leaks), leaks.growing, leaks.n_steps ? `over ${whole(leaks.n_steps)} times ${leaks.step}` : '');
        this.#grid.show(columns(run, leaks.owners), leaks.owners, `${size(leaks.bytes)} at ${time(leaks.time, run.head.unit)}`);
        this.#places.show(PLACE_COLUMNS, leaks.places, 'Python lines where there are any, else the function that allocated');
        return [
            h('p', { class: 'quiet' }, others.length ? `Not counted: ${others.join(', ')}; pages of files and stacks. ${growth}` : growth),
            leaks.growing.length ? this.#growing.element : '',
            this.#grid.element,
            this.#places.element,
        ];
    }
}
