// SPDX-License-Identifier: GPL-2.0-or-later
//
// Blocks that are freed before their thread allocates anything else, by call site: work that a program can save.

import { percent, size, whole } from '../base/units.js';
import { Table } from '../charts/table.js';
import { View } from './view.js';

/** @typedef {import('../runs/data.js').Temporary} Row */
/** @typedef {import('../runs/run.js').Run} Run */

/** @type {import('../charts/table.js').Column<Row>[]} */
const COLUMNS = [
    { head: 'temporaries', isFigure: true, value: (row) => row.temporaries, show: (row) => whole(row.temporaries) },
    { head: 'of blocks', isFigure: true, value: (row) => row.blocks, show: (row) => whole(row.blocks) },
    { head: 'share', isFigure: true, value: (row) => (100 * row.temporaries) / row.blocks, show: (row) => percent(row.temporaries, row.blocks), title: () => '' },
    { head: 'bytes in all', isFigure: true, value: (row) => row.bytes, show: (row) => size(row.bytes) },
    { head: 'allocated by', isLong: true, value: (row) => row.site },
];

export class Temporaries extends View {
    static id = 'temporaries';
    static title = 'Temporaries';
    static isWhole = true;

    /** @param {Run} run */
    static fits(run) {
        return run.head.temporaries.length > 0;
    }

    content() {
        /** @type {Table<Row>} */
        const grid = new Table('Temporaries', { note: 'freed before their thread allocated anything else; in the whole run', limit: 15 });
        grid.show(COLUMNS, this.run.head.temporaries);
        return [grid.element];
    }
}
