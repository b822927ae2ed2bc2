// SPDX-License-Identifier: GPL-2.0-or-later
//
// Runs laid side by side, as jm_diff lays them. What they held by call stack is laid out as a run, with a moment a column,
// so whatever draws two moments of a run draws two columns. The counterpart of jmassif/page/comparison.py.

import { heldParts, noOtherParts } from './parts.js';
import { Run } from './run.js';

/** @typedef {import('./data.js').Difference} Difference */
/** @typedef {import('./data.js').Pool} Pool */
/** @typedef {import('./data.js').DifferenceRow} DifferenceRow */
/** @typedef {import('./data.js').DifferenceCell} DifferenceCell */
/** @typedef {import('./data.js').DifferenceTable} DifferenceTable */

/** @param {DifferenceCell} cell @param {Pool} pool */
export const held = (cell, pool) => (pool === 'bytes' ? cell.host + cell.device : cell[pool]);

export class Comparison extends Run {
    /** @param {import('./data.js').RunData} data @param {Difference} difference */
    constructor(data, difference) {
        super({ ...heldParts(data), ...noOtherParts(), measures: ['bytes', 'blocks'] });
        this.difference = difference;
    }

    /** @param {number} index */
    label(index) {
        return this.difference.columns[index].label;
    }

    get hasRanges() {
        return this.difference.columns.some((column) => column.runs.length > 1);
    }

    /** What may be added up in a table: both sides of unified boards, or each of a discrete GPU. @param {DifferenceTable} table @returns {Pool[]} */
    pools(table) {
        const hasDevice = table.total.cells.some((cell) => cell.ranges.device[0] || cell.ranges.device[1]);
        return this.difference.discrete && hasDevice ? ['host', 'device'] : ['bytes'];
    }
}

/** The comparison that a page is about. @param {import('./page.js').Page} page @returns {Comparison} */
export const comparisonOf = (page) => /** @type {Comparison} */ (page.run);

/** Whether two columns differ by more than their runs differ among each other; null: no runs are repeated. @param {Comparison} run @param {DifferenceRow} row @param {number} one @param {number} other */
export function isBeyond(run, row, one, other) {
    if (!run.hasRanges) return null;
    const [a, b] = [row.cells[one].ranges, row.cells[other].ranges];
    return /** @type {Pool[]} */ (['host', 'device', 'bytes']).some((pool) => a[pool][1] < b[pool][0] || b[pool][1] < a[pool][0]);
}

/** How much more, in words; "" for nothing worth telling. @param {number} before @param {number} now */
export function percentOf(before, now) {
    if (!before || !now) return now ? 'new' : before ? 'gone' : '';
    const text = before > 0 ? `${now > before ? '+' : ''}${((100 * (now - before)) / before).toFixed(1)} %` : '';
    return text === '+0.0 %' || text === '-0.0 %' || text === '0.0 %' ? '' : text;
}
