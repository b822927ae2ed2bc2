// SPDX-License-Identifier: GPL-2.0-or-later
//
// The columns of figures that tables of owners, libraries, lines and roles share, and the descriptions of owners.

import { h } from '../base/dom.js';
import { growth, percent, size, whole } from '../base/units.js';
import { NOTHING } from '../runs/run.js';
import { sidesOf, sumOf, total } from '../runs/sums.js';

/** @typedef {import('../runs/sums.js').Row} Row */
/** @typedef {import('../runs/run.js').Sum} Sum */
/** @typedef {import('../runs/page.js').Page} Page */

/**
 * The columns of figures: bytes and blocks in each pool, the sum where pools add up, and shares of what may be added up.
 * @param {Page} page @param {Row[]} rows @param {((row: Row) => Sum)|null} [totalOf] of rows that have a total beside what is their own
 * @returns {import('../charts/table.js').Column<Row>[]}
 */
export function figures(page, rows, totalOf = null) {
    const { run } = page;
    const sides = sidesOf(run);
    const all = sumOf(rows).sum;
    /** @type {import('../charts/table.js').Column<Row>[]} */
    const columns = [];
    const bytes = (/** @type {string} */ head, /** @type {(sum: Sum) => number} */ of) =>
        columns.push({ head, isFigure: true, value: (row) => of(row.sum), show: (row) => (of(row.sum) ? size(of(row.sum)) : '–') });
    const share = (/** @type {string} */ head, /** @type {(sum: Sum) => number} */ of) =>
        columns.push({ head, isFigure: true, value: (row) => (of(all) ? (100 * of(row.sum)) / of(all) : 0), show: (row) => percent(of(row.sum), of(all)), title: () => '' });
    const self = (/** @type {string} */ head) => (!totalOf ? head : head === 'total' ? 'self' : `self ${head}`);
    const isApart = sides.length > 1 && run.head.is_discrete;
    for (const side of sides) {
        bytes(self(sides.length > 1 ? side : 'total'), (sum) => sum[side]);
        if (isApart) share(`${side} share`, (sum) => sum[side]);
    }
    if (sides.length > 1 && !isApart) bytes(self('total'), total);
    if (!isApart) share('share', total);
    if (totalOf) {
        const pools = /** @type {[string, (sum: Sum) => number][]} */ (isApart ? sides.map((side) => [`total ${side}`, (/** @type {Sum} */ sum) => sum[side]]) : [['total', total]]);
        for (const [head, of] of pools) columns.push({ head, isFigure: true, value: (row) => of(totalOf(row)), show: (row) => size(of(totalOf(row))) });
    }
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

/** @type {import('../charts/table.js').Column<Row>} */
export const allocated = {
    head: 'allocated so far',
    isFigure: true,
    value: (row) => row.sum.allocated,
    show: (row) => size(row.sum.allocated),
};

/** Descriptions of owners, folded away; false without any. @param {import('../runs/data.js').Owner[]} owners */
export function ownersLegend(owners) {
    const known = owners.filter(({ about }) => about);
    const legend = h('dl', {}, ...known.flatMap(({ name, about }) => [h('dt', {}, name), h('dd', {}, about)]));
    return known.length > 0 && h('details', { class: 'owners' }, h('summary', {}, 'Owner descriptions'), legend);
}
