// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tables that the reporter has made ready, as they follow no moment and no filter: leaks, sizes of blocks, start-up calls …

import { type Kind, Table } from '../charts/table.js';
import type { ReadyTable } from '../runs/data.js';
import type { View } from '../tabs.js';
import type { Page } from '../runs/page.js';
import type { Run } from '../runs/run.js';

export const tablesOf = (run: Run, id: string) => run.head.tables.filter(({ view }) => view === id);

const Ready = ({ table: { caption, note, limit, columns, rows, total } }: { table: ReadyTable }) => (
    <Table
        caption={caption}
        note={note}
        limit={limit}
        columns={columns.map(([head, kind], i) => ({
            head,
            as: (kind || undefined) as Kind | undefined,
            value: (row: ReadyTable['rows'][number]) => row[i],
        }))}
        rows={rows}
        sum={(_rows, isPart) => (isPart || !total.length ? null : total)}
    />
);

export const ReadyTables = ({ run, id }: { run: Run; id: string }) => tablesOf(run, id).map((table) => <Ready key={table.caption} table={table} />);

const made = new Map<string, View>();

/** The view of these tables; always the same one, so that it stays on the page. */
export function ready(id: string, title: string): View {
    const known = made.get(id);
    if (known) return known;
    const Tables = ({ page }: { page: Page }) => <ReadyTables run={page.whole} id={id} />;
    const view = { id, title, isWhole: true, fits: (run: Run) => tablesOf(run, id).length > 0, View: Tables };
    made.set(id, view);
    return view;
}
