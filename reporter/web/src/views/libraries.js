// SPDX-License-Identifier: GPL-2.0-or-later
//
// The object files that memory was allocated in: on the heap, as mapped files, on the device.

import { size } from '../base/units.js';
import { Table } from '../charts/table.js';
import { rowsOf, sumOf } from '../runs/sums.js';
import { figures } from './columns.js';
import { View } from './view.js';

/** @typedef {import('../runs/sums.js').Row} Row */
/** @typedef {import('../runs/parts.js').MappedFigures & {library: string, kind: string}} Mapped */

/** Kinds of the host's memory by column; all others are in `OTHER`. */
const COLUMNS = new Map([
    ['heap', 'heap'],
    ['heap-overhead', 'heap'],
    ['file', 'files'],
]);
const OTHER = 'other host';

/** Bytes by library of the kinds in a column. @param {import('../runs/page.js').Page} page @param {string} column */
function byLibrary(page, column) {
    const { run } = page;
    const held = run.at(page.moment).bytes;
    const wanted = run.head.kinds.map(({ name, side }) => side === 'host' && (COLUMNS.get(name) ?? OTHER) === column);
    const sums = new Float64Array(run.head.libraries.length);
    for (let cell = 0; cell < run.nCells; cell++) if (wanted[run.cells.kind[cell]]) sums[run.cells.library[cell]] += held[cell];
    return sums;
}

/** @param {import('../runs/page.js').Page} page @returns {Mapped[]} the largest first */
function mappedRows({ run, moment }) {
    const figures = run.mapped(moment);
    return run.head.mapped
        .map(([library, kind], i) => ({ library, kind, ...figures[i] }))
        .filter((row) => row.resident || row.virtual)
        .sort((a, b) => b.resident - a.resident || b.virtual - a.virtual);
}

/** @param {Mapped[]} rows @returns {Mapped} */
const mappedSum = (rows) =>
    rows.reduce((all, row) => ({ ...all, resident: all.resident + row.resident, virtual: all.virtual + row.virtual, shared: all.shared + row.shared, swapped: all.swapped + row.swapped }), { library: 'total', kind: '', resident: 0, virtual: 0, shared: 0, swapped: 0 });

/** @param {string} head @param {(row: Mapped) => number} value @returns {import('../charts/table.js').Column<Mapped>} */
const bytes = (head, value) => ({ head, isFigure: true, value, show: (row) => (value(row) ? size(value(row)) : '–') });

/** @type {import('../charts/table.js').Column<Mapped>[]} */
const MAPPED = [
    { head: 'mapping', value: (row) => row.library },
    { head: 'kind', value: (row) => row.kind },
    bytes('resident', (row) => row.resident),
    bytes('virtual', (row) => row.virtual),
    bytes('PSS', (row) => row.shared),
    bytes('swapped', (row) => row.swapped),
];

export class Libraries extends View {
    static id = 'libraries';
    static title = 'By calling library';

    /** @type {Table<Row>} */
    #grid = new Table('By calling library', { sum: (rows) => sumOf(rows), empty: 'no memory at this moment' });
    /** @type {Table<Mapped>} */
    #mapped = new Table('Other mapped memory', { sum: mappedSum, limit: 12 });

    content() {
        return [this.#grid.element, this.run.head.mapped.length > 0 && this.#mapped.element];
    }

    update() {
        const { page, run } = this;
        const rows = rowsOf(page, 'library');
        /** @type {import('../charts/table.js').Column<Row>[]} */
        const kinds = [];
        for (const head of rows.length ? new Set([...COLUMNS.values(), OTHER]) : []) {
            const sums = byLibrary(page, head);
            const of = (/** @type {Row} */ row) => row.members.reduce((bytes, library) => bytes + sums[library], 0);
            if (sums.some((bytes) => bytes)) kinds.push({ head, isFigure: true, value: of, show: (row) => (of(row) ? size(of(row)) : '–') });
        }
        // With one kind of host memory, its column would say the same as the host's.
        const details = kinds.length > 1 ? kinds : [];
        const note = `at ${run.moments.length ? run.label(page.moment) : '–'}; library that called the allocator`;
        this.#grid.show([{ head: 'library', value: (row) => row.name }, ...details, ...figures(page, rows)], rows, note);
        this.#mapped.show(MAPPED, mappedRows(page), 'resident: in memory now; PSS: shared pages divided among their processes');
    }
}
