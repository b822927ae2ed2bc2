// SPDX-License-Identifier: GPL-2.0-or-later
//
// Memory over time as areas that lie on each other: by owner, kind, group, library, role or process. At the snapshots the
// areas are exact; between them their sum is, and how it is shared out is interpolated. Beside them, the machine's figures.

import { countUpTo } from '../base/search.js';
import { coloursOf, REST } from './colours.js';
import type { Figure } from './parts.js';
import type { Dimension, Run } from './run.js';

/** The last sample; null before the first. */
export const valueAt = ({ time, bytes }: Figure, at: number) => bytes[countUpTo(time, at) - 1] ?? null;

export type Side = 'both' | 'host' | 'device';
/** `bytes`: by moment. */
export type Area = { name: string; colour: string; bytes: Float64Array };

const MOST_AREAS = 6;

/** A moment's or an outline row's time in one axis, each once. */
export function times(run: Run) {
    return Float64Array.from(new Set([...run.moments.map((moment) => moment.time), ...run.outline.time])).sort();
}

/** The last moment that lies nearest to a time, and among several at one time the peak. */
export function nearestMoment(run: Run, at: number) {
    let best = 0;
    for (const moment of run.moments) {
        const [distance, least] = [Math.abs(moment.time - at), Math.abs(run.moments[best].time - at)];
        if (distance < least || (distance === least && !run.moments[best].isPeak)) best = moment.index;
    }
    return best;
}

/** The names that matter most, and the rest as one; the largest first. */
export function areas(run: Run, dimension: Dimension, side: Side): Area[] {
    const { names } = run.dimension(dimension);
    const series = run.series(dimension, side);
    const weights = series.map((bytes) => bytes.reduce((most, value) => (value > most ? value : most), 0));
    const colours = coloursOf(run, dimension);
    const order = names
        .map((_, i) => i)
        .filter((i) => weights[i] > 0)
        .sort((a, b) => weights[b] - weights[a]);
    const found = order.slice(0, MOST_AREAS).map((i) => ({ name: names[i], colour: colours[i], bytes: series[i] }));
    const small = order.slice(MOST_AREAS);
    if (small.length) {
        const rest = new Float64Array(run.moments.length);
        for (const i of small) series[i].forEach((value, moment) => (rest[moment] += value));
        found.push({ name: `${small.length} ${small.length === 1 ? 'other' : 'others'}`, colour: REST, bytes: rest });
    }
    return found;
}

/** Values known at some times, on the straight line between them. */
function interpolated(x: Float64Array, at: number[], values: Float64Array) {
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

/** The totals at the times of the axis as last recorded, and the highest since then. */
export function exact(run: Run, x: Float64Array, side: Side) {
    const most = new Map<number, number>();
    const now = new Map<number, number>();
    const note = (at: number, bytes: number, maximum: number) => {
        now.set(at, bytes);
        most.set(at, Math.max(maximum, most.get(at) ?? 0));
    };
    const { outline } = run;
    outline.time.forEach((at, row) => {
        const bytes = side === 'both' ? outline.host[row] + outline.device[row] : outline[side][row];
        note(at, bytes, side === 'both' ? outline.maximum[row] : bytes);
    });
    for (const moment of run.moments) {
        const bytes = side === 'both' ? moment.host + moment.device : moment[side];
        note(moment.time, bytes, bytes);
    }
    return { now: Float64Array.from(x, (at) => now.get(at) ?? 0), most: Float64Array.from(x, (at) => most.get(at) ?? 0) };
}

/** The upper edge of each area, which is the sum of it and all below, at the times of the axis. The largest lies at the bottom. */
export function edges(run: Run, list: Area[], x: Float64Array, totals: Float64Array) {
    const at = run.moments.map((moment) => moment.time);
    let below = new Float64Array(x.length);
    const stacked = list.map((area) => {
        const sums = interpolated(x, at, area.bytes);
        for (let i = 0; i < sums.length; i++) sums[i] += below[i];
        below = sums;
        return { ...area, sums };
    });
    // `below` is the topmost edge by now, which is scaled with the others.
    const factors = Float64Array.from(below, (sum, i) => (sum ? totals[i] / sum : 1));
    for (const { sums } of stacked) for (let i = 0; i < sums.length; i++) if (factors[i] !== 1) sums[i] *= factors[i];
    return stacked;
}
