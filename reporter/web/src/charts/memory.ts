// SPDX-License-Identifier: GPL-2.0-or-later
//
// Memory over time: stacked areas with their names, the peak, snapshots, regions, marks and start-up calls (marks.ts). The line on
// top is the highest total since the sample before. A picture shows the plot as the reader sees it.

import uPlot from 'uplot';
import { h, replace } from '../base/dom.js';
import { moment as time, size } from '../base/units.js';
import { type Area, areas, edges, exact, nearestMoment, type Side, times, valueAt } from '../runs/areas.js';
import type { Page } from '../runs/page.js';
import type { Figure } from '../runs/parts.js';
import type { Dimension } from '../runs/run.js';
import { drawMarks, LANE, lanesOf, NAMES } from './marks.js';
import { labels, ticksOf } from '../base/ticks.js';
import { INK, MARGIN, number, type Picture, rgb, title, WIDTH } from './picture.js';
import { spanOf, theme, TimePlot } from './plot.js';

const LEFT = 92;
const RIGHT = WIDTH - 24;
const PICTURE_HEIGHT = 330;
const ABOVE = 1.1; // of the axis, beyond the most that is shown: there the flags have their names
const COLUMN = 1.5; // pixels: what lies closer together is shown by the fullest of it

/** Of the times in view, and one beyond it each way, those that are pixels apart. */
function chosen(x: Float64Array, totals: Float64Array, place: (at: number) => number) {
    const kept: number[] = [];
    let run: number[] = [];
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

export function drawMemory(picture: Picture, plot: MemoryPlot) {
    const { run, side, x, page } = plot;
    const { unit } = run.head;
    if (side !== 'both') {
        picture.text(MARGIN, picture.top + 12, side === 'host' ? 'Host memory' : 'Device memory', { size: 14, isBold: true });
        picture.top += 22;
    }
    const top = picture.top + 4;
    const [min, max] = spanOf(page);
    const across = (at: number) => LEFT + ((at - min) / (max - min || 1)) * (RIGHT - LEFT);
    const rows = chosen(x, plot.exact, across);
    const most = ABOVE * rows.reduce((all, i) => Math.max(all, plot.exact[i]), 1);
    const up = (bytes: number) => top + PICTURE_HEIGHT * (1 - bytes / most);
    const bottom = up(0);
    const sizes = ticksOf('B', 0, most, 7);
    labels('B', sizes, 0, most).forEach((text, i) => {
        picture.line(LEFT, up(sizes[i]), RIGHT, up(sizes[i]), INK.grid);
        picture.text(LEFT - 8, up(sizes[i]) + 4, text, { size: 12, fill: INK.quiet, anchor: 'end' });
    });
    const times = ticksOf(unit, min, max, 10);
    labels(unit, times, min, max).forEach((text, i) => {
        picture.line(across(times[i]), bottom, across(times[i]), bottom + 5, INK.quiet);
        picture.text(across(times[i]), bottom + 19, text, { size: 12, fill: INK.quiet, anchor: across(times[i]) > RIGHT - 20 ? 'end' : 'middle' });
    });
    // Clip areas that begin before the span that is shown.
    const id = `of-${side}`;
    picture.add(
        `<clipPath id="${id}"><rect x="${LEFT}" y="${number(top)}" width="${RIGHT - LEFT}" height="${PICTURE_HEIGHT}"/></clipPath><g clip-path="url(#${id})">`,
    );
    const line = (bytes: Float64Array) => rows.map((i) => `${number(across(x[i]))},${number(up(bytes[i]))}`).join('L');
    for (const area of edges(run, plot.areas, x, plot.now).reverse()) {
        const ends = [`${number(across(x[rows[0]]))},${number(bottom)}`, `${number(across(x[rows[rows.length - 1]]))},${number(bottom)}`];
        picture.add(
            `<path d="M${ends[0]}L${line(area.sums)}L${ends[1]}Z" fill="${rgb(area.colour)}" stroke="${INK.back}" stroke-width="0.5">${title(area.name)}</path>`,
        );
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

type Scale = { across: (at: number) => number; up: (bytes: number) => number; top: number; bottom: number };

/** The peak, failed allocations, and the chosen moments. */
function drawFlags(picture: Picture, { run, side, page }: MemoryPlot, { across, up, top, bottom }: Scale) {
    const isIn = (at: number) => across(at) >= LEFT - 1 && across(at) <= RIGHT + 1;
    const { peaks, oom, unit } = run.head;
    const peak = peaks[side === 'both' ? 'total' : side];
    if (peak && isIn(peak.time)) {
        const bytes = side === 'both' ? peak.host + peak.device : peak[side];
        picture.flag(across(peak.time), top + 10, up(bytes), RIGHT, `peak: ${size(bytes)} at ${time(peak.time, unit)}`, INK.text, '4 3');
    }
    for (const incident of oom.incidents.filter((each) => each.outcome !== 'retried' && isIn(each.time)).slice(-3)) {
        picture.flag(across(incident.time), top + 26, bottom, RIGHT, 'out of memory', INK.alarm, '4 3');
    }
    const moments: [number | null, string][] = [
        [page.moment === run.head.at.peak ? null : page.moment, INK.accent],
        [page.other, INK.other],
    ];
    for (const [index, colour] of moments) {
        const at = index === null ? undefined : run.moments[index];
        if (at && isIn(at.time))
            picture.flag(across(at.time), top + 42, bottom, RIGHT, index === page.other ? `vs. ${at.name}` : at.name, colour, '');
    }
}

const HEIGHT = 300;
const NARROW_HEIGHT = 220;
const NARROW = 600; // pixels, below which a plot is on a phone
const FADED = 0.25;

/** Mostly the second colour; opaque, as areas lie on each other. */
function mixed(colour: string, back: string) {
    const [one, other] = [rgb(colour), rgb(back)].map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
    return `rgb(${one.map((value, i) => Math.round(FADED * value + (1 - FADED) * other[i])).join(' ')})`;
}

/** A fill for memory that an allocator keeps and that holds nothing. */
function hatched(colour: string): CanvasPattern | string {
    const ratio = devicePixelRatio;
    const step = Math.round(8 * ratio);
    const tile = Object.assign(document.createElement('canvas'), { width: step, height: step });
    const context = tile.getContext('2d');
    if (!context) return colour;
    context.fillStyle = colour;
    context.fillRect(0, 0, step, step);
    context.strokeStyle = 'rgb(255 255 255 / 0.45)';
    context.lineWidth = 1.5 * ratio;
    for (const at of [-step, 0, step]) {
        context.beginPath();
        context.moveTo(at - 1, step + 1);
        context.lineTo(at + step + 1, -1);
        context.stroke();
    }
    return context.createPattern(tile, 'repeat') ?? colour;
}

/** One plot: of all memory, or of one pool. */
export class MemoryPlot extends TimePlot {
    now: Float64Array;
    exact: Float64Array;
    lanes: number;
    /** Figures of another tool's log. */
    beside: Figure[];
    areas: Area[] = [];
    /** Upper edges of the areas, the lowest first. */
    #stacked: (Area & { sums: Float64Array })[] = [];
    #tip = h('div', { class: 'tip', hidden: true });

    constructor(
        page: Page,
        public side: Side,
        canvas: HTMLElement,
        key: string,
    ) {
        const lanes = lanesOf(page.run);
        const height = canvas.clientWidth < NARROW ? NARROW_HEIGHT : HEIGHT;
        super(page, key, canvas, NAMES + lanes * LANE, height + NAMES + lanes * LANE, (u) => this.#mark(u));
        this.lanes = lanes;
        this.x = times(this.run);
        const { now, most } = exact(this.run, this.x, side);
        this.now = now;
        this.exact = most;
        this.beside = this.run.parts.machine.filter((figure) => figure.beside === side);
        canvas.append(this.#tip);
        canvas.onmouseleave = () => (this.#tip.hidden = true);
    }

    /** `focus`: the area that alone is in full colour; '' for all. */
    draw(dimension: Dimension, focus: string) {
        const { run, x, beside } = this;
        this.areas = areas(run, dimension, this.side);
        this.theme = theme();
        this.#stacked = edges(run, this.areas, x, this.now);
        const isCache = (name: string) =>
            name === 'cached' || (dimension === 'owner' && run.head.owners.some((owner) => owner.name === name && owner.group === 'cached'));
        const [back, text, problem] = ['--back', '--text', '--problem'].map((name) => this.theme[name]);
        const fill = ({ name, colour }: Area) => (focus && name !== focus ? mixed(colour, back) : isCache(name) ? hatched(colour) : colour);
        this.make(
            [
                // The topmost is drawn first.
                ...[...this.#stacked].reverse().map((area) => ({ label: area.name, fill: () => fill(area), stroke: back, width: 1 })),
                { label: 'exact total', stroke: text, width: 1 },
                ...beside.map(({ label }) => ({ label, stroke: problem, width: 1.5, dash: [6, 3], paths: uPlot.paths.stepped?.({ align: 1 }) })),
            ],
            [
                ...[...this.#stacked].reverse().map((area) => area.sums),
                this.exact,
                ...beside.map((figure) => Array.from(x, (at) => valueAt(figure, at))),
            ],
            { setCursor: [(u) => this.#hover(u)] },
        );
    }

    destroy() {
        super.destroy();
        this.#tip.remove();
        this.canvas.onmouseleave = null;
    }

    #mark(u: uPlot) {
        this.#name(u);
        drawMarks(u, this);
    }

    /** After another moment was chosen: the lines. */
    update() {
        this.follow();
        this.overlay.moved(this.plot);
    }

    /** Writes the names of areas on them, where they are thickest and there is room. */
    #name(u: uPlot) {
        const { ctx, bbox } = u;
        const ratio = devicePixelRatio;
        const step = 8 * ratio;
        const columns = Array.from({ length: Math.max(0, Math.floor(bbox.width / step)) }, (_, i) => u.posToIdx((i * step) / ratio));
        ctx.save();
        ctx.font = `600 ${12 * ratio}px system-ui, sans-serif`;
        ctx.textAlign = 'center';
        ctx.textBaseline = 'middle';
        this.#stacked.forEach((area, i) => {
            const edge = (at: number, sums: Float64Array | undefined) => u.valToPos(sums ? sums[at] : 0, 'y', true);
            const half = Math.ceil((ctx.measureText(area.name).width / 2 + 6 * ratio) / step);
            let best = { room: 17 * ratio, x: 0, y: 0 };
            for (let column = half; column + half < columns.length; column++) {
                let [top, bottom] = [0, Infinity];
                for (let at = column - half; at <= column + half; at++) {
                    top = Math.max(top, edge(columns[at], area.sums));
                    bottom = Math.min(bottom, edge(columns[at], this.#stacked[i - 1]?.sums));
                }
                if (bottom - top > best.room) best = { room: bottom - top, x: bbox.left + column * step, y: (top + bottom) / 2 };
            }
            if (!best.x) return;
            ctx.lineWidth = 3 * ratio;
            ctx.lineJoin = 'round';
            ctx.strokeStyle = 'rgb(20 23 26 / 0.75)';
            ctx.strokeText(area.name, best.x, best.y);
            ctx.fillStyle = '#fff';
            ctx.fillText(area.name, best.x, best.y);
        });
        ctx.restore();
    }

    /** Describes the moment at the pointer, beside it. */
    #hover(u: uPlot) {
        const { left = -1, top = 0, idx } = u.cursor;
        const { run } = this;
        const { unit } = run.head;
        const at = left < 0 || idx === null || idx === undefined ? null : this.x[idx];
        const moment = at === null ? undefined : run.moments[nearestMoment(run, u.posToVal(left, 'x'))];
        // The other pool's plot has the pointer too.
        this.#tip.hidden = !moment || !this.canvas.matches(':hover');
        if (this.#tip.hidden || at === null || !moment) return;
        const parts = this.areas.map((area) => ({ ...area, held: area.bytes[moment.index] })).filter((part) => part.held > 0);
        parts.sort((a, b) => b.held - a.held);
        const row = (name: string, bytes: number, colour = '') =>
            h('tr', {}, h('th', {}, colour && h('i', { style: { background: colour } }), name), h('td', {}, size(bytes)));
        replace(
            this.#tip,
            h('b', {}, `${time(at, unit)}: ${size(this.exact[idx as number])}`),
            h('div', { class: 'quiet' }, `nearest: ${moment.name} at ${time(moment.time, unit)}`),
            h('table', {}, h('tbody', {}, ...parts.slice(0, 6).map(({ name, held, colour }) => row(name, held, colour)))),
            ...this.#eventsAt(u, at, left).map((text) => h('div', { class: 'quiet' }, text)),
        );
        const { clientWidth: width } = this.canvas;
        const x = left + u.bbox.left / devicePixelRatio;
        const isLeft = x + this.#tip.offsetWidth + 24 > width;
        this.#tip.style.left = `${Math.max(0, isLeft ? x - this.#tip.offsetWidth - 12 : x + 12)}px`;
        this.#tip.style.top = `${Math.max(0, top - 20)}px`;
    }

    /** `left`: the time in pixels. */
    #eventsAt(u: uPlot, at: number, left: number): string[] {
        const { regions, marks, oom, scopes } = this.run.head;
        const isNear = (time: number) => Math.abs(u.valToPos(time, 'x') - left) < 5;
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
        ].filter((text) => text);
    }
}
