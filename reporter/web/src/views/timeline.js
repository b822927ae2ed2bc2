// SPDX-License-Identifier: GPL-2.0-or-later
//
// Memory over time: stacked areas by owner, kind, group, library, role or process, and on them the peak, the snapshots,
// regions, marks and start-up calls. At the snapshots the areas are exact; between them their sum is, and how it is shared
// out is interpolated. The line on top is the most since the total told before.

import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { coloursOf, REST } from '../colours.js';
import { append, choice, h, replace } from '../dom.js';
import { axes, chooseByClick, cursor, isZoomed, nearestMoment, overlay, theme, times, widthOf, zoomOut } from '../plot.js';
import { moment as time, size } from '../units.js';
import { machineAt, MachinePlot } from './machine.js';
import { sidesOf } from './sums.js';

/** @typedef {import('../page.js').Page} Page */
/** @typedef {import('../run.js').Run} Run */
/** @typedef {import('../run.js').Dimension} Dimension */
/** @typedef {'both'|'host'|'device'} Side */
/** @typedef {{name: string, colour: string, bytes: Float64Array}} Area bytes by moment */

const MOST_AREAS = 12;
const HEIGHT = 340;
const LANE = 16; // pixels, of a row of regions
const MOST_LANES = 4;
const MOST_RULES = 20; // marks in view, beyond which they are ticks

/** The names that matter most, and the rest as one. @param {Run} run @param {Dimension} dimension @param {Side} side @returns {Area[]} the largest first */
function areas(run, dimension, side) {
    const { names } = run.dimension(dimension);
    const series = run.series(dimension, side);
    const weights = series.map((bytes) => bytes.reduce((most, value) => (value > most ? value : most), 0));
    const colours = coloursOf(run, dimension);
    const order = names.map((_, i) => i).filter((i) => weights[i] > 0).sort((a, b) => weights[b] - weights[a]);
    const found = order.slice(0, MOST_AREAS).map((i) => ({ name: names[i], colour: colours[i], bytes: series[i] }));
    const small = order.slice(MOST_AREAS);
    if (small.length) {
        const rest = new Float64Array(run.moments.length);
        for (const i of small) series[i].forEach((value, moment) => (rest[moment] += value));
        found.push({ name: `${small.length} others`, colour: REST, bytes: rest });
    }
    return found;
}

/** Values known at some times, on the straight line between them. @param {Float64Array} x @param {number[]} at ascending @param {Float64Array} values */
function interpolated(x, at, values) {
    const result = new Float64Array(x.length);
    let next = 0;
    for (let i = 0; i < x.length; i++) {
        // Of several moments at one time the last one counts, as it does when the page is asked for that time.
        while (next < at.length && at[next] <= x[i]) next++;
        if (!next) result[i] = 0;
        else if (next === at.length || at[next - 1] === x[i]) result[i] = values[next - 1];
        else result[i] = values[next - 1] + ((values[next] - values[next - 1]) * (x[i] - at[next - 1])) / (at[next] - at[next - 1]);
    }
    return result;
}

/** The totals at the times of the axis as they were last told, and the most since then. @param {Run} run @param {Float64Array} x @param {Side} side */
function exact(run, x, side) {
    /** @type {Map<number, number>} */
    const most = new Map();
    /** @type {Map<number, number>} */
    const now = new Map();
    const tell = (/** @type {number} */ at, /** @type {number} */ bytes, /** @type {number} */ maximum) => {
        now.set(at, bytes);
        most.set(at, Math.max(maximum, most.get(at) ?? 0));
    };
    const { outline } = run;
    outline.time.forEach((at, row) => {
        const bytes = side === 'both' ? outline.host[row] + outline.device[row] : outline[side][row];
        tell(at, bytes, side === 'both' ? outline.maximum[row] : bytes);
    });
    for (const moment of run.moments) {
        const bytes = side === 'both' ? moment.host + moment.device : moment[side];
        tell(moment.time, bytes, bytes);
    }
    return { now: Float64Array.from(x, (at) => now.get(at) ?? 0), most: Float64Array.from(x, (at) => most.get(at) ?? 0) };
}

