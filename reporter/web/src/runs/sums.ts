// SPDX-License-Identifier: GPL-2.0-or-later
//
// Memory of each owner, library, line or role at the chosen moment, and at the one that it is compared with.

import type { Page } from './page.js';
import { NOTHING, type Dimension, type Run, type Side, type Sum } from './run.js';

/**
 * `before`: at the moment that is compared with; `since`: bytes allocated from then on; `members`: indices of the names that it is the sum
 * of.
 */
export type Row = { name: string; index: number; members: number[]; sum: Sum; before: Sum | null; since: number };

function plus(a: Sum, b: Sum) {
    const sum = { ...a };
    for (const figure of Object.keys(a) as (keyof Sum)[]) sum[figure] += b[figure];
    return sum;
}

export const total = (sum: Sum) => sum.host + sum.device;

/** What a cache takes back comes to it without being allocated. */
const since = (sum: Sum, before: Sum) => Math.max(sum.allocated - before.allocated, total(sum) - total(before), 0);

export const sumOf = (rows: Row[], name = 'total'): Row => ({
    name,
    index: -1,
    members: rows.flatMap((row) => row.members),
    sum: rows.reduce((all, row) => plus(all, row.sum), NOTHING),
    before: rows.every((row) => row.before) ? rows.reduce((all, row) => plus(all, row.before ?? NOTHING), NOTHING) : null,
    since: rows.reduce((all, row) => all + row.since, 0),
});

/** Sums of all names at a moment. */
export const sumsOf = (run: Run, dimension: Dimension, moment: number) => {
    const sums = run.sums(dimension, moment);
    return run.dimension(dimension).names.map((name, index) => ({ name, index, members: [index], sum: sums[index] }));
};

/** The names that hold or held anything, the largest first. */
export function rowsOf(
    page: Page,
    dimension: Dimension,
    keeps: (sum: Sum, index: number) => boolean = (sum) => total(sum) > 0 || sum.hostBlocks + sum.deviceBlocks > 0,
): Row[] {
    const { run, moment, other } = page;
    if (!run.moments.length) return [];
    const before = other === null ? null : run.sums(dimension, other);
    return sumsOf(run, dimension, moment)
        .map((row) => ({ ...row, before: before?.[row.index] ?? null, since: before ? since(row.sum, before[row.index]) : 0 }))
        .filter((row) => keeps(row.sum, row.index) || (row.before && keeps(row.before, row.index)) || row.since > 0)
        .sort((a, b) => total(b.sum) - total(a.sum) || (a.name < b.name ? -1 : 1));
}

/** The pools that the run used. */
export function sidesOf(run: Run): Side[] {
    const sides = (['host', 'device'] as const).filter((side) => run.uses(side));
    return sides.length ? sides : ['host'];
}

/** Sums at a moment by the name that each cell is given; null: it is in none. */
export function sumsBy(run: Run, moment: number, nameOf: (cell: number) => string | null) {
    const held = run.at(moment);
    const sums = new Map<string, Sum>();
    for (let cell = 0; cell < run.nCells; cell++) {
        const name = run.side[cell] === 2 || !(held.bytes[cell] || held.allocated[cell]) ? null : nameOf(cell);
        if (name === null) continue;
        const sum = sums.get(name) ?? { ...NOTHING };
        run.count(sum, held, cell);
        sums.set(name, sum);
    }
    return sums;
}

/** The largest first. */
export const rowsOfSums = (sums: Map<string, Sum>): Row[] =>
    [...sums]
        .map(([name, sum]) => ({ name, index: -1, members: [], sum, before: null, since: 0 }))
        .sort((a, b) => total(b.sum) - total(a.sum) || b.sum.allocated - a.sum.allocated || (a.name < b.name ? -1 : 1));
