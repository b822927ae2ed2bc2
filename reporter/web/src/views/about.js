// SPDX-License-Identifier: GPL-2.0-or-later
//
// What ran, where and how it was recorded; and whatever was odd.

import { h } from '../dom.js';
import { table } from '../table.js';
import { count, size, whole } from '../units.js';

/** @typedef {{name: string, figure: string}} Odd */

/** @type {import('../page.js').View} */
export const about = {
    id: 'about',
    title: 'About this run',
    mount(place, page) {
        const { head } = page.run;
        const facts = h('dl', {});
        for (const [name, text] of head.facts) facts.append(h('dt', {}, name), h('dd', {}, text));
        place.append(facts);
        for (const note of head.notes) place.append(h('p', {}, note));
        if (head.truncation || !head.is_complete) {
            place.append(h('p', { class: 'problem' }, `This trace does not reach the program's end: ${head.truncation || 'it was killed, or still runs'}. The page shows what came before.`));
        }
        const odd = [
            ...head.failures.map((failure) => ({ name: `${failure.name} failed with error ${failure.code}`, figure: count(failure.calls, 'call') })),
            ...head.counters.map(([key, n]) => ({ name: key, figure: key.endsWith('-bytes') ? size(n) : whole(n) })),
        ];
        if (odd.length) {
            const grid = /** @type {ReturnType<typeof table<Odd>>} */ (table('Failed calls and oddities'));
            place.append(grid.element);
            grid.show([{ head: 'what', value: (row) => row.name }, { head: 'how often', value: (row) => row.figure }], odd);
        }
        const manifest = head.manifest.filter(([key]) => !key.startsWith('option.'));
        const options = head.manifest.filter(([key]) => key.startsWith('option.'));
        for (const [caption, rows] of /** @type {[string, [string, string][]][]} */ ([
            ['Manifest', manifest],
            ["The recorder's options", options.map(([key, text]) => [`--${key.slice('option.'.length)}`, text])],
        ])) {
            if (!rows.length) continue;
            const grid = /** @type {ReturnType<typeof table<[string, string]>>} */ (table(caption, { limit: 60 }));
            place.append(h('details', {}, h('summary', {}, caption), grid.element));
            grid.show([{ head: 'key', value: (row) => row[0] }, { head: 'value', isLong: true, value: (row) => row[1] }], rows);
        }
        const kept = page.run.nodes.parent.length - 1;
        const pruned =
            kept < head.nodes
                ? `This page tells ${whole(kept)} of the ${whole(head.nodes)} places in call stacks apart; smaller ones are summed up where they branch off. All sums are exact.`
                : `All ${whole(head.nodes)} places in call stacks are on this page.`;
        place.append(h('p', { class: 'quiet' }, pruned));
        return () => {};
    },
};
