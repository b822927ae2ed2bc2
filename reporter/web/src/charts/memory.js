// SPDX-License-Identifier: GPL-2.0-or-later
//
// Memory over time: stacked areas with the peak, snapshots, regions, marks and start-up calls (marks.js). The line on top is the
// highest total since the sample before. A picture shows the plot as the reader sees it.

import uPlot from 'uplot';
import { h, replace } from '../base/dom.js';
import { moment as time, size } from '../base/units.js';
import { areas, edges, exact, machineAt, nearestMoment, times, valueAt } from '../runs/areas.js';
import { drawMarks, LANE, lanesOf, NAMES } from './marks.js';
import { theme, TimePlot } from './plot.js';
import { labels, ticksOf } from '../base/ticks.js';
import { INK, MARGIN, number, rgb, title, WIDTH } from './picture.js';

/** @typedef {import('../runs/page.js').Page} Page */
/** @typedef {import('../runs/run.js').Dimension} Dimension */
/** @typedef {import('../runs/areas.js').Side} Side */
/** @typedef {import('../runs/areas.js').Area} Area */
/** @typedef {import('./picture.js').Picture} Picture */

const LEFT = 92;
const RIGHT = WIDTH - 24;
const PICTURE_HEIGHT = 330;
const ABOVE = 1.1; // of the axis, beyond the most that is shown: there the flags have their names
const COLUMN = 1.5; // pixels: what lies closer together is shown by the fullest of it

/** Of the times in view, and one beyond it each way, those that are pixels apart. @param {Float64Array} x @param {Float64Array} totals @param {(at: number) => number} place */
function chosen(x, totals, place) {
    /** @type {number[]} */
    const kept = [];
    /** @type {number[]} */
    let run = [];
    const close = () => {
        if (!run.length) return;
        const fullest = run.reduce((most, i) => (totals[i] > totals[most] ? i : most));
        kept.push(...[...new Set([run[0], fullest, run[run.length - 1]])].sort((a, b) => a - b));
        run = [];
    };
    for (let i = 0; i < x.length; i++) {
        if (i + 1 < x.length && place(x[i + 1]) < LEFT) continue;
        if (i && place(x[i - 1]) > RIGHT) break;
        if (run.length && Math.floor(place(x[i]) / COLUMN) !== Math.floor(place(x[run[0]]) / COLUMN)) close();
        run.push(i);
    }
    close();
    return kept;
}

/** @param {Picture} picture @param {MemoryPlot} plot */
export function drawMemory(picture, plot) {
    const { run, side, x, page } = plot;
    const { unit } = run.head;
    if (side !== 'both') {
        picture.text(MARGIN, picture.top + 12, side === 'host' ? 'Host memory' : 'Device memory', { size: 14, isBold: true });
        picture.top += 22;
    }
    const top = picture.top + 4;
    const { min = x[0], max = x[x.length - 1] } = plot.plot?.scales.x ?? {};
    const across = (/** @type {number} */ at) => LEFT + ((at - (min ?? 0)) / ((max ?? 1) - (min ?? 0) || 1)) * (RIGHT - LEFT);
    const rows = chosen(x, plot.exact, across);
    const most = ABOVE * rows.reduce((all, i) => Math.max(all, plot.exact[i]), 1);
    const up = (/** @type {number} */ bytes) => top + PICTURE_HEIGHT * (1 - bytes / most);
    const bottom = up(0);
    const sizes = ticksOf('B', 0, most, 7);
    labels('B', sizes, 0, most).forEach((text, i) => {
        picture.line(LEFT, up(sizes[i]), RIGHT, up(sizes[i]), INK.grid);
        picture.text(LEFT - 8, up(sizes[i]) + 4, text, { size: 12, fill: INK.quiet, anchor: 'end' });
    });
    const times = ticksOf(unit, min ?? 0, max ?? 0, 10);
    labels(unit, times, min ?? 0, max ?? 0).forEach((text, i) => {
        picture.line(across(times[i]), bottom, across(times[i]), bottom + 5, INK.quiet);
        picture.text(across(times[i]), bottom + 19, text, { size: 12, fill: INK.quiet, anchor: across(times[i]) > RIGHT - 20 ? 'end' : 'middle' });
    });
    // Clip areas that begin before the span that is shown.
    const id = `of-${side}`;
    picture.add(`<clipPath id="${id}"><rect x="${LEFT}" y="${number(top)}" width="${RIGHT - LEFT}" height="${PICTURE_HEIGHT}"/></clipPath><g clip-path="url(#${id})">`);
    const line = (/** @type {Float64Array} */ bytes) => rows.map((i) => `${number(across(x[i]))},${number(up(bytes[i]))}`).join('L');
    for (const area of edges(run, plot.areas, x, plot.now).reverse()) {
        const ends = [`${number(across(x[rows[0]]))},${number(bottom)}`, `${number(across(x[rows[rows.length - 1]]))},${number(bottom)}`];
        picture.add(`<path d="M${ends[0]}L${line(area.sums)}L${ends[1]}Z" fill="${rgb(area.colour)}" stroke="${INK.back}" stroke-width="0.5">${title(area.name)}</path>`);
    }
    picture.add(`<path d="M${line(plot.exact)}" fill="none" stroke="${INK.text}">${title('peak between samples')}</path></g>`);
    picture.line(LEFT, bottom, RIGHT, bottom, INK.quiet);
    drawFlags(picture, plot, { across, up, top, bottom });
    const at = run.moments[page.moment];
    picture.top = bottom + 30;
    picture.text(MARGIN, picture.top + 12, `At ${run.label(page.moment)}:`, { fill: INK.quiet });
    picture.top += 22;
    picture.legend(plot.areas.map((area) => ({ colour: area.colour, name: area.name, figure: size(at ? area.bytes[at.index] : 0) })));
}

