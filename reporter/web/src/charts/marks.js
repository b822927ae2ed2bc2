// SPDX-License-Identifier: GPL-2.0-or-later
//
// Signs on the plot of memory over time: regions in lanes above it, names of moments below these, start-up calls and snapshots at
// its bottom, and rules for marks, failed allocations, the peak and the chosen moments.

import { h } from '../base/dom.js';
import { size } from '../base/units.js';

/** @typedef {import('uplot')} uPlot */
/** @typedef {import('../runs/run.js').Run} Run */
/** @typedef {import('../runs/page.js').Page} Page */
/** @typedef {{run: Run, page: Page, side: import('../runs/areas.js').Side, x: Float64Array, lanes: number, theme: Record<string, string>}} Marked what the plot is of; `lanes`: of regions; `theme`: colours */

export const LANE = 16; // pixels, of a row of regions
export const NAMES = 20; // of the row of names
const MOST_LANES = 4;
const MOST_RULES = 20; // marks in view, beyond which they are ticks

/** How many rows of regions a run needs. @param {Run} run */
export const lanesOf = (run) => Math.min(MOST_LANES, run.head.regions.reduce((most, region) => Math.max(most, region.depth + 1), 0));

/** Edges of the plot, and positions of times. @param {uPlot} u */
function frame({ bbox, valToPos }) {
    const right = bbox.left + bbox.width;
    return {
        left: bbox.left,
        right,
        top: bbox.top,
        bottom: bbox.top + bbox.height,
        position: (/** @type {number} */ at) => valToPos(at, 'x', true),
        isIn: (/** @type {number} */ x) => x >= bbox.left - 1 && x <= right + 1,
    };
}

/** @param {uPlot} u @param {Marked} marked */
function drawRegions(u, { run, x, lanes, theme }) {
    const { ctx } = u;
    const ratio = devicePixelRatio;
    const edge = frame(u);
    const fills = [theme['--region-a'], theme['--region-b']];
    run.head.regions.forEach((region, i) => {
        if (region.depth >= MOST_LANES) return;
        const left = Math.max(edge.left, edge.position(region.begin));
        const right = Math.min(edge.right, edge.position(region.end ?? x[x.length - 1]));
        if (right < left || right < edge.left || left > edge.right) return;
        const top = edge.top - ((lanes - region.depth) * LANE + NAMES + 2) * ratio;
        const width = Math.max(ratio, right - left);
        ctx.fillStyle = fills[i % 2];
        ctx.fillRect(left, top, width, (LANE - 2) * ratio);
        if (width <= 30 * ratio) return;
        ctx.save();
        ctx.beginPath();
        ctx.rect(left, top, width - 2 * ratio, LANE * ratio);
        ctx.clip();
        ctx.fillStyle = theme['--text'];
        ctx.fillText(region.text.slice(0, 80), left + 4 * ratio, top + ((LANE - 2) / 2) * ratio);
        ctx.restore();
    });
}

/** Start-up calls and snapshots. @param {uPlot} u @param {Marked} marked */
function drawGround(u, { run, theme }) {
    const { ctx } = u;
    const ratio = devicePixelRatio;
    const edge = frame(u);
    ctx.fillStyle = theme['--scope'];
    for (const scope of run.head.scopes) {
        if (scope.depth) continue;
        const [left, right] = [Math.max(edge.left, edge.position(scope.begin)), Math.min(edge.right, edge.position(scope.end))];
        if (right >= left) ctx.fillRect(left, edge.bottom - 5 * ratio, Math.max(2 * ratio, right - left), 5 * ratio);
    }
    ctx.fillStyle = theme['--quiet'];
    for (const moment of run.moments) {
        const x = edge.position(moment.time);
        if (edge.isIn(x) && !moment.isPeak) ctx.fillRect(x - ratio / 2, edge.bottom - 3 * ratio, ratio, 3 * ratio);
    }
}

