// SPDX-License-Identifier: GPL-2.0-or-later
//
// Signs on the plot of memory over time: regions in lanes above it, names of moments below these, start-up calls and snapshots at
// its bottom, and rules for marks, failed allocations, the peak and the chosen moments.

import type uPlot from 'uplot';
import { size } from '../base/units.js';
import type { Side } from '../runs/areas.js';
import type { Page } from '../runs/page.js';
import type { Run } from '../runs/run.js';
import type { Theme } from './plot.js';

/** What the plot is of; `lanes`: of regions. */
type Marked = { run: Run; page: Page; side: Side; x: Float64Array; lanes: number; theme: Theme };

export const LANE = 16; // pixels, of a row of regions
export const NAMES = 20; // of the row of names
const MOST_LANES = [4, 8]; // of a process, of several
const MOST_RULES = 20; // marks in view, beyond which they are ticks

/** How many rows of regions a run needs. */
export const lanesOf = (run: Run) =>
    Math.min(
        MOST_LANES[run.parts.together ? 1 : 0],
        run.head.regions.reduce((most, region) => Math.max(most, region.depth + 1), 0),
    );

/** Edges of the plot, and positions of times. */
function frame(u: uPlot) {
    const { bbox } = u;
    const right = bbox.left + bbox.width;
    return {
        left: bbox.left,
        right,
        top: bbox.top,
        bottom: bbox.top + bbox.height,
        position: (at: number) => u.valToPos(at, 'x', true),
        isIn: (x: number) => x >= bbox.left - 1 && x <= right + 1,
    };
}

function drawRegions(u: uPlot, { run, x, lanes, theme }: Marked) {
    const { ctx } = u;
    const ratio = devicePixelRatio;
    const edge = frame(u);
    const fills = [theme['--region-a'], theme['--region-b']];
    run.head.regions.forEach((region, i) => {
        if (region.depth >= lanes) return;
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

/** Start-up calls and snapshots. */
function drawGround(u: uPlot, { run, theme }: Marked) {
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

type Rule = { at: number; colour: string; dash: number[]; text?: string; end?: number };

/** A line from top to bottom, and its name above it, beside those that are there. `names`: where they lie. */
function rule(u: uPlot, names: [number, number][], { at, colour, dash, text = '', end }: Rule) {
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
    const isFree = (left: number) =>
        left >= edge.left - 1 && left + width <= edge.right + 1 && names.every(([begin, stop]) => left >= stop || left + width <= begin);
    const ends = names.flatMap(([begin, stop]) => [stop, begin - width]);
    const nearest = [x - width / 2, x, x - width, edge.left, edge.right - width, ...ends]
        .filter(isFree)
        .sort((a, b) => Math.abs(a + width / 2 - x) - Math.abs(b + width / 2 - x));
    if (!nearest.length) return;
    names.push([nearest[0], nearest[0] + width]);
    ctx.fillStyle = colour;
    ctx.fillText(text, nearest[0] + 4 * ratio, edge.top - 9 * ratio);
}

function drawRules(u: uPlot, { run, page, side, theme }: Marked) {
    const { top, bottom, position, isIn } = frame(u);
    const names: [number, number][] = [];
    const draw = (what: Rule) => rule(u, names, what);
    const inView = run.head.marks.filter((mark) => isIn(position(mark.time)));
    // Many would hide what lies below them.
    const end = inView.length > MOST_RULES ? top + 12 * devicePixelRatio : bottom;
    for (const mark of inView) draw({ at: mark.time, colour: theme['--mark'], dash: [1, 3], end });
    for (const incident of run.head.oom.incidents)
        draw({ at: incident.time, colour: theme['--problem'], dash: incident.outcome === 'retried' ? [1, 3] : [] });
    // Of several processes the peak of the sum is what the line on top shows.
    const which = side === 'both' ? 'total' : side;
    const [main, sum] = [run.head.peaks[which], run.parts.together?.peaks[which]];
    const at = sum?.time ?? main?.time;
    const bytes = sum?.bytes ?? (main ? (side === 'both' ? main.host + main.device : main[side]) : 0);
    const chosen = run.moments[page.moment];
    if (main && at !== undefined) draw({ at, colour: theme['--text'], dash: [2, 3], text: `peak ${size(bytes)}` });
    if (chosen) draw({ at: chosen.time, colour: theme['--accent'], dash: [], text: chosen.time === at ? '' : chosen.name });
    if (page.other !== null)
        draw({ at: run.moments[page.other].time, colour: theme['--other'], dash: [6, 4], text: `vs. ${run.moments[page.other].name}` });
}

export function drawMarks(u: uPlot, marked: Marked) {
    const { ctx } = u;
    ctx.save();
    ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textBaseline = 'middle';
    ctx.textAlign = 'left';
    drawRegions(u, marked);
    drawGround(u, marked);
    drawRules(u, marked);
    ctx.restore();
}

/** Keys of the signs that are on the plot: class and name. */
export const signsOf = ({ head, moments }: Run): [string, string][] =>
    (
        [
            ['region', 'region', head.regions],
            ['mark', 'mark', head.marks],
            ['scope', 'start-up call', head.scopes],
            ['snapshot', 'snapshot', moments],
            ['failure', 'failed allocation', head.oom.incidents],
        ] as const
    ).flatMap(([name, text, rows]): [string, string][] => (rows.length ? [[name, text]] : []));
