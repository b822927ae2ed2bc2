// SPDX-License-Identifier: GPL-2.0-or-later
//
// Who held what: owners, with the group that each belongs to.

import { momentName } from '../bar.js';
import { h } from '../dom.js';
import { table } from '../table.js';
import { size } from '../units.js';
import { allocated, figures, rowsOf, sumOf } from './sums.js';

/** @type {import('../page.js').View} */
export const owners = {
    id: 'owners',
    title: 'Owners',
    mount(place, page) {
        const grid = /** @type {ReturnType<typeof table<import('./sums.js').Row>>} */ (table('Owners', { sum: (rows) => sumOf(rows) }));
        const listed = h('p', { class: 'quiet' });
        place.append(grid.element, listed);
        return () => {
            const rows = rowsOf(page, 'owner');
            const group = { head: 'group', value: (/** @type {import('./sums.js').Row} */ row) => (row.index < 0 ? '' : page.run.head.owners[row.index].group) };
            grid.show([{ head: 'owner', value: (row) => row.name }, group, ...figures(page, rows), allocated], rows, rows.length ? `at ${momentName(page.run, page.moment)}` : '');
            const imported = page.run.moments.length ? page.run.sums('owner', page.moment).reduce((all, sum) => all + sum.listed, 0) : 0;
            listed.textContent = imported ? `Also mapped, and in no sum: ${size(imported)} imported from other processes.` : '';
            listed.hidden = !imported;
        };
    },
};
