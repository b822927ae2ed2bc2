// SPDX-License-Identifier: GPL-2.0-or-later
//
// What tensors are for in training.

import { momentName } from '../bar.js';
import { table } from '../table.js';
import { allocated, figures, rowsOf, sumOf } from './sums.js';

/** @type {import('../page.js').View} */
export const roles = {
    id: 'roles',
    title: 'Tensors by role',
    fits: (run) => run.head.roles.some((role) => role),
    mount(place, page) {
        const grid = /** @type {ReturnType<typeof table<import('./sums.js').Row>>} */ (table('Tensors by role', { sum: (rows) => sumOf(rows, 'all tensors') }));
        place.append(grid.element);
        return () => {
            const rows = rowsOf(page, 'role').filter((row) => page.run.head.roles[row.index]);
            grid.show([{ head: 'role', value: (row) => row.name }, ...figures(page, rows), allocated], rows, `at ${momentName(page.run, page.moment)}`);
        };
    },
};
