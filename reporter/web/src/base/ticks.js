// SPDX-License-Identifier: GPL-2.0-or-later
//
// The ticks of an axis: one unit for all of them, and steps that are round in that unit, so that they can be compared at a
// glance: 0.5, 1 and 1.5 GiB rather than 512 MiB, 1 GiB and 1.50 GiB.

/** @typedef {{name: string, size: number}} Unit `size`: of one, in what the axis counts */

const BYTES = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'].map((name, i) => ({ name, size: 1024 ** i }));
/** @type {Record<string, Unit[]>} */
const UNITS = {
    B: BYTES,
    i: ['i', 'ki', 'Mi', 'Gi', 'Ti', 'Pi'].map((name, i) => ({ name: i ? `${name[0]} i` : name, size: 1000 ** i })),
    ms: [
        { name: 'ms', size: 1 },
        { name: 's', size: 1000 },
        { name: 'min', size: 60000 },
        { name: 'h', size: 3600000 },
    ],
};

/** The largest unit of which the axis shows at least one, and in which its ticks need few digits; of minutes and hours at least five, as parts
 * of these are no round numbers. @param {string} kind "B", "i" or "ms" @param {number} least @param {number} most on the axis @returns {Unit} */
function unitOf(kind, least, most) {
    const fitting = UNITS[kind].filter(({ size }) => most >= size && (kind === 'ms' && size > 1000 ? most - least >= 5 * size : (most - least) * 5 >= size));
    return fitting.at(-1) ?? UNITS[kind][0];
}

/** Steps that are round, ascending. @param {string} kind @param {number} least @param {number} most */
export function steps(kind, least, most) {
    const { size } = unitOf(kind, least, most);
    const found = [];
    for (let power = -4; power < 7; power++) for (const factor of [1, 2, 5]) found.push(factor * 10 ** power * size);
    // Half a byte is none, nor is half a tick of the clock.
    return found.filter((step) => step >= 1);
}

/** Labels of ticks. @param {string} kind @param {number[]} ticks ascending, one step apart @param {number} least @param {number} most on the axis */
export function labels(kind, ticks, least, most) {
    const { name, size } = unitOf(kind, least, most);
    const step = ticks.length > 1 ? (ticks[1] - ticks[0]) / size : 1;
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-6));
    return ticks.map((tick) => (tick ? `${(tick / size).toFixed(digits)} ${name}` : '0'));
}

/** Ticks, at most about so many. @param {string} kind @param {number} least @param {number} most on the axis @param {number} wanted */
export function ticksOf(kind, least, most, wanted) {
    const step = steps(kind, least, most).find((each) => (most - least) / each <= wanted) ?? most - least;
    const first = Math.ceil(least / step - 1e-9);
    return Array.from({ length: Math.max(0, Math.floor(most / step + 1e-9) - first + 1) }, (_, i) => (first + i) * step);
}