/** The peak, failed allocations, and the chosen moments. @param {Picture} picture @param {MemoryPlot} plot @param {{across: (at: number) => number, up: (bytes: number) => number, top: number, bottom: number}} scale */
function drawFlags(picture, { run, side, page }, { across, up, top, bottom }) {
    const isIn = (/** @type {number} */ at) => across(at) >= LEFT - 1 && across(at) <= RIGHT + 1;
    const { peaks, oom, unit } = run.head;
    const peak = peaks[side === 'both' ? 'total' : side];
    if (peak && isIn(peak.time)) {
        const bytes = side === 'both' ? peak.host + peak.device : peak[side];
        picture.flag(across(peak.time), top + 10, up(bytes), RIGHT, `peak: ${size(bytes)} at ${time(peak.time, unit)}`, INK.text, '4 3');
    }
    for (const incident of oom.incidents.filter((each) => each.outcome !== 'retried' && isIn(each.time)).slice(-3)) {
        picture.flag(across(incident.time), top + 26, bottom, RIGHT, 'out of memory', INK.alarm, '4 3');
    }
    const moments = /** @type {[number|null, string][]} */ ([
        [page.moment === run.head.at.peak ? null : page.moment, INK.accent],
        [page.other, INK.other],
    ]);
    for (const [index, colour] of moments) {
        const at = index === null ? undefined : run.moments[index];
        if (at && isIn(at.time)) picture.flag(across(at.time), top + 42, bottom, RIGHT, index === page.other ? `vs. ${at.name}` : at.name, colour, '');
    }
}

const HEIGHT = 340;

/** Description of an owner, as a tooltip. @param {import('../runs/run.js').Run} run @param {Dimension} dimension @param {string} name */
const aboutOf = (run, dimension, name) => (dimension === 'owner' && run.head.owners.find((owner) => owner.name === name)?.about) || undefined;

/** One plot: of all memory, or of one pool. */
export class MemoryPlot extends TimePlot {
    /** @param {Page} page @param {Side} side @param {(text: string[]) => void} say what is under the pointer @param {string} key of plots that share an axis */
    constructor(page, side, say, key) {
        const what = side === 'both' ? 'Memory' : side === 'host' ? 'Host memory' : 'Device memory';
        const canvas = h('div', {
            class: 'plot',
            tabIndex: 0,
            role: 'slider',
            'aria-label': `${what} over time: arrow keys choose a moment, with shift another one to compare with`,
            'aria-valuemin': 0,
            'aria-valuemax': Math.max(0, page.run.moments.length - 1),
            onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
        });
        const lanes = lanesOf(page.run);
        super(page, key, canvas, NAMES + lanes * LANE, HEIGHT + NAMES + lanes * LANE, (u) => drawMarks(u, this));
        this.side = side;
        this.say = say;
        this.lanes = lanes;
        this.x = times(this.run);
        const { now, most } = exact(this.run, this.x, side);
        this.now = now;
        this.exact = most;
        this.legend = h('ul', { class: 'legend' });
        this.element = h('figure', {}, h('figcaption', {}, h('b', {}, `${what} over time`)), this.canvas, this.legend);
        /** Figures of another tool's log. */
        this.beside = this.run.parts.machine.filter((figure) => figure.beside === side);
        /** @type {Area[]} */
        this.areas = [];
    }

    /** @param {Dimension} dimension */
    draw(dimension) {
        const { run } = this;
        this.areas = areas(run, dimension, this.side);
        this.theme = theme();
        this.#make();
        replace(
            this.legend,
            ...this.beside.map(({ label }) => h('li', { class: 'key beside' }, h('i', { class: 'sign-beside' }), `${label} `, h('b', {}))),
            ...this.areas.map((area) => h('li', { class: 'key', 'data-name': area.name, title: aboutOf(run, dimension, area.name) }, h('i', { style: { background: area.colour } }), `${area.name} `, h('b', {}))),
        );
        this.update();
    }