/** A line from top to bottom, and its name above it, beside those that are there. @param {uPlot} u @param {[number, number][]} names where they lie @param {{at: number, colour: string, dash: number[], text?: string, end?: number}} what */
function rule(u, names, { at, colour, dash, text = '', end }) {
    const { ctx } = u;
    const ratio = devicePixelRatio;
    const edge = frame(u);
    const x = edge.position(at);
    if (!edge.isIn(x)) return;
    ctx.strokeStyle = colour;
    ctx.lineWidth = 1.5 * ratio;
    ctx.setLineDash(dash.map((length) => length * ratio));
    ctx.beginPath();
    ctx.moveTo(x, edge.top);
    ctx.lineTo(x, end ?? edge.bottom);
    ctx.stroke();
    if (!text) return;
    const width = ctx.measureText(text).width + 8 * ratio;
    const isFree = (/** @type {number} */ left) => left >= edge.left - 1 && left + width <= edge.right + 1 && names.every(([begin, stop]) => left >= stop || left + width <= begin);
    const ends = names.flatMap(([begin, stop]) => [stop, begin - width]);
    const nearest = [x - width / 2, x, x - width, edge.left, edge.right - width, ...ends].filter(isFree).sort((a, b) => Math.abs(a + width / 2 - x) - Math.abs(b + width / 2 - x));
    if (!nearest.length) return;
    names.push([nearest[0], nearest[0] + width]);
    ctx.fillStyle = colour;
    ctx.fillText(text, nearest[0] + 4 * ratio, edge.top - 9 * ratio);
}

/** @param {uPlot} u @param {Marked} marked */
function drawRules(u, { run, page, side, theme }) {
    const { top, bottom, position, isIn } = frame(u);
    /** @type {[number, number][]} */
    const names = [];
    const draw = (/** @type {Parameters<typeof rule>[2]} */ what) => rule(u, names, what);
    const inView = run.head.marks.filter((mark) => isIn(position(mark.time)));
    // Many would hide what lies below them.
    const end = inView.length > MOST_RULES ? top + 12 * devicePixelRatio : bottom;
    for (const mark of inView) draw({ at: mark.time, colour: theme['--mark'], dash: [1, 3], end });
    for (const incident of run.head.oom.incidents) draw({ at: incident.time, colour: theme['--problem'], dash: incident.outcome === 'retried' ? [1, 3] : [] });
    const main = run.head.peaks[side === 'both' ? 'total' : side];
    const chosen = run.moments[page.moment];
    if (main) draw({ at: main.time, colour: theme['--text'], dash: [2, 3], text: `peak ${size(side === 'both' ? main.host + main.device : main[side])}` });
    if (chosen) draw({ at: chosen.time, colour: theme['--accent'], dash: [], text: chosen.isPeak && main?.time === chosen.time ? '' : chosen.name });
    if (page.other !== null) draw({ at: run.moments[page.other].time, colour: theme['--other'], dash: [6, 4], text: `vs. ${run.moments[page.other].name}` });
}

/** @param {uPlot} u @param {Marked} marked */
export function drawMarks(u, marked) {
    const { ctx } = u;
    ctx.save();
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textBaseline = 'middle';
    ctx.textAlign = 'left';
    drawRegions(u, marked);
    drawGround(u, marked);
    drawRules(u, marked);
    ctx.restore();
}

/** Keys of the signs that are on the plot. @param {Run} run */
export function signs({ head, moments }) {
    const found = /** @type {[string, string, boolean][]} */ ([
        ['region', 'region', head.regions.length > 0],
        ['mark', 'mark', head.marks.length > 0],
        ['scope', 'start-up call', head.scopes.length > 0],
        ['snapshot', 'snapshot', moments.length > 0],
        ['failure', 'failed allocation', head.oom.incidents.length > 0],
    ]);
    return h('p', { class: 'signs quiet' }, ...found.filter(([, , isThere]) => isThere).map(([name, text]) => h('span', { class: 'key' }, h('i', { class: `sign-${name}` }), text)));
}
