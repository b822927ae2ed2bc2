// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tables that the reporter has made ready, as they follow no moment and no filter: leaks, sizes of blocks, start-up calls …

import type { ComponentChildren } from 'preact';
import { Words } from '../charts/section.js';
import { type Kind, Table } from '../charts/table.js';
import type { ReadyTable } from '../runs/data.js';
import type { Page } from '../runs/page.js';
import type { Run } from '../runs/run.js';

export const tablesOf = (run: Run, id: string) => run.head.tables.filter(({ view }) => view === id);

type Row = ReadyTable['rows'][number];
export type Link = (text: string) => ComponentChildren;
type ReadyProps = { table: ReadyTable; link?: Link; onClick?: (row: Row) => void; isChosen?: (row: Row) => boolean };

export const Ready = ({ table: { caption, note, limit, columns, rows, total }, link, ...choosing }: ReadyProps) => (
    <Table
        caption={caption}
        note={<Words text={note} />}
        limit={limit}
        columns={columns.map(([head, kind], i) => ({
            head,
            as: (kind || undefined) as Kind | undefined,
            value: (row: Row) => row[i],
            show: link && kind === 'long' ? (row: Row) => link(String(row[i])) : undefined,
        }))}
        rows={rows}
        sum={(_rows, isPart) => (isPart || !total.length ? null : total)}
        {...choosing}
    />
);

export const ReadyTables = ({ run, id }: { run: Run; id: string }) => tablesOf(run, id).map((table) => <Ready key={table.caption} table={table} />);

function viewOf(id: string, title: string) {
    const View = ({ page }: { page: Page }) => <ReadyTables run={page.whole} id={id} />;
    return { id, title, isWhole: true, fits: (run: Run) => tablesOf(run, id).length > 0, View };
}

const made = new Map<string, ReturnType<typeof viewOf>>();

/** The view of these tables; always the same one, so that it stays on the page. */
export function ready(id: string, title: string) {
    const view = made.get(id) ?? viewOf(id, title);
    made.set(id, view);
    return view;
}