/** One plot: of all memory, or of one pool. */
class Plot {
    /** @param {Page} page @param {Side} side @param {(text: string[]) => void} say what is under the pointer @param {string} key of plots that share an axis */
    constructor(page, side, say, key) {
        this.page = page;
        this.run = page.run;
        this.side = side;
        this.say = say;
        this.key = key;
        this.x = times(this.run);
        const { now, most } = exact(this.run, this.x, side);
        this.now = now;
        this.exact = most;
        this.legend = h('ul', { class: 'legend' });
        const what = side === 'both' ? 'Memory' : side === 'host' ? 'Host memory' : 'Device memory';
        this.canvas = h('div', {
            class: 'plot',
            tabIndex: 0,
            role: 'slider',
            'aria-label': `${what} over time: arrow keys choose a moment, with shift another one to compare with`,
            'aria-valuemin': 0,
            'aria-valuemax': Math.max(0, this.run.moments.length - 1),
            onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
        });
        this.element = h('figure', {}, side !== 'both' && h('figcaption', {}, h('b', {}, what)), this.canvas, this.legend);
        /** @type {uPlot|null} */
        this.plot = null;
        /** @type {Area[]} */
        this.areas = [];
        /** @type {Record<string, string>} */
        this.theme = {};
        this.overlay = overlay((u) => this.#mark(u));
        this.lanes = Math.min(MOST_LANES, this.run.head.regions.reduce((most, region) => Math.max(most, region.depth + 1), 0));
    }

    /** @param {Dimension} dimension */
    draw(dimension) {
        const { run, x } = this;
        const at = run.moments.map((moment) => moment.time);
        this.areas = areas(run, dimension, this.side);
        // The largest lies at the bottom. Each is drawn up to the sum of it and all below, the topmost first.
        let below = new Float64Array(x.length);
        const stacked = this.areas.map((area) => {
            const sums = interpolated(x, at, area.bytes);
            for (let i = 0; i < sums.length; i++) sums[i] += below[i];
            below = sums;
            return { ...area, sums };
        });
        for (let i = 0; i < x.length; i++) {
            const factor = below[i] ? this.now[i] / below[i] : 1;
            if (factor !== 1) for (const { sums } of stacked) sums[i] *= factor;
        }
        stacked.reverse();
        this.theme = theme();
        /** @type {uPlot.Series[]} */
        const series = [{}];
        for (const area of stacked) series.push({ label: area.name, fill: area.colour, stroke: area.colour, width: 1, points: { show: false } });
        series.push({ label: 'exact total', stroke: this.theme['--text'], width: 1, points: { show: false } });
        this.plot?.destroy();
        this.plot = new uPlot(
            {
                width: widthOf(this.canvas),
                height: HEIGHT + this.lanes * LANE,
                padding: [10 + this.lanes * LANE, 12, 0, 0],
                legend: { show: false },
                cursor: cursor(this.key, () => this.resetAll?.()),
                scales: { x: { time: false }, y: { range: (_u, _min, max) => [0, (max || 1) * 1.06] } },
                axes: axes(this.theme, run.head.unit),
                series,
                hooks: {
                    draw: [this.overlay.drawn],
                    setCursor: [(u) => this.#hover(u)],
                    setScale: [(_u, key) => key === 'x' && this.onZoom?.()],
                },
            },
            [Array.from(x), ...stacked.map((area) => Array.from(area.sums)), Array.from(this.exact)],
            this.canvas,
        );
        chooseByClick(this.plot, this.page);
        replace(
            this.legend,
            ...this.areas.map((area) => h('li', { class: 'key', 'data-name': area.name }, h('i', { style: { background: area.colour } }), `${area.name} `, h('b', {}))),
        );
        this.update();
    }

    /** @type {(() => void)|undefined} */
    onZoom;
    /** Shows the whole run in all plots of the section. @type {(() => void)|undefined} */
    resetAll;

    get isZoomed() {
        return isZoomed(this.plot, this.x);
    }

    reset() {
        zoomOut(this.plot, this.x);
    }

    resize() {
        this.plot?.setSize({ width: widthOf(this.canvas), height: HEIGHT + this.lanes * LANE });
    }

    /** After another moment was chosen: the lines, the figures of the legend, and what a screen reader says. */
    update() {
        const { page, run } = this;
        this.overlay.moved(this.plot);
        const chosen = run.moments[page.moment];
        if (!chosen) return;
        [...this.legend.querySelectorAll('b')].forEach((figure, i) => (figure.textContent = size(this.areas[i].bytes[page.moment])));
        this.canvas.setAttribute('aria-valuenow', String(page.moment));
        const held = this.side === 'both' ? chosen.host + chosen.device : chosen[this.side];
        this.canvas.setAttribute('aria-valuetext', `${chosen.name} at ${time(chosen.time, run.head.unit)}: ${size(held)}`);
    }

    /** @param {uPlot} u */
    #hover(u) {
        const { left = -1, idx } = u.cursor;
        if (left < 0 || idx === null || idx === undefined) return;
        const { run } = this;
        const unit = run.head.unit;
        const at = this.x[idx];
        const moment = run.moments[nearestMoment(run, u.posToVal(left, 'x'))];
        if (!moment) return;
        const inside = run.head.regions.filter((region) => region.begin <= at && (region.end ?? Infinity) >= at).map((region) => region.text);
        const marks = run.head.marks.filter((mark) => Math.abs(u.valToPos(mark.time, 'x') - left) < 5).map((mark) => mark.text);
        const failed = run.head.exhaustion.incidents.filter((incident) => Math.abs(u.valToPos(incident.time, 'x') - left) < 5).map((incident) => incident.verdict);
        // Most calls are narrower than a pointer.
        const [from, to] = [u.posToVal(left - 3, 'x'), u.posToVal(left + 3, 'x')];
        const calls = run.head.scopes.filter((scope) => scope.begin <= to && scope.end >= from).map((scope) => scope.name);
        const parts = this.areas.map((area) => ({ name: area.name, bytes: area.bytes[moment.index] })).filter((part) => part.bytes > 0);
        parts.sort((a, b) => b.bytes - a.bytes);
        const list = parts.slice(0, 6).map((part) => `${part.name} ${size(part.bytes)}`).join(', ');
        this.say([
            `${time(at, unit)}: ${size(this.exact[idx])}${this.side === 'both' ? '' : ` ${this.side}`}`,
            `nearest: ${moment.name} at ${time(moment.time, unit)}: ${list || 'nothing'}${parts.length > 6 ? ', …' : ''}`,
            inside.length ? `in ${inside.join(' › ')}` : '',
            marks.length ? `mark: ${marks.join(', ')}` : '',
            failed.length ? `out of memory: ${failed.join(', ')}` : '',
            calls.length ? `during ${calls.slice(0, 3).join(', ')}` : '',
            machineAt(run, at),
        ]);
    }

    /** @param {KeyboardEvent} event */
    #key(event) {
        const { page, run } = this;
        const last = run.moments.length - 1;
        const from = event.shiftKey ? (page.other ?? page.moment) : page.moment;
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

    /** What lies over the areas. @param {uPlot} u */
    #mark(u) {
        const themed = (/** @type {string} */ name) => this.theme[name];
        const { ctx, bbox } = u;
        const { run, page } = this;
        const ratio = devicePixelRatio;
        const position = (/** @type {number} */ at) => u.valToPos(at, 'x', true);
        const isIn = (/** @type {number} */ x) => x >= bbox.left - 1 && x <= bbox.left + bbox.width + 1;
        const bottom = bbox.top + bbox.height;
        ctx.save();
        ctx.font = `${11 * ratio}px system-ui, sans-serif`;
        ctx.textBaseline = 'middle';
        ctx.textAlign = 'left';

        // Regions: lanes above the plot.
        const fills = ['--region-a', '--region-b'].map(themed);
        run.head.regions.forEach((region, i) => {
            if (region.depth >= MOST_LANES) return;
            const left = Math.max(bbox.left, position(region.begin));
            const right = Math.min(bbox.left + bbox.width, position(region.end ?? this.x[this.x.length - 1]));
            if (right < left || right < bbox.left || left > bbox.left + bbox.width) return;
            const top = bbox.top - (this.lanes - region.depth) * LANE * ratio - 4 * ratio;
            const width = Math.max(ratio, right - left);
            ctx.fillStyle = fills[i % 2];
            ctx.fillRect(left, top, width, (LANE - 2) * ratio);
            if (width > 30 * ratio) {
                ctx.save();
                ctx.beginPath();
                ctx.rect(left, top, width - 2 * ratio, LANE * ratio);
                ctx.clip();
                ctx.fillStyle = themed('--text');
                ctx.fillText(region.text.slice(0, 80), left + 4 * ratio, top + ((LANE - 2) / 2) * ratio);
                ctx.restore();
            }
        });

        // Start-up calls and snapshots: on the ground.
        ctx.fillStyle = themed('--scope');
        for (const scope of run.head.scopes) {
            if (scope.depth) continue;
            const [left, right] = [Math.max(bbox.left, position(scope.begin)), Math.min(bbox.left + bbox.width, position(scope.end))];
            if (right >= left) ctx.fillRect(left, bottom - 5 * ratio, Math.max(2 * ratio, right - left), 5 * ratio);
        }
        ctx.fillStyle = themed('--quiet');
        for (const moment of run.moments) {
            const x = position(moment.time);
            if (isIn(x) && !moment.isPeak) ctx.fillRect(x - ratio / 2, bottom - 3 * ratio, ratio, 3 * ratio);
        }
        const rule = (/** @type {number} */ at, /** @type {string} */ colour, /** @type {number[]} */ dash, /** @type {string} */ text, row = 0, end = bottom) => {
            const x = position(at);
            if (!isIn(x)) return;
            ctx.strokeStyle = colour;
            ctx.lineWidth = 1.5 * ratio;
            ctx.setLineDash(dash.map((length) => length * ratio));
            ctx.beginPath();
            ctx.moveTo(x, bbox.top);
            ctx.lineTo(x, end);
            ctx.stroke();
            if (!text) return;
            const width = ctx.measureText(text).width + 8 * ratio;
            const left = Math.max(bbox.left, Math.min(x + 3 * ratio, bbox.left + bbox.width - width));
            const top = bbox.top + (3 + 18 * row) * ratio;
            ctx.fillStyle = themed('--label');
            ctx.fillRect(left, top, width, 16 * ratio);
            ctx.fillStyle = colour;
            ctx.fillText(text, left + 4 * ratio, top + 8.5 * ratio);
        };
        const inView = run.head.marks.filter((mark) => isIn(position(mark.time)));
        // Many would hide what lies below them.
        const marksEnd = inView.length > MOST_RULES ? bbox.top + 12 * ratio : bottom;
        for (const mark of inView) rule(mark.time, themed('--mark'), [1, 3], '', 0, marksEnd);
        for (const incident of run.head.exhaustion.incidents) rule(incident.time, themed('--problem'), incident.outcome === 'retried' ? [1, 3] : [], '');
        const main = run.head.peaks[this.side === 'both' ? 'total' : this.side];
        if (main) {
            const bytes = this.side === 'both' ? main.host + main.device : main[this.side];
            rule(main.time, themed('--text'), [2, 3], `peak ${size(bytes)}`, 0);
        }
        if (page.other !== null) rule(run.moments[page.other].time, themed('--other'), [6, 4], 'compared', 2);
        const chosen = run.moments[page.moment];
        if (chosen) rule(chosen.time, themed('--accent'), [], chosen.name, 1);
        ctx.restore();
    }
}

