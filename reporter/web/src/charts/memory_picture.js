// SPDX-License-Identifier: GPL-2.0-or-later
//
// Memory over time in a picture: the plot as the reader sees it, with its span of time, its areas, and the chosen moment.

import { moment as time, size } from '../base/units.js';
import { labels, ticksOf } from '../base/ticks.js';
import { edges } from '../runs/areas.js';
import { INK, MARGIN, number, rgb, title, WIDTH } from './picture.js';

/** @typedef {import('./picture.js').Picture} Picture */
/** @typedef {import('./memory.js').MemoryPlot} MemoryPlot */

const LEFT = 92;
const RIGHT = WIDTH - 24;
const HEIGHT = 330;
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
    const up = (/** @type {number} */ bytes) => top + HEIGHT * (1 - bytes / most);
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
    picture.add(`<clipPath id="${id}"><rect x="${LEFT}" y="${number(top)}" width="${RIGHT - LEFT}" height="${HEIGHT}"/></clipPath><g clip-path="url(#${id})">`);
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
