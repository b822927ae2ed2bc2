// SPDX-License-Identifier: GPL-2.0-or-later
//
// Memory by owner, and by whatever else it can be told apart: group, role of tensors, thread, kind, library that called the allocator.
// A click on an owner narrows the call tree to it.

import { size } from '../base/units.js';
import { Choice, useKept } from '../charts/section.js';
import { type Column, Table } from '../charts/table.js';
import type { Page } from '../runs/page.js';
import type { Run } from '../runs/run.js';
import { type Row, rowsOf, sumOf } from '../runs/sums.js';
import { allocated, figures, OwnersLegend } from './columns.js';

type By = 'owner' | 'group' | 'site' | 'role' | 'thread' | 'library' | 'kind';

const WORDS: Record<By, { option: string; caption: string; note: string }> = {
    owner: { option: 'owner', caption: 'Owners', note: '' },
    group: { option: 'group of owners', caption: 'Groups of owners', note: '' },
    site: { option: 'call site', caption: 'Call sites', note: 'Python lines where there are any, else the function that allocated, ' },
    role: { option: 'role of tensors', caption: 'Tensors by role', note: '' },
    // Threads that share a name are one; they are recorded with --threads=yes.
    thread: { option: 'thread', caption: 'Threads', note: 'by the thread that allocated, ' },
    library: { option: 'calling library', caption: 'By calling library', note: 'by the library that called the allocator, whatever for, ' },
    kind: { option: 'kind of memory', caption: 'Kinds of memory', note: '' },
};

const has = (run: Run, by: By) =>
    by === 'role' ? run.head.roles.some((name) => name) : by === 'thread' ? run.head.threads.some((name) => name) : true;

/** Kinds of the host's memory by column; all others are in OTHER. */
const COLUMNS: Record<string, string> = { heap: 'heap', 'heap-overhead': 'heap', file: 'files' };
const OTHER = 'other host';

/** Columns of host memory by kind, of libraries. With one kind, its column would say the same as the host's. */
function kindsOf({ run, moment }: Page, rows: Row[]): Column<Row>[] {
    const held = run.at(moment).bytes;
    const found = ['heap', 'files', OTHER].map((head) => {
        const isWanted = run.head.kinds.map(({ name, side }) => side === 'host' && (COLUMNS[name] ?? OTHER) === head);
        const sums = new Float64Array(run.head.libraries.length);
        for (let cell = 0; cell < run.nCells; cell++) if (isWanted[run.cells.kind[cell]]) sums[run.cells.library[cell]] += held[cell];
        return { head, sums };
    });
    const used = rows.length ? found.filter(({ sums }) => sums.some((n) => n)) : [];
    if (used.length < 2) return [];
    return used.map(({ head, sums }) => ({ head, as: 'bytes', value: (row) => row.members.reduce((all, library) => all + sums[library], 0) }));
}

function View({ page }: { page: Page }) {
    const { run, moment } = page;
    const { owners, roles } = run.head;
    const [kept, set] = useKept<By>('by', 'owner');
    const by = kept in WORDS && has(run, kept) ? kept : 'owner';
    const { option, caption, note } = WORDS[by];
    const rows = rowsOf(page, by).filter((row) => by !== 'role' || roles[row.index]);
    const columns: Column<Row>[] = [
        { head: option, value: (row) => row.name, title: (row) => (by === 'owner' && owners[row.index]?.about) || row.name },
    ];
    if (by === 'owner') columns.push({ head: 'group', value: (row) => owners[row.index]?.group ?? '' });
    if (by === 'library') columns.push(...kindsOf(page, rows));
    columns.push(...figures(page, rows), allocated);
    const imported = run.moments.length ? run.sums('owner', moment).reduce((all, sum) => all + sum.listed, 0) : 0;
    const options = (Object.keys(WORDS) as By[]).filter((each) => has(run, each)).map((each): [By, string] => [each, WORDS[each].option]);
    const choosing = {
        onClick: ({ index, name }: Row) => page.narrow({ dimension: 'owner', index, name }),
        isChosen: ({ index }: Row) => page.isOnly('owner', index),
    };
    return (
        <>
            <div class="above">
                <Choice label="By" options={options} value={by} onChange={set} />
            </div>
            <Table
                key={by}
                caption={caption}
                columns={columns}
                rows={rows}
                note={rows.length > 0 && `${note}at ${run.label(moment)}`}
                sum={(all) => sumOf(all, by === 'role' ? 'all tensors' : 'total')}
                empty="no memory at this moment"
                {...(by === 'owner' ? choosing : {})}
            />
            {imported > 0 && <p class="quiet">Not counted: {size(imported)} imported from other processes.</p>}
            {by === 'owner' && <OwnersLegend owners={owners} />}
        </>
    );
}

export const Owners = { id: 'owners', title: 'Owners', View };
