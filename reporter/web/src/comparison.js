// SPDX-License-Identifier: GPL-2.0-or-later
//
// Runs laid side by side, as jm_diff lays them. What they held by call stack is told as a run's is, with a moment a column,
// so whatever draws two moments of a run draws two columns. The counterpart of jmassif/page/comparison.py.

import { Run, heldParts, noOtherParts } from './run.js';

/** @typedef {{host: number, device: number, number: number}} Figures bytes; `number` of blocks or calls */
/** @typedef {'host'|'device'|'bytes'} Pool `bytes`: both */
/** @typedef {Figures & {ranges: Record<Pool, [number, number]>, change: Figures, status: string, beyond_spread: boolean|null}} Cell */
/** @typedef {{name: string, inside: string[], in_total: boolean, cells: Cell[]}} Row a cell a column */
/** @typedef {{by: string, number_is: 'blocks'|'calls', rows: Row[], other_rows: number, other: Row|null, remainder: Row|null, total: Row}} Table */
/** @typedef {{label: string, stacks_of: string, runs: {file: string, complete: boolean}[]}} Column */
/**
 * As jm_diff(1) describes --format=json, but for `stacks_of`, `is_detail` and `common`.
 * @typedef {object} Difference
 * @property {string} moment
 * @property {boolean} discrete
 * @property {number} min_bytes
 * @property {Column[]} columns
 * @property {{key: string, label: string, values: string[], is_detail: boolean}[]} facts
 * @property {[string, string][]} common
 * @property {Table[]} views
 */

/** @param {Cell} cell @param {Pool} pool */
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

    /** What may be added up in a table: both sides of unified boards, or each of a discrete GPU. @param {Table} table @returns {Pool[]} */
    pools(table) {
        const hasDevice = table.total.cells.some((cell) => cell.ranges.device[0] || cell.ranges.device[1]);
        return this.difference.discrete && hasDevice ? ['host', 'device'] : ['bytes'];
    }
}

/** The comparison that a page is about. @param {import('./page.js').Page} page @returns {Comparison} */
export const comparisonOf = (page) => /** @type {Comparison} */ (page.run);

/** Whether two columns differ by more than their runs differ among each other; null: no runs are repeated. @param {Comparison} run @param {Row} row @param {number} one @param {number} other */
export function isBeyond(run, row, one, other) {
    if (!run.hasRanges) return null;
    const [a, b] = [row.cells[one].ranges, row.cells[other].ranges];
    return /** @type {Pool[]} */ (['host', 'device', 'bytes']).some((pool) => a[pool][1] < b[pool][0] || b[pool][1] < a[pool][0]);
}
