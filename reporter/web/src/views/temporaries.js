// SPDX-License-Identifier: GPL-2.0-or-later
//
// Blocks that were freed before their thread allocated anything else: work that a program could save itself.

import { table } from '../table.js';
import { percent, size, whole } from '../units.js';

/** @typedef {import('../data.js').Temporary} Row */

/** @type {import('../page.js').View} */
export const temporaries = {
    id: 'temporaries',
    title: 'Temporaries',
    fits: (run) => run.head.temporaries.length > 0,
    mount(place, page) {
        const grid = /** @type {ReturnType<typeof table<Row>>} */ (table('Temporaries', { note: 'freed before their thread allocated anything else; in the whole run', limit: 15 }));
        place.append(grid.element);
        grid.show(
            [
                { head: 'temporaries', isFigure: true, value: (row) => row.temporaries, show: (row) => whole(row.temporaries) },
                { head: 'of blocks', isFigure: true, value: (row) => row.blocks, show: (row) => whole(row.blocks) },
                { head: 'share', isFigure: true, value: (row) => (100 * row.temporaries) / row.blocks, show: (row) => percent(row.temporaries, row.blocks), title: () => '' },
                { head: 'bytes in all', isFigure: true, value: (row) => row.bytes, show: (row) => size(row.bytes) },
                { head: 'kind', value: (row) => row.kind },
                { head: 'owner', value: (row) => row.owner },
                { head: 'allocated by', isLong: true, value: (row) => row.site },
            ],
            page.run.head.temporaries,
        );
        return () => {};
    },
};
