// SPDX-License-Identifier: GPL-2.0-or-later
//
// Memory between two moments, by call site: allocated, freed (which follows from the rest), and the change. The moments are chosen
// in the timeline, or here.

import { growth, size } from '../base/units.js';
import { Choice, useKept } from '../charts/section.js';
import { type Column, Table } from '../charts/table.js';
import { allocatorOf, lineOf } from '../runs/blocks.js';
import type { Page } from '../runs/page.js';
import type { Run } from '../runs/run.js';
import { sumsBy, total } from '../runs/sums.js';

const FIGURES = ['before', 'allocated', 'freed', 'after'] as const;
type Row = Record<(typeof FIGURES)[number], number> & { name: string };

/** Keys of rows. */
const KEYS: [string, (run: Run, cell: number) => string][] = [
    ['owner', (run, cell) => run.head.owners[run.cells.owner[cell]].name],
    ['line', (run, cell) => lineOf(run, cell) || allocatorOf(run, cell)],
    ['library', (run, cell) => run.head.libraries[run.cells.library[cell]]],
    ['kind', (run, cell) => run.head.kinds[run.cells.kind[cell]].name],
];

/** The names that hold or held anything, or allocated in between. */
function rowsOf(run: Run, first: number, second: number, keyOf: (cell: number) => string): Row[] {
    const [then, now] = [sumsBy(run, first, keyOf), sumsBy(run, second, keyOf)];
    const rows = [...now].map(([name, sum]) => {
        const [was, after] = [then.get(name), total(sum)];
        const before = was ? total(was) : 0;
        // What a cache takes back comes to it without being allocated.
        const allocated = Math.max(sum.allocated - (was?.allocated ?? 0), after - before, 0);
        return { name, before, allocated, freed: before + allocated - after, after };
    });
    return rows.filter((row) => row.before || row.allocated).sort((a, b) => b.allocated - a.allocated || b.freed - a.freed);
}

const columns = (by: string): Column<Row>[] => [
    { head: by, as: 'long', value: (row) => row.name },
    ...FIGURES.map((head): Column<Row> => ({ head, as: 'bytes', value: (row) => row[head] })),
    { head: 'change', as: 'growth', value: (row) => row.after - row.before },
];

function sumOf(rows: Row[]): Row {
    const all = { name: 'total', before: 0, allocated: 0, freed: 0, after: 0 };
    for (const row of rows) for (const figure of FIGURES) all[figure] += row[figure];
    return all;
}

function View({ page }: { page: Page }) {
    const { run, moment, other } = page;
    const [by, set] = useKept('by', KEYS[0][0]);
    const moments = run.moments.map(({ index }): [string, string] => [String(index), run.label(index)]);
    const choose = (from: number, to: number) => {
        page.compare(null);
        page.select(Math.max(from, to));
        page.compare(Math.min(from, to));
    };
    const from = other ?? moment;
    const choices = (
        <div class="above">
            <Choice label="from" options={moments} value={String(from)} onChange={(value) => choose(Number(value), moment)} />
            <Choice label="to" options={moments} value={String(moment)} onChange={(value) => choose(from, Number(value))} />
            <Choice label="by" options={KEYS.map(([name]): [string, string] => [name, name])} value={by} onChange={set} />
        </div>
    );
    if (from === moment) {
        return (
            <>
                {choices}
                <p>Choose two moments, here or in the timeline (the second with Shift).</p>
            </>
        );
    }
    const [name, keyOf] = KEYS.find(([each]) => each === by) ?? KEYS[0];
    const rows = rowsOf(run, from, moment, (cell) => keyOf(run, cell));
    const all = sumOf(rows);
    // A peak has no count of all that was allocated by then.
    const isPeak = run.moments[moment].isPeak || run.moments[from].isPeak;
    return (
        <>
            {choices}
            <p>
                {isPeak && 'At least '}
                {size(all.allocated)} allocated, {size(all.freed)} freed: {growth(all.after - all.before)}.
            </p>
            <Table
                caption="Allocated and freed"
                note={`from ${run.label(from)} to ${run.label(moment)}`}
                columns={columns(name)}
                rows={rows}
                sum={sumOf}
                empty="nothing was allocated or freed"
            />
        </>
    );
}

export const Range = {
    id: 'range',
    title: 'Between two moments',
    fits: (run: Run) => run.moments.length > 1 && run.measures.includes('allocated') && run.parts.processes.length < 2,
    View,
};
