// SPDX-License-Identifier: GPL-2.0-or-later
//
// What lies over the areas of memory over time: regions in lanes above, start-up calls and snapshots on the ground, and rules
// for marks, failed allocations, the peak and the chosen moments.

import { h } from '../base/dom.js';
import { size } from '../base/units.js';

/** @typedef {import('uplot')} uPlot */
/** @typedef {import('../runs/run.js').Run} Run */
/** @typedef {import('../runs/page.js').Page} Page */
/** @typedef {{run: Run, page: Page, side: import('../runs/areas.js').Side, x: Float64Array, lanes: number, theme: Record<string, string>}} Marked what the plot is of; `lanes`: of regions; `theme`: colours */

export const LANE = 16; // pixels, of a row of regions
const MOST_LANES = 4;
const MOST_RULES = 20; // marks in view, beyond which they are ticks

/** How many rows of regions a run needs. @param {Run} run */
export const lanesOf = (run) => Math.min(MOST_LANES, run.head.regions.reduce((most, region) => Math.max(most, region.depth + 1), 0));

/** Where times lie. @param {uPlot} u */
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
        const top = edge.top - (lanes - region.depth) * LANE * ratio - 4 * ratio;
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

/** A line from top to bottom, with what it stands for. @param {uPlot} u @param {string} back of the text @param {{at: number, colour: string, dash: number[], text?: string, row?: number, end?: number}} what `row`: of the text */
function rule(u, back, { at, colour, dash, text = '', row = 0, end }) {
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
    const left = Math.max(edge.left, Math.min(x + 3 * ratio, edge.right - width));
    const top = edge.top + (3 + 18 * row) * ratio;
    ctx.fillStyle = back;
    ctx.fillRect(left, top, width, 16 * ratio);
    ctx.fillStyle = colour;
    ctx.fillText(text, left + 4 * ratio, top + 8.5 * ratio);
}

/** @param {uPlot} u @param {Marked} marked */
function drawRules(u, { run, page, side, theme }) {
    const { top, bottom, position, isIn } = frame(u);
    const draw = (/** @type {Parameters<typeof rule>[2]} */ what) => rule(u, theme['--label'], what);
    const inView = run.head.marks.filter((mark) => isIn(position(mark.time)));
    // Many would hide what lies below them.
    const end = inView.length > MOST_RULES ? top + 12 * devicePixelRatio : bottom;
    for (const mark of inView) draw({ at: mark.time, colour: theme['--mark'], dash: [1, 3], end });
    for (const incident of run.head.exhaustion.incidents) draw({ at: incident.time, colour: theme['--problem'], dash: incident.outcome === 'retried' ? [1, 3] : [] });
    const main = run.head.peaks[side === 'both' ? 'total' : side];
    if (main) draw({ at: main.time, colour: theme['--text'], dash: [2, 3], text: `peak ${size(side === 'both' ? main.host + main.device : main[side])}` });
    if (page.other !== null) draw({ at: run.moments[page.other].time, colour: theme['--other'], dash: [6, 4], text: 'compared', row: 2 });
    const chosen = run.moments[page.moment];
    if (chosen) draw({ at: chosen.time, colour: theme['--accent'], dash: [], text: chosen.name, row: 1 });
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

/** What the signs on the plot stand for, of those that there are. @param {Run} run */
export function signs({ head, moments }) {
    const found = /** @type {[string, string, boolean][]} */ ([
        ['region', 'region', head.regions.length > 0],
        ['mark', 'mark', head.marks.length > 0],
        ['scope', 'start-up call', head.scopes.length > 0],
        ['snapshot', 'snapshot', moments.length > 0],
        ['failure', 'failed allocation', head.exhaustion.incidents.length > 0],
    ]);
    return h('p', { class: 'signs quiet' }, ...found.filter(([, , isThere]) => isThere).map(([name, text]) => h('span', { class: 'key' }, h('i', { class: `sign-${name}` }), text)));
}
