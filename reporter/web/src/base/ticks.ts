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
    ],
};

/** From two minutes on, times are read as a clock: 2:30. */
const isClock = (kind: string, most: number) => kind === 'ms' && most >= 120_000;
const DAY = 86400;
const DAYS = [1, 10, 100, 1000, 1e4, 1e5].flatMap((power) => [1, 2, 5].map((factor) => factor * power * DAY));
const CLOCK = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, ...DAYS].map((seconds) => 1000 * seconds);

function clock(time: number, digits: number) {
    const two = (n: number) => String(n).padStart(2, '0');
    const seconds = time / 1000;
    const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60)];
    const rest = (seconds % 60).toFixed(digits).padStart(digits ? digits + 3 : 2, '0');
    return hours ? `${hours}:${two(minutes % 60)}:${rest}` : `${minutes}:${rest}`;
}

/** The largest unit of which the axis shows at least one, and in which its ticks need few digits. `kind` is "B", "i" or "ms", here and below. */
const unitOf = (kind: string, least: number, most: number): Unit =>
    UNITS[kind].filter(({ size }) => most >= size && most - least >= size / 5).at(-1) ?? UNITS[kind][0];

/** Steps that are round, ascending. */
export function steps(kind: string, least: number, most: number) {
    const { size } = unitOf(kind, least, most);
    const found = [];
    for (let power = -4; power < 7; power++) for (const factor of [1, 2, 5]) found.push(factor * 10 ** power * size);
    // Half a byte is none, nor is half a tick of the clock.
    const round = found.filter((step) => step >= 1);
    return isClock(kind, most) ? [...round.filter((step) => step < 1000), ...CLOCK] : round;
}

/** Labels of `ticks`, which are ascending, one step apart. */
export function labels(kind: string, ticks: number[], least: number, most: number) {
    const { name, size } = isClock(kind, most) ? UNITS.ms[1] : unitOf(kind, least, most);
    const step = ticks.length > 1 ? (ticks[1] - ticks[0]) / size : 1;
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-6));
    if (isClock(kind, most)) return ticks.map((tick) => clock(tick, digits));
    return ticks.map((tick) => (tick ? `${(tick / size).toFixed(digits)} ${name}` : '0'));
}

/** Ticks, about `wanted` at most. */
export function ticksOf(kind: string, least: number, most: number, wanted: number) {
    const step = steps(kind, least, most).find((each) => (most - least) / each <= wanted) ?? most - least;
    const first = Math.ceil(least / step - 1e-9);
    return Array.from({ length: Math.max(0, Math.floor(most / step + 1e-9) - first + 1) }, (_, i) => (first + i) * step);
}
