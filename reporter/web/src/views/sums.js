// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the tables of owners, libraries, lines and roles share: a row a name, with what it held at the chosen moment.

import { growth, percent, size, whole } from '../units.js';

/** @typedef {import('../run.js').Run} Run */
/** @typedef {import('../run.js').Sum} Sum */
/** @typedef {import('../run.js').Dimension} Dimension */
/** @typedef {import('../page.js').Page} Page */
/** @typedef {{name: string, index: number, members: number[], sum: Sum, before: Sum|null}} Row `before`: at the moment that is compared with; `members`: indices of the names that it is the sum of */

/** @type {Sum} */
const NOTHING = { host: 0, device: 0, hostBlocks: 0, deviceBlocks: 0, allocated: 0, listed: 0 };

/** @param {Sum} a @param {Sum} b @returns {Sum} */
const plus = (a, b) => ({
    host: a.host + b.host,
    device: a.device + b.device,
    hostBlocks: a.hostBlocks + b.hostBlocks,
    deviceBlocks: a.deviceBlocks + b.deviceBlocks,
    allocated: a.allocated + b.allocated,
    listed: a.listed + b.listed,
});

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

/** What each name holds at a moment. @param {Run} run @param {Dimension} dimension @param {number} moment */
export const sumsOf = (run, dimension, moment) => {
    const sums = run.sums(dimension, moment);
    return run.dimension(dimension).names.map((name, index) => ({ name, index, members: [index], sum: sums[index] }));
};

/** The names that hold or held anything, the largest first. @param {Page} page @param {Dimension} dimension @param {(sum: Sum) => boolean} [keeps] @returns {Row[]} */
export function rowsOf(page, dimension, keeps = (sum) => total(sum) > 0 || sum.hostBlocks + sum.deviceBlocks > 0) {
    const { run, moment, other } = page;
    if (!run.moments.length) return [];
    const before = other === null ? null : run.sums(dimension, other);
    return sumsOf(run, dimension, moment)
        .map((row) => ({ ...row, before: before ? before[row.index] : null }))
        .filter((row) => keeps(row.sum) || (row.before && keeps(row.before)))
        .sort((a, b) => total(b.sum) - total(a.sum) || (a.name < b.name ? -1 : 1));
}

/** The pools that the run used. @param {Run} run @returns {('host'|'device')[]} */
export function sidesOf(run) {
    const sides = /** @type {('host'|'device')[]} */ (['host', 'device'].filter((side) => run.uses(/** @type {'host'|'device'} */ (side))));
    return sides.length ? sides : ['host'];
}

/**
 * The columns of figures: bytes and blocks in each pool, the sum where pools add up, and shares of what may be added up.
 * @param {Page} page @param {Row[]} rows
 * @returns {import('../table.js').Column<Row>[]}
 */
export function figures(page, rows) {
    const { run } = page;
    const sides = sidesOf(run);
    const all = sumOf(rows).sum;
    /** @type {import('../table.js').Column<Row>[]} */
    const columns = [];
    const bytes = (/** @type {string} */ head, /** @type {(sum: Sum) => number} */ of) =>
        columns.push({ head, isFigure: true, value: (row) => of(row.sum), show: (row) => (of(row.sum) ? size(of(row.sum)) : '–') });
    const share = (/** @type {string} */ head, /** @type {(sum: Sum) => number} */ of) =>
        columns.push({ head, isFigure: true, value: (row) => (of(all) ? (100 * of(row.sum)) / of(all) : 0), show: (row) => percent(of(row.sum), of(all)), title: () => '' });
    const isApart = sides.length > 1 && run.head.is_discrete;
    for (const side of sides) {
        bytes(sides.length > 1 ? side : 'held', (sum) => sum[side]);
        if (isApart) share(`${side} share`, (sum) => sum[side]);
    }
    if (sides.length > 1 && !isApart) bytes('together', total);
    if (!isApart) share('share', total);
    columns.push({
        head: 'blocks',
        isFigure: true,
        value: (row) => row.sum.hostBlocks + row.sum.deviceBlocks,
        show: (row) => whole(row.sum.hostBlocks + row.sum.deviceBlocks),
    });
    if (page.other !== null) {
        for (const [head, of] of /** @type {[string, (sum: Sum) => number][]} */ (
            isApart ? sides.map((side) => [`${side} change`, (/** @type {Sum} */ sum) => sum[side]]) : [['change', total]]
        )) {
            const change = (/** @type {Row} */ row) => of(row.sum) - of(row.before ?? NOTHING);
            columns.push({ head, isFigure: true, value: change, show: (row) => growth(change(row)) });
        }
    }
    return columns;
}

/** @type {import('../table.js').Column<Row>} */
export const allocated = {
    head: 'allocated so far',
    isFigure: true,
    value: (row) => row.sum.allocated,
    show: (row) => size(row.sum.allocated),
};
