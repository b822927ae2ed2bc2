// SPDX-License-Identifier: GPL-2.0-or-later
//
// Common parts of plots over time: their axes, the span that all of them show, and that a click chooses a moment.

import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { themed } from '../base/theme.js';
import { labels, steps } from '../base/ticks.js';
import { nearestMoment, times } from '../runs/areas.js';
import type { Page } from '../runs/page.js';
import type { Run } from '../runs/run.js';

const THEME = ['--text', '--back', '--quiet', '--grid', '--accent', '--other', '--mark', '--scope', '--region-a', '--region-b', '--problem'];
export type Theme = Record<string, string>;

/** The style sheet's colours as a canvas takes them. */
export const theme = (): Theme => Object.fromEntries(THEME.map((name) => [name, themed(name)]));

/** Marks on a plot that move while it stays: areas of ten thousand rows are drawn once, and kept as a picture. */
function overlay(mark: (plot: uPlot) => void) {
    const picture = document.createElement('canvas');
    picture.width = 0;
    return {
        /** After the plot has drawn itself. */
        drawn: (plot: uPlot) => {
            const { canvas } = plot.ctx;
            picture.width = canvas.width;
            picture.height = canvas.height;
            if (picture.width && picture.height) picture.getContext('2d')?.drawImage(canvas, 0, 0);
            mark(plot);
        },
        /** After a mark has moved. */
        moved(plot: uPlot | null) {
            // Without a picture the plot has yet to draw.
            if (!plot || !picture.width || !picture.height) return;
            const { ctx } = plot;
            ctx.clearRect(0, 0, picture.width, picture.height);
            ctx.drawImage(picture, 0, 0);
            mark(plot);
        },
    };
}

/** One unit for all ticks of an axis, and round steps in it. `kind`: "B", "i" or "ms". */
const ticks = (kind: string): Partial<uPlot.Axis> => ({
    incrs: (_u, _axis, least, most) => steps(kind, least, most),
    values: (u, splits, axis) => {
        const { min = 0, max = 0 } = u.scales[axis ? 'y' : 'x'];
        return labels(kind, splits, min ?? 0, max ?? 0);
    },
});

/** Time below, bytes on the left. */
function axes(theme: Theme, unit: string): uPlot.Axis[] {
    const grid = { stroke: theme['--grid'], width: 1 };
    const axis = { stroke: theme['--quiet'], grid, ticks: grid, font: '12px system-ui, sans-serif' };
    return [
        { ...axis, ...ticks(unit), space: 90 },
        { ...axis, ...ticks('B'), size: 72 },
    ];
}

const LEAST_WIDTH = 240;
const LEAST_SHARE = 0.05; // of the peak: with less the page does not open
const BEFORE = 0.04; // of what is shown, before that

/** The first and last time of a run. */
export function wholeSpan(run: Run): [number, number] {
    const all = times(run);
    return [all[0] ?? 0, Math.max(all[all.length - 1] ?? 1, (all[0] ?? 0) + 1)];
}

/** From the first moment with more than little of the peak: importing takes most of a short run's time. */
export function openingSpan(run: Run): [number, number] {
    const [first, last] = wholeSpan(run);
    const total = (i: number) => run.moments[i].host + run.moments[i].device;
    const most = run.moments.reduce((all, { index }) => Math.max(all, total(index)), 0);
    const begin = run.moments.find(({ index }) => total(index) > LEAST_SHARE * most)?.time ?? first;
    const from = begin - BEFORE * (last - begin);
    // A margin that is hardly seen is no reason to hide the beginning.
    return from - first > 0.1 * (last - first) ? [from, last] : [first, last];
}

export const spanOf = (page: Page): [number, number] => page.span ?? openingSpan(page.run);

/** Zooms by a factor around a time, within the run. */
export function zoomBy(page: Page, factor: number, around?: number) {
    const [first, last] = wholeSpan(page.run);
    const [from, to] = spanOf(page);
    const centre = around ?? page.run.moments[page.moment]?.time ?? (from + to) / 2;
    const middle = centre < from || centre > to ? (from + to) / 2 : centre;
    const width = Math.max((last - first) / 5000, 1e-9);
    const span: [number, number] = [Math.max(first, middle - (middle - from) * factor), Math.min(last, middle + (to - middle) * factor)];
    if (span[1] - span[0] >= width) page.zoom(span);
}

