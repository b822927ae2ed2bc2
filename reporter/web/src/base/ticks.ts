// SPDX-License-Identifier: GPL-2.0-or-later
//
// The ticks of an axis: one unit for all of them, and steps that are round in that unit, so that they can be compared at a
// glance: 0.5, 1 and 1.5 GiB rather than 512 MiB, 1 GiB and 1.50 GiB.

/** `size`: of one, in what the axis counts. */
type Unit = { name: string; size: number };

const BYTES = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'].map((name, i) => ({ name, size: 1024 ** i }));
const UNITS: Record<string, Unit[]> = {
    B: BYTES,
    i: ['i', 'ki', 'Mi', 'Gi', 'Ti', 'Pi'].map((name, i) => ({ name: i ? `${name[0]} i` : name, size: 1000 ** i })),
    ms: [
        { name: 'ms', size: 1 },
        { name: 's', size: 1000 },
        { name: 'min', size: 60000 },
        { name: 'h', size: 3600000 },
    ],
};

/**
 * The largest unit of which the axis shows at least one, and in which its ticks need few digits; of minutes and hours at least five,
 * as parts of these are no round numbers. `kind` is "B", "i" or "ms", here and below.
 */
function unitOf(kind: string, least: number, most: number): Unit {
    const needed = ({ size }: Unit) => (kind === 'ms' && size > 1000 ? 5 * size : size / 5);
    const fitting = UNITS[kind].filter((unit) => most >= unit.size && most - least >= needed(unit));
    return fitting.at(-1) ?? UNITS[kind][0];
}

/** Steps that are round, ascending. */
export function steps(kind: string, least: number, most: number) {
    const { size } = unitOf(kind, least, most);
    const found = [];
    for (let power = -4; power < 7; power++) for (const factor of [1, 2, 5]) found.push(factor * 10 ** power * size);
    // Half a byte is none, nor is half a tick of the clock.
    return found.filter((step) => step >= 1);
}

/** Labels of `ticks`, which are ascending, one step apart. */
export function labels(kind: string, ticks: number[], least: number, most: number) {
    const { name, size } = unitOf(kind, least, most);
    const step = ticks.length > 1 ? (ticks[1] - ticks[0]) / size : 1;
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-6));
    return ticks.map((tick) => (tick ? `${(tick / size).toFixed(digits)} ${name}` : '0'));
}

/** Ticks, about `wanted` at most. */
export function ticksOf(kind: string, least: number, most: number, wanted: number) {
    const step = steps(kind, least, most).find((each) => (most - least) / each <= wanted) ?? most - least;
    const first = Math.ceil(least / step - 1e-9);
    return Array.from({ length: Math.max(0, Math.floor(most / step + 1e-9) - first + 1) }, (_, i) => (first + i) * step);
}