    #make() {
        const { run, x, beside } = this;
        // The topmost is drawn first.
        const stacked = edges(run, this.areas, x, this.now).reverse();
        const [back, text, problem] = ['--back', '--text', '--problem'].map((name) => this.theme[name]);
        this.make(
            [
                ...stacked.map((area) => ({ label: area.name, fill: area.colour, stroke: back, width: 0.5 })),
                { label: 'exact total', stroke: text, width: 1 },
                ...beside.map(({ label }) => ({ label, stroke: problem, width: 1.5, dash: [6, 3], paths: uPlot.paths.stepped?.({ align: 1 }) })),
            ],
            [...stacked.map((area) => area.sums), this.exact, ...beside.map((figure) => Array.from(x, (at) => valueAt(figure, at)))],
            { setCursor: [(u) => this.#hover(u)] },
        );
    }

    /** After another moment was chosen: the lines, the figures of the legend, and what a screen reader says. */
    update() {
        const { page, run } = this;
        this.overlay.moved(this.plot);
        const chosen = run.moments[page.moment];
        if (!chosen) return;
        [...this.legend.querySelectorAll('.beside b')].forEach((figure, i) => (figure.textContent = size(valueAt(this.beside[i], chosen.time) ?? 0)));
        [...this.legend.querySelectorAll('[data-name] b')].forEach((figure, i) => (figure.textContent = size(this.areas[i].bytes[page.moment])));
        this.canvas.setAttribute('aria-valuenow', String(page.moment));
        const held = this.side === 'both' ? chosen.host + chosen.device : chosen[this.side];
        this.canvas.setAttribute('aria-valuetext', `${chosen.name} at ${time(chosen.time, run.head.unit)}: ${size(held)}`);
    }

    /** Describes the moment at the pointer. @param {uPlot} u */
    #hover(u) {
        const { left = -1, idx } = u.cursor;
        if (left < 0 || idx === null || idx === undefined) return;
        const { run } = this;
        const { unit } = run.head;
        const at = this.x[idx];
        const moment = run.moments[nearestMoment(run, u.posToVal(left, 'x'))];
        if (!moment) return;
        const parts = this.areas.map((area) => ({ name: area.name, bytes: area.bytes[moment.index] })).filter((part) => part.bytes > 0);
        parts.sort((a, b) => b.bytes - a.bytes);
        const list = parts.slice(0, 6).map((part) => `${part.name} ${size(part.bytes)}`).join(', ');
        this.say([
            `${time(at, unit)}: ${size(this.exact[idx])}${this.side === 'both' ? '' : ` ${this.side}`}`,
            `nearest: ${moment.name} at ${time(moment.time, unit)}: ${list || 'nothing'}${parts.length > 6 ? ', …' : ''}`,
            ...this.#eventsAt(u, at, left),
            machineAt(run, at),
        ]);
    }

    /** @param {uPlot} u @param {number} at @param {number} left the same in pixels */
    #eventsAt(u, at, left) {
        const { regions, marks, oom, scopes } = this.run.head;
        const isNear = (/** @type {number} */ time) => Math.abs(u.valToPos(time, 'x') - left) < 5;
        const inside = regions.filter((region) => region.begin <= at && (region.end ?? Infinity) >= at).map((region) => region.text);
        const near = marks.filter((mark) => isNear(mark.time)).map((mark) => mark.text);
        const failed = oom.incidents.filter((incident) => isNear(incident.time)).map((incident) => incident.verdict);
        // Most calls are narrower than a pointer.
        const [from, to] = [u.posToVal(left - 3, 'x'), u.posToVal(left + 3, 'x')];
        const calls = scopes.filter((scope) => scope.begin <= to && scope.end >= from).map((scope) => scope.name);
        return [
            inside.length ? `in ${inside.join(' › ')}` : '',
            near.length ? `mark: ${near.join(', ')}` : '',
            failed.length ? `out of memory: ${failed.join(', ')}` : '',
            calls.length ? `during ${calls.slice(0, 3).join(', ')}` : '',
        ];
    }

    /** @param {KeyboardEvent} event */
    #key(event) {
        const { page, run } = this;
        const last = run.moments.length - 1;
        const from = event.shiftKey ? (page.against ?? page.chosen) : page.chosen;
        const steps = /** @type {Record<string, number>} */ ({
            ArrowLeft: from - 1,
            ArrowRight: from + 1,
            PageUp: from - 10,
            PageDown: from + 10,
            Home: 0,
            End: last,
            p: run.head.at.peak,
        });
        if (event.key === 'Escape') {
            if (this.isZoomed) this.resetAll?.();
            else page.compare(null);
        } else if (event.key in steps && !event.ctrlKey && !event.altKey && !event.metaKey) {
            const chosen = Math.max(0, Math.min(last, steps[event.key]));
            if (event.shiftKey) page.compare(chosen);
            else page.select(chosen);
        } else return;
        event.preventDefault();
    }
}
