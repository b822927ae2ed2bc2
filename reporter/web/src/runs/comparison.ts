// SPDX-License-Identifier: GPL-2.0-or-later
//
// Runs laid side by side, as jmassif diff lays them. What they held by call stack is laid out as a run, with a moment a column,
// so whatever draws two moments of a run draws two columns. The counterpart of jmassif/page/comparison.py.

import { fixed } from '../base/units.js';
import type { Difference, DifferenceCell, DifferenceRow, DifferenceTable, Pool, RunData } from './data.js';
import type { Page } from './page.js';
import { heldParts, noOtherParts } from './parts.js';
import { Run } from './run.js';

export const held = (cell: DifferenceCell, pool: Pool) => (pool === 'bytes' ? cell.host + cell.device : cell[pool]);

export class Comparison extends Run {
    readonly difference;

    constructor(data: RunData, difference: Difference) {
        super({ ...heldParts(data), ...noOtherParts(), measures: ['bytes', 'blocks'] });
        this.difference = difference;
    }

    override label(index: number) {
        return this.difference.columns[index].label;
    }

    get hasRepeats() {
        return this.difference.columns.some((column) => column.runs.length > 1);
    }

    /** Pools of a table: both sides of unified boards, or each of a discrete GPU. */
    pools(table: DifferenceTable): Pool[] {
        const hasDevice = table.total.cells.some((cell) => cell.device);
        return this.difference.discrete && hasDevice ? ['host', 'device'] : ['bytes'];
    }
}

/** The comparison that a page is about. */
export const comparisonOf = (page: Page) => page.run as Comparison;

/** Whether a column differs from the first by more than run-to-run noise; null: that is not known, or it is compared with another. */
export const isBeyondNoise = (row: DifferenceRow, now: number, before: number | null) => (before === 0 ? row.cells[now].beyond_noise : null);

/** How much more, in words, as the text report has it; "" for nothing worth telling. */
export function changeOf(before: number, now: number) {
    if (!before || !now) return now ? 'new' : before ? 'gone' : '';
    if (before < 0) return '';
    if (now >= 2 * before) return `${fixed(now / before, 1)} x`;
    const text = `${fixed((100 * (now - before)) / before, 0)} %`;
    return text === '0 %' || text === '-0 %' ? '' : now > before ? `+${text}` : text;
}
