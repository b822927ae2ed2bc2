// SPDX-License-Identifier: GPL-2.0-or-later
//
// What each line of the program's own Python code caused, with the line's text where it could be read.

import { momentName } from '../bar.js';
import { h, replace } from '../dom.js';
import { table } from '../table.js';
import { growth } from '../units.js';
import { allocated, figures, rowsOf, sumOf, total } from './sums.js';

/** @typedef {import('./sums.js').Row} Row */

/** @type {import('../page.js').View} */
export const lines = {
    id: 'lines',
    title: 'Python lines',
    fits: (run) => run.head.lines.path.some((path) => path),
    mount(place, page) {
        const grid = /** @type {ReturnType<typeof table<Row>>} */ (
            table('Python lines', { sum: (rows) => sumOf(rows), note: 'what each line caused, with all that it called' })
        );
        const changed = h('p', { class: 'quiet' });
        place.append(grid.element, changed);
        return () => {
            const { run } = page;
            const { lines } = run.head;
            const rows = rowsOf(page, 'line', (sum) => sum.allocated > 0 || total(sum) > 0);
            /** @type {import('../table.js').Column<Row>[]} */
            const columns = [
                { head: 'line', value: (row) => row.name, title: (row) => (row.index < 0 ? '' : lines.path[row.index]) },
                ...figures(page, rows),
                allocated,
            ];
            if (run.head.at.end >= 0) {
                const atEnd = run.sums('line', run.head.at.end);
                const left = (/** @type {Row} */ row) => row.members.reduce((bytes, line) => bytes + total(atEnd[line]), 0);
                columns.push({ head: 'left at the end', isFigure: true, value: left, show: (row) => growth(left(row)) });
            }
            columns.push({ head: 'function', value: (row) => lines.function[row.index] ?? '' });
            if (lines.source.some((text) => text)) {
                columns.push({ head: 'source', isLong: true, value: (row) => lines.source[row.index] ?? '', show: (row) => h('code', {}, lines.source[row.index] ?? '') });
            }
            grid.show(columns, rows, `at ${momentName(run, page.moment)}; what each line caused, with all that it called`);
            replace(changed, lines.changed.length > 0 && `Changed since the run, so the text may be another line's: ${lines.changed.join(', ')}.`);
        };
    },
};