/** What the signs on the plot stand for, of those that there are. @param {Run} run */
function signs({ head, moments }) {
    const found = /** @type {[string, string, boolean][]} */ ([
        ['region', 'region', head.regions.length > 0],
        ['mark', 'mark', head.marks.length > 0],
        ['scope', 'start-up call', head.scopes.length > 0],
        ['snapshot', 'snapshot', moments.length > 0],
        ['failure', 'failed allocation', head.exhaustion.incidents.length > 0],
    ]);
    return h('p', { class: 'signs quiet' }, ...found.filter(([, , isThere]) => isThere).map(([name, text]) => h('span', { class: 'key' }, h('i', { class: `sign-${name}` }), text)));
}

/** @type {import('../page.js').View} */
export const timeline = {
    id: 'timeline',
    title: 'Timeline',
    fits: (run) => run.moments.length > 0,
    mount(place, page) {
        const { run } = page;
        const sides = sidesOf(run);
        const pools = /** @type {Side[]} */ (run.head.is_discrete && sides.length > 1 ? sides : ['both']);
        const readout = h('div', { class: 'readout' });
        const say = (/** @type {string[]} */ lines) => replace(readout, ...lines.filter((line) => line).map((line, i) => h('div', { class: i ? 'quiet' : '' }, line)));
        const hint = () => say(['Click: choose a moment. Shift-click: compare with another. Drag: zoom in; double click or Esc: zoom out.']);
        const key = `time-${run.head.pid}`;
        const machine = run.parts.machine.length ? new MachinePlot(page, key) : null;
        const plots = [...pools.map((side) => new Plot(page, side, say, key)), ...(machine ? [machine] : [])];
        const dimensions = /** @type {Dimension[]} */ (['owner', 'group', 'kind', 'library', 'line', 'role', 'process']).filter(
            (dimension) => dimension === 'owner' || (dimension === 'role' ? run.head.roles.some((role) => role) : run.dimension(dimension).names.length > 1),
        );
        /** @type {Dimension} */
        let dimension = 'owner';
        const resetAll = () => plots.forEach((plot) => plot.reset());
        const draw = () => plots.forEach((plot) => plot.draw(dimension));
        const reset = h('button', { type: 'button', hidden: true, onclick: () => resetAll() }, 'Zoom out');
        for (const plot of plots) {
            plot.onZoom = () => (reset.hidden = !plots.some((each) => each.isZoomed));
            plot.resetAll = resetAll;
        }
        append(
            place,
            h(
                'div',
                { class: 'above' },
                choice('Areas by', dimensions.map((name) => [name, name === 'line' ? 'Python line' : name]), dimension, (value) => {
                    dimension = value;
                    draw();
                }),
                reset,
            ),
            signs(run),
            ...plots.map((plot) => plot.element),
            readout,
            machine?.grid.element,
        );
        hint();
        draw();
        place.addEventListener('mouseleave', hint);
        let width = place.clientWidth;
        new ResizeObserver(() => {
            if (place.isConnected && place.clientWidth !== width) {
                width = place.clientWidth;
                plots.forEach((plot) => plot.resize());
            }
        }).observe(place);
        window.addEventListener('themechange', () => place.isConnected && draw());
        matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => place.isConnected && draw());
        return () => plots.forEach((plot) => plot.update());
    },
};