/** A plot on the timeline's axis. Those with one `key` follow each other's pointer; all show the page's span. */
export class TimePlot {
    plot: uPlot | null = null;
    /** Pixels that it may take; 0: all of its place. */
    width = 0;
    /** Times of all columns. */
    x = new Float64Array(0);
    theme: Theme = {};
    run: Run;
    overlay: ReturnType<typeof overlay>;

    /** `canvas`: the place of the plot; `top`: pixels above the axes; `height`: with these. */
    constructor(
        public page: Page,
        public key: string,
        public canvas: HTMLElement,
        public top: number,
        public height: number,
        mark: (plot: uPlot) => void,
    ) {
        this.run = page.run;
        this.overlay = overlay(mark);
    }

    make(series: uPlot.Series[], columns: ArrayLike<number | null>[], hooks?: uPlot.Hooks.Arrays) {
        const { canvas, page, x, key } = this;
        this.#release();
        this.plot?.destroy();
        const [from, to] = spanOf(page);
        this.plot = new uPlot(
            {
                width: Math.max(LEAST_WIDTH, this.width || canvas.clientWidth || 800),
                height: this.height,
                padding: [this.top, 12, 0, 0],
                legend: { show: false },
                cursor: {
                    sync: { key },
                    points: { show: false },
                    drag: { x: true, y: false, dist: 6, setScale: false },
                    bind: { dblclick: () => () => (page.zoom(wholeSpan(page.run)), null) },
                },
                scales: { x: { time: false, min: from, max: to }, y: { range: (_u, _min, max) => [0, (max || 1) * 1.06] } },
                axes: axes(this.theme, page.run.head.unit),
                series: [{}, ...series.map((each) => ({ points: { show: false }, ...each }))],
                hooks: { draw: [this.overlay.drawn], setSelect: [(u) => this.#selected(u)], ...hooks },
            },
            [Array.from(x), ...columns.map((column) => Array.from(column))],
            canvas,
        );
        this.#chooseByClick(this.plot);
    }

    /** Shows the page's span. */
    follow() {
        const { plot, page } = this;
        const [min, max] = spanOf(page);
        const { x } = plot?.scales ?? {};
        if (plot && (x?.min !== min || x?.max !== max)) plot.setScale('x', { min, max });
    }

    /** After another moment or span was chosen. */
    update() {
        this.follow();
        this.overlay.moved(this.plot);
    }

    /** What was dragged over is shown larger. */
    #selected(u: uPlot) {
        const { left, width } = u.select;
        if (width < 6) return;
        this.page.zoom([u.posToVal(left, 'x'), u.posToVal(left + width, 'x')]);
        u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    }

    /** With shift, a moment to compare with. */
    #chooseByClick(plot: uPlot) {
        const { over } = plot;
        // Not click events: the plot keeps some of them to itself.
        let pressed = NaN;
        over.addEventListener('mousedown', (event) => (pressed = event.button ? NaN : event.clientX));
        over.addEventListener('mouseup', (event) => {
            if (!(Math.abs(event.clientX - pressed) <= 5)) return;
            const chosen = nearestMoment(this.run, plot.posToVal(event.clientX - over.getBoundingClientRect().left, 'x'));
            if (event.shiftKey) this.page.compare(chosen);
            else this.page.select(chosen);
        });
        let scrolledAt = -Infinity;
        const scrolled = () => (scrolledAt = performance.now());
        window.addEventListener('scroll', scrolled, { passive: true });
        this.#release = () => window.removeEventListener('scroll', scrolled);
        over.addEventListener(
            'wheel',
            (event) => {
                // Who scrolls the page past the plot does not mean the plot.
                if (performance.now() - scrolledAt < 400 && !event.ctrlKey) return;
                const [first, last] = wholeSpan(this.run);
                const [from, to] = spanOf(this.page);
                if (event.deltaY > 0 && from <= first && to >= last) return;
                event.preventDefault();
                zoomBy(this.page, event.deltaY > 0 ? 1.25 : 0.8, plot.posToVal(event.clientX - over.getBoundingClientRect().left, 'x'));
            },
            { passive: false },
        );
    }

    #release = () => {};

    destroy() {
        this.#release();
        this.plot?.destroy();
        this.plot = null;
    }
}
