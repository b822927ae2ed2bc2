// SPDX-License-Identifier: GPL-2.0-or-later
//
// The program, its machine, how it was recorded, and warnings.

import { h } from '../base/dom.js';
import { count, size, whole } from '../base/units.js';
import { Table } from '../charts/table.js';
import { View } from './view.js';

/** @typedef {import('../runs/data.js').RunHead} RunHead */
/** @typedef {{name: string, figure: string}} Odd */

/** Failed calls and warnings, and how often they came. @param {RunHead} head @returns {Odd[]} */
const warningsOf = (head) => [
    ...head.failures.map((failure) => ({ name: `${failure.name} failed with error ${failure.code}`, figure: count(failure.calls, 'call') })),
    ...head.counters.map(([key, n]) => ({ name: key, figure: key.endsWith('-bytes') ? size(n) : whole(n) })),
];

/** A table that is folded away. @param {string} caption @param {[string, string][]} rows */
function folded(caption, rows) {
    /** @type {Table<[string, string]>} */
    const grid = new Table(caption, { limit: 60 });
    grid.show([{ head: 'key', value: (row) => row[0] }, { head: 'value', isLong: true, value: (row) => row[1] }], rows);
    return h('details', {}, h('summary', {}, caption), grid.element);
}

/** @param {RunHead} head @param {number} kept nodes of call stacks on the page */
const pruned = (head, kept) =>
    kept < head.nodes
        ? `This page has ${whole(kept)} of ${whole(head.nodes)} nodes of call stacks; smaller ones are summed into their callers. All sums are exact.`
        : `This page has all ${whole(head.nodes)} nodes of call stacks.`;

export class About extends View {
    static id = 'about';
    static title = 'About this run';
    static isWhole = true;

    content() {
        const { head, nodes } = this.run;
        const odd = warningsOf(head);
        /** @type {Table<Odd>|null} */
        const grid = odd.length ? new Table('Failed calls and warnings') : null;
        grid?.show([{ head: 'what', value: (row) => row.name }, { head: 'how often', value: (row) => row.figure }], odd);
        const manifest = head.manifest.filter(([key]) => !key.startsWith('option.'));
        const options = head.manifest.filter(([key]) => key.startsWith('option.'));
        return [
            h('dl', {}, ...head.facts.flatMap(([name, text]) => [h('dt', {}, name), h('dd', {}, text)])),
            ...head.notes.map((note) => h('p', {}, note)),
            head.without_size.length > 0 &&
                h('p', { class: 'without-size' }, `Not counted: driver objects of unknown size (${head.without_size.map(([noun, n]) => count(n, noun)).join(', ')}).`),
            (!!head.truncation || !head.is_complete) &&
                h('p', { class: 'problem' }, `Incomplete trace: ${head.truncation || 'no end record (killed, or still running)'}. The page shows what came before.`),
            grid?.element,
            manifest.length > 0 && folded('Manifest', manifest),
            options.length > 0 && folded("The recorder's options", options.map(([key, text]) => [`--${key.slice('option.'.length)}`, text])),
            h('p', { class: 'quiet' }, pruned(head, nodes.parent.length - 1)),
        ];
    }
}
