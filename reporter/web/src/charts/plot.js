// SPDX-License-Identifier: GPL-2.0-or-later
//
// Common parts of plots over time: their axes, how they are zoomed together, and that a click chooses a moment.

import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { themed } from '../base/theme.js';
import { labels, steps } from '../base/ticks.js';
import { nearestMoment } from '../runs/areas.js';

/** @typedef {import('../runs/page.js').Page} Page */

const THEME = ['--text', '--back', '--quiet', '--grid', '--accent', '--other', '--mark', '--scope', '--region-a', '--region-b', '--problem'];

/** The style sheet's colours as a canvas takes them. @returns {Record<string, string>} */
export const theme = () => Object.fromEntries(THEME.map((name) => [name, themed(name)]));

/**
 * Marks on a plot that move while it stays: areas of ten thousand rows are drawn once, and kept as a picture.
 * @param {(plot: uPlot) => void} mark
 */
function overlay(mark) {
    const picture = document.createElement('canvas');
    picture.width = 0;
    return {
        /** After the plot has drawn itself. @param {uPlot} plot */
        drawn(plot) {
            const { canvas } = plot.ctx;
            picture.width = canvas.width;
            picture.height = canvas.height;
            if (picture.width && picture.height) picture.getContext('2d')?.drawImage(canvas, 0, 0);
            mark(plot);
        },
        /** After a mark has moved. @param {uPlot|null} plot */
        moved(plot) {
            // Without a picture the plot has yet to draw.
            if (!plot || !picture.width || !picture.height) return;
            const { ctx } = plot;
            ctx.clearRect(0, 0, picture.width, picture.height);
            ctx.drawImage(picture, 0, 0);
            mark(plot);
        },
    };
}

/** One unit for all ticks of an axis, and round steps in it. @param {string} kind "B", "i" or "ms" @returns {Partial<import('uplot').Axis>} */
const ticks = (kind) => ({
    incrs: (_u, _axis, least, most) => steps(kind, least, most),
    values: (u, splits, axis) => {
        const { min = 0, max = 0 } = u.scales[axis ? 'y' : 'x'];
        return labels(kind, splits, min ?? 0, max ?? 0);
    },
});

/** Time below, bytes on the left. @param {Record<string, string>} theme @param {string} unit of time @returns {import('uplot').Axis[]} */
function axes(theme, unit) {
    const grid = { stroke: theme['--grid'], width: 1 };
    const axis = { stroke: theme['--quiet'], grid, ticks: grid, font: '12px system-ui, sans-serif' };
    return [
        { ...axis, ...ticks(unit), space: 90 },
        { ...axis, ...ticks('B'), size: 76 },
    ];
}

const LEAST_WIDTH = 260;

/** A plot on the timeline's axis. Those with one `key` follow each other's pointer and zoom. */
export class TimePlot {
    /** @type {uPlot|null} */
    plot = null;
    /** Times of all columns. */
    x = new Float64Array(0);
    /** @type {Record<string, string>} */
    theme = {};
    /** @type {(() => void)|undefined} */
    onZoom;
    /** Shows the whole run in all plots of the section. @type {(() => void)|undefined} */
    resetAll;

    /** @param {Page} page @param {string} key @param {HTMLElement} canvas the place of the plot @param {number} top pixels above the axes @param {number} height with these @param {(plot: uPlot) => void} mark */
    constructor(page, key, canvas, top, height, mark) {
        this.page = page;
        this.run = page.run;
        this.key = key;
        this.canvas = canvas;
        this.top = top;
        this.height = height;
        this.overlay = overlay(mark);
    }

    /** @param {uPlot.Series[]} series @param {ArrayLike<number|null>[]} columns by series @param {uPlot.Hooks.Arrays} [hooks] */
    make(series, columns, hooks) {
        const { canvas, page, x, key } = this;
        this.plot?.destroy();
        this.plot = new uPlot(
            {
                width: Math.max(LEAST_WIDTH, canvas.clientWidth || canvas.parentElement?.clientWidth || 800),
                height: this.height,
                padding: [this.top, 12, 0, 0],
                legend: { show: false },
                cursor: {
                    sync: { key },
                    points: { show: false },
                    drag: { x: true, y: false, dist: 6 },
                    bind: { dblclick: (u) => () => (this.resetAll?.(), u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false), null) },
                },
                scales: { x: { time: false }, y: { range: (_u, _min, max) => [0, (max || 1) * 1.06] } },
                axes: axes(this.theme, page.run.head.unit),
                series: [{}, ...series.map((each) => ({ points: { show: false }, ...each }))],
                hooks: { draw: [this.overlay.drawn], setScale: [(_u, key) => key === 'x' && this.onZoom?.()], ...hooks },
            },
            [Array.from(x), ...columns.map((column) => Array.from(column))],
            canvas,
        );
        this.#chooseByClick(this.plot);
    }

    /** With shift, a moment to compare with. @param {uPlot} plot */
    #chooseByClick(plot) {
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
    }

    get isZoomed() {
        const { plot, x } = this;
        const { min, max } = plot?.scales.x ?? {};
        return min !== undefined && max !== undefined && x.length > 1 && (min > x[0] || max < x[x.length - 1]);
    }

    reset() {
        const { plot, x } = this;
        if (x.length) plot?.setScale('x', { min: x[0], max: x[x.length - 1] });
    }

    destroy() {
        this.plot?.destroy();
        this.plot = null;
    }

    /** @param {number} width */
    resize(width) {
        this.plot?.setSize({ width: Math.max(LEAST_WIDTH, width), height: this.height });
    }
}
