// SPDX-License-Identifier: GPL-2.0-or-later
//
// Common parts of plots over time: their axes, how they are zoomed together, and that a click chooses a moment.

import { themed } from '../base/theme.js';
import { labels, steps } from '../base/ticks.js';
import { nearestMoment } from '../runs/areas.js';

/** @typedef {import('uplot')} uPlot */
/** @typedef {import('../runs/page.js').Page} Page */

const THEME = ['--text', '--back', '--quiet', '--grid', '--accent', '--other', '--mark', '--scope', '--region-a', '--region-b', '--problem'];

/** The style sheet's colours as a canvas takes them. @returns {Record<string, string>} */
export const theme = () => Object.fromEntries(THEME.map((name) => [name, themed(name)]));

/**
 * Marks on a plot that move while it stays: areas of ten thousand rows are drawn once, and kept as a picture.
 * @param {(plot: uPlot) => void} mark
 */
export function overlay(mark) {
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
export function axes(theme, unit) {
    const grid = { stroke: theme['--grid'], width: 1 };
    const axis = { stroke: theme['--quiet'], grid, ticks: grid, font: '12px system-ui, sans-serif' };
    return [
        { ...axis, ...ticks(unit), space: 90 },
        { ...axis, ...ticks('B'), size: 76 },
    ];
}

/** Plots with one `key` follow each other's pointer and zoom. @param {string} key @param {() => void} reset @returns {import('uplot').Cursor} */
export const cursor = (key, reset) => ({
    sync: { key },
    points: { show: false },
    drag: { x: true, y: false, dist: 6 },
    bind: { dblclick: (u) => () => (reset(), u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false), null) },
});

/** With shift, a moment to compare with. @param {uPlot} plot @param {Page} page */
export function chooseByClick(plot, page) {
    const { over } = plot;
    // Not click events: the plot keeps some of them to itself.
    let pressed = NaN;
    over.addEventListener('mousedown', (event) => (pressed = event.button ? NaN : event.clientX));
    over.addEventListener('mouseup', (event) => {
        if (!(Math.abs(event.clientX - pressed) <= 5)) return;
        const chosen = nearestMoment(page.run, plot.posToVal(event.clientX - over.getBoundingClientRect().left, 'x'));
        if (event.shiftKey) page.compare(chosen);
        else page.select(chosen);
    });
}

/** @param {uPlot|null} plot @param {Float64Array} x all times */
export function isZoomed(plot, x) {
    const { min, max } = plot?.scales.x ?? {};
    return min !== undefined && max !== undefined && x.length > 1 && (min > x[0] || max < x[x.length - 1]);
}

/** @param {uPlot|null} plot @param {Float64Array} x all times */
export function zoomOut(plot, x) {
    if (x.length) plot?.setScale('x', { min: x[0], max: x[x.length - 1] });
}

export const LEAST_WIDTH = 260;

/** Pixels. @param {HTMLElement} canvas */
export const widthOf = (canvas) => Math.max(LEAST_WIDTH, canvas.clientWidth || canvas.parentElement?.clientWidth || 800);
