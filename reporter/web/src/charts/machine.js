// SPDX-License-Identifier: GPL-2.0-or-later
//
// The machine around the program, below the timeline and on its axis: how much memory was left, and whether it ran short.

import uPlot from 'uplot';
import { h } from '../base/dom.js';
import { moment as time, size } from '../base/units.js';
import { times, valueAt } from '../runs/areas.js';
import { listColour } from '../runs/colours.js';
import { theme, TimePlot } from './plot.js';
import { Table } from './table.js';

/** @typedef {import('../runs/page.js').Page} Page */
/** @typedef {import('../runs/run.js').Run} Run */
/** @typedef {import('../runs/parts.js').Figure} Figure */
/** @typedef {{figure: Figure, colour: string, first: number, chosen: number|null, last: number, worst: number, worstAt: number}} Row */

const HEIGHT = 180;

/** @param {Run} run @param {number} now @returns {Row[]} */
function rowsOf(run, now) {
    return run.parts.machine.map((figure, i) => {
        const { bytes, wantsMuch } = figure;
        const worst = bytes.reduce((worst, value) => ((wantsMuch ? value < worst : value > worst) ? value : worst), bytes[0]);
        return { figure, colour: listColour(i), first: bytes[0], chosen: valueAt(figure, now), last: bytes[bytes.length - 1], worst, worstAt: figure.time[bytes.indexOf(worst)] };
    });
}

export class MachinePlot extends TimePlot {
    /** @param {Page} page @param {string} key of plots that share an axis */
    constructor(page, key) {
        const canvas = h('div', { class: 'machine', role: 'img', 'aria-label': 'System memory over time; the table below has the figures' });
        super(page, key, canvas, 10, HEIGHT, (u) => this.#mark(u));
        const figures = this.run.parts.machine;
        const all = times(this.run);
        const within = figures.flatMap(({ time }) => Array.from(time)).filter((at) => at > all[0] && at < all[all.length - 1]);
        this.x = Float64Array.from(new Set([...all, ...within])).sort();
        /** @type {Table<Row>} */
        this.grid = new Table('System', { note: this.#note() });
        const keys = figures.map(({ label }, i) => h('li', { class: 'key' }, h('i', { style: { background: listColour(i) } }), label));
        this.element = h('figure', {}, this.canvas, h('ul', { class: 'keys' }, ...keys));
    }

    #note() {
        const { short_at, board_bytes, unit } = this.run.head;
        const notes = [board_bytes ? `with ${size(board_bytes)} of memory` : '', short_at === null ? '' : `memory ran short at ${time(short_at, unit)}`];
        return notes.filter((note) => note).join('; ');
    }

    draw() {
        const figures = this.run.parts.machine;
        this.theme = theme();
        this.make(
            figures.map(({ label }, i) => ({ label, stroke: listColour(i), width: 1.5, paths: uPlot.paths.stepped?.({ align: 1 }) })),
            figures.map((figure) => Array.from(this.x, (at) => valueAt(figure, at))),
        );
        this.update();
    }

    /** After another moment was chosen. */
    update() {
        const { page, run } = this;
        const { unit } = run.head;
        this.follow();
        this.overlay.moved(this.plot);
        const now = run.moments[page.moment];
        /** @type {(head: string, value: (row: Row) => number|null) => import('./table.js').Column<Row>} */
        const bytes = (head, value) => ({ head, isFigure: true, value: (row) => value(row) ?? '', show: (row) => (value(row) === null ? '' : size(value(row) ?? 0)) });
        this.grid.show(
            [
                { head: 'figure', value: (row) => row.figure.label, show: (row) => h('span', { class: 'key' }, h('i', { style: { background: row.colour } }), row.figure.label) },
                bytes('start', (row) => row.first),
                bytes(now ? `at ${now.name}` : 'now', (row) => row.chosen),
                bytes('end', (row) => row.last),
                bytes('min or max', (row) => row.worst),
                { head: 'when', isFigure: true, value: (row) => row.worstAt, show: (row) => time(row.worstAt, unit), title: () => '' },
            ],
            rowsOf(run, now?.time ?? 0),
        );
    }

    /** @param {uPlot} u */
    #mark(u) {
        const { ctx, bbox } = u;
        const rule = (/** @type {number} */ at, /** @type {string} */ colour) => {
            const x = u.valToPos(at, 'x', true);
            if (x < bbox.left - 1 || x > bbox.left + bbox.width + 1) return;
            ctx.fillStyle = colour;
            ctx.fillRect(x - 0.75 * devicePixelRatio, bbox.top, 1.5 * devicePixelRatio, bbox.height);
        };
        const { run, page } = this;
        ctx.save();
        if (run.head.short_at !== null) rule(run.head.short_at, this.theme['--problem']);
        if (page.other !== null) rule(run.moments[page.other].time, this.theme['--other']);
        const chosen = run.moments[page.moment];
        if (chosen) rule(chosen.time, this.theme['--accent']);
        ctx.restore();
    }
}
