// SPDX-License-Identifier: GPL-2.0-or-later
//
// The traces of each column, and in what their software and machine differ.

import { h } from '../base/dom.js';
import { whole } from '../base/units.js';
import { Table } from '../charts/table.js';
import { comparisonOf } from '../runs/comparison.js';
import { View } from './view.js';

/** @typedef {{label: string, values: string[]}} Line */

/** A line by line comparison. @param {string} caption @param {Line[]} rows @param {import('../runs/data.js').DifferenceColumn[]} columns */
function facing(caption, rows, columns) {
    /** @type {Table<Line>} */
    const grid = new Table(caption, { limit: 40 });
    grid.show([{ head: 'fact', value: (row) => row.label }, ...columns.map(({ label }, n) => ({ head: label, isLong: true, value: (/** @type {Line} */ row) => row.values[n] || '?' }))], rows);
    return grid.element;
}

export class Sides extends View {
    static id = 'sides';
    static title = 'Compared runs';

    content() {
        const { columns, facts, common } = comparisonOf(this.page).difference;
        const traces = columns.map(({ runs }) => runs.map(({ file, complete }) => (complete ? file : `${file} (truncated)`)).join(', '));
        const main = facing('Differences', [{ label: 'traces', values: traces }, ...facts.filter((fact) => !fact.is_detail)], columns);
        const repeated = columns.filter(({ runs }) => runs.length > 1).map(({ label, stacks_of }) => `${label}: ${stacks_of}`);
        const details = facts.filter((fact) => fact.is_detail);
        const same = h('dl', {}, ...common.flatMap(([name, text]) => [h('dt', {}, name), h('dd', {}, text)]));
        return [
            main,
            repeated.length > 0 && h('p', { class: 'quiet' }, `Call trees of repeated runs are of the median run (${repeated.join('; ')}).`),
            details.length > 0 && h('details', {}, h('summary', {}, `${whole(details.length)} more: options, environment, packages`), facing('Options, environment and packages', details, columns)),
            common.length > 0 && h('details', {}, h('summary', {}, 'The same in all runs'), same),
        ];
    }
}
