// SPDX-License-Identifier: GPL-2.0-or-later
//
// Mapped memory besides the heap, by library and kind: what is resident of it, and how much address space it takes.

import { Table } from '../charts/table.js';
import type { Page } from '../runs/page.js';
import type { MappedFigures } from '../runs/parts.js';
import type { Run } from '../runs/run.js';

type Row = MappedFigures & { library: string; kind: string };

/** The largest first. */
const rowsOf = ({ run, moment }: Page): Row[] => {
    const figures = run.mapped(moment);
    return run.head.mapped
        .map(([library, kind], i) => ({ library, kind, ...figures[i] }))
        .filter((row) => row.resident || row.virtual)
        .sort((a, b) => b.resident - a.resident || b.virtual - a.virtual);
};

function sumOf(rows: Row[]): Row {
    const add = (of: (row: Row) => number) => rows.reduce((all, row) => all + of(row), 0);
    return {
        library: 'total',
        kind: '',
        resident: add((row) => row.resident),
        virtual: add((row) => row.virtual),
        shared: add((row) => row.shared),
        swapped: add((row) => row.swapped),
    };
}

const View = ({ page }: { page: Page }) => (
    <Table
        caption="Other mapped memory"
        limit={12}
        note="resident: in memory now; PSS: shared pages divided among their processes"
        columns={[
            { head: 'mapping', value: (row) => row.library },
            { head: 'kind', value: (row) => row.kind },
            { head: 'resident', as: 'bytes', value: (row) => row.resident },
            { head: 'virtual', as: 'bytes', value: (row) => row.virtual },
            { head: 'PSS', as: 'bytes', value: (row) => row.shared },
            { head: 'swapped', as: 'bytes', value: (row) => row.swapped },
        ]}
        rows={rowsOf(page)}
        sum={sumOf}
    />
);

export const Mapped = { id: 'mapped', title: 'Other mapped memory', fits: (run: Run) => run.head.mapped.length > 0, View };
