// SPDX-License-Identifier: GPL-2.0-or-later
//
// What is compared: the traces of each column, and in what their software and machine differ.

import { comparisonOf } from '../comparison.js';
import { h } from '../dom.js';
import { table } from '../table.js';
import { whole } from '../units.js';

/** @typedef {import('../comparison.js').Difference['facts'][number]} Fact */
/** @typedef {{label: string, values: string[]}} Line */

/** @type {import('../page.js').View} */
export const sides = {
    id: 'sides',
    title: 'What is compared',
    mount(place, page) {
        const { columns, facts, common } = comparisonOf(page).difference;
        const traces = columns.map(({ runs }) => runs.map(({ file, complete }) => (complete ? file : `${file} (truncated)`)).join(', '));
        /** @param {string} caption @param {Line[]} rows */
        const facing = (caption, rows) => {
            const grid = /** @type {ReturnType<typeof table<Line>>} */ (table(caption, { limit: 40 }));
            grid.show([{ head: '', value: (row) => row.label }, ...columns.map(({ label }, n) => ({ head: label, isLong: true, value: (/** @type {Line} */ row) => row.values[n] || '?' }))], rows);
            return grid.element;
        };
        const main = facts.filter((fact) => !fact.is_detail);
        place.append(facing('What differs', [{ label: 'traces', values: traces }, ...main]));
        if (columns.some(({ runs }) => runs.length > 1)) {
            const chosen = columns.filter(({ runs }) => runs.length > 1).map(({ label, stacks_of }) => `${label}: ${stacks_of}`);
            place.append(h('p', { class: 'quiet' }, `The call tree of repeated runs is that of the run whose total is the median (${chosen.join('; ')}).`));
        }
        const details = facts.filter((fact) => fact.is_detail);
        if (details.length) place.append(h('details', {}, h('summary', {}, `${whole(details.length)} more: options, environment, packages`), facing('Options, environment and packages', details)));
        const same = h('dl', {});
        for (const [name, text] of common) same.append(h('dt', {}, name), h('dd', {}, text));
        if (common.length) place.append(h('details', {}, h('summary', {}, 'The same in all runs'), same));
        return () => {};
    },
};
