// SPDX-License-Identifier: GPL-2.0-or-later
//
// Runs laid side by side, as jmassif diff lays them. What they held by call stack is laid out as a run, with a moment a column,
// so whatever draws two moments of a run draws two columns. The counterpart of jmassif/page/comparison.py.

import { fixed } from '../base/units.js';
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

    get hasRepeats() {
        return this.difference.columns.some((column) => column.runs.length > 1);
    }

    /** Pools of a table: both sides of unified boards, or each of a discrete GPU. @param {DifferenceTable} table @returns {Pool[]} */
    pools(table) {
        const hasDevice = table.total.cells.some((cell) => cell.device);
        return this.difference.discrete && hasDevice ? ['host', 'device'] : ['bytes'];
    }
}

/** The comparison that a page is about. @param {import('./page.js').Page} page @returns {Comparison} */
export const comparisonOf = (page) => /** @type {Comparison} */ (page.run);

/** Whether a column differs from the first by more than run-to-run noise; null: that is not known, or it is compared with another. @param {DifferenceRow} row @param {number} now @param {number|null} before */
export const isBeyondNoise = (row, now, before) => (before === 0 ? row.cells[now].beyond_noise : null);

/** How much more, in words, as the text report has it; "" for nothing worth telling. @param {number} before @param {number} now */
export function changeOf(before, now) {
    if (!before || !now) return now ? 'new' : before ? 'gone' : '';
    if (before < 0) return '';
    if (now >= 2 * before) return `${fixed(now / before, 1)} x`;
    const text = `${fixed((100 * (now - before)) / before, 0)} %`;
    return text === '0 %' || text === '-0 %' ? '' : now > before ? `+${text}` : text;
}
