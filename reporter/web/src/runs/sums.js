// SPDX-License-Identifier: GPL-2.0-or-later
//
// Memory of each owner, library, line or role at the chosen moment, and at the one that it is compared with.

import { NOTHING } from './run.js';

/** @typedef {import('./run.js').Run} Run */
/** @typedef {import('./run.js').Sum} Sum */
/** @typedef {import('./run.js').Dimension} Dimension */
/** @typedef {import('./page.js').Page} Page */
/** @typedef {{name: string, index: number, members: number[], sum: Sum, before: Sum|null}} Row `before`: at the moment that is compared with; `members`: indices of the names that it is the sum of */

/** @param {Sum} a @param {Sum} b @returns {Sum} */
function plus(a, b) {
    const sum = { ...a };
    for (const figure of /** @type {(keyof Sum)[]} */ (Object.keys(a))) sum[figure] += b[figure];
    return sum;
}

/** @param {Sum} sum */
export const total = (sum) => sum.host + sum.device;

/** @param {Row[]} rows @param {string} [name] @returns {Row} */
export const sumOf = (rows, name = 'total') => ({
    name,
    index: -1,
    members: rows.flatMap((row) => row.members),
    sum: rows.reduce((all, row) => plus(all, row.sum), NOTHING),
    before: rows.every((row) => row.before) ? rows.reduce((all, row) => plus(all, row.before ?? NOTHING), NOTHING) : null,
});

/** Sums of all names at a moment. @param {Run} run @param {Dimension} dimension @param {number} moment */
export const sumsOf = (run, dimension, moment) => {
    const sums = run.sums(dimension, moment);
    return run.dimension(dimension).names.map((name, index) => ({ name, index, members: [index], sum: sums[index] }));
};

/** The names that hold or held anything, the largest first. @param {Page} page @param {Dimension} dimension @param {(sum: Sum, index: number) => boolean} [keeps] @returns {Row[]} */
export function rowsOf(page, dimension, keeps = (sum) => total(sum) > 0 || sum.hostBlocks + sum.deviceBlocks > 0) {
    const { run, moment, other } = page;
    if (!run.moments.length) return [];
    const before = other === null ? null : run.sums(dimension, other);
    return sumsOf(run, dimension, moment)
        .map((row) => ({ ...row, before: before ? before[row.index] : null }))
        .filter((row) => keeps(row.sum, row.index) || (row.before && keeps(row.before, row.index)))
        .sort((a, b) => total(b.sum) - total(a.sum) || (a.name < b.name ? -1 : 1));
}

/** The pools that the run used. @param {Run} run @returns {('host'|'device')[]} */
export function sidesOf(run) {
    const sides = /** @type {('host'|'device')[]} */ (['host', 'device'].filter((side) => run.uses(/** @type {'host'|'device'} */ (side))));
    return sides.length ? sides : ['host'];
}
