// SPDX-License-Identifier: GPL-2.0-or-later
//
// Leaks: lines that keep growing, and memory still allocated at exit, by owner and call site. A Python program ends twice: its own
// code, then the interpreter, which drops all modules. The reporter reads leaks before the second, so all reports agree.

import { moment, size, whole } from '../base/units.js';
import { type Column, Table } from '../charts/table.js';
import type { LeakedOwner, LeaksData } from '../runs/data.js';
import type { Page } from '../runs/page.js';
import type { Run } from '../runs/run.js';

function columns(run: Run, rows: LeakedOwner[]): Column<LeakedOwner>[] {
    const all = rows.reduce((sum, row) => sum + row.host + row.device, 0);
    const share: Column<LeakedOwner> = {
        head: 'share',
        as: 'percent',
        value: (row) => (100 * (row.host + row.device)) / all,
    };
    return [
        { head: 'owner', value: (row) => row.name },
        { head: 'group', value: (row) => row.group },
        ...(['host', 'device'] as const)
            .filter((side) => run.uses(side))
            .map((side): Column<LeakedOwner> => ({ head: side, as: 'bytes', value: (row) => row[side] })),
        ...(run.head.is_discrete && run.uses('device') ? [] : [share]),
        { head: 'blocks', as: 'number', value: (row) => row.blocks },
    ];
}

function sumOf(rows: LeakedOwner[]): LeakedOwner {
    const add = (of: (row: LeakedOwner) => number) => rows.reduce((all, row) => all + of(row), 0);
    return { name: 'total', group: '', host: add((row) => row.host), device: add((row) => row.device), blocks: add((row) => row.blocks) };
}

function Growing({ leaks }: { leaks: LeaksData }) {
    return (
        <Table
            caption="Growing"
            limit={10}
            note={leaks.n_steps > 0 && `over ${whole(leaks.n_steps)} times ${leaks.step}`}
            columns={[
                { head: 'line', as: 'long', value: (row) => row.label },
                { head: 'owner', value: (row) => row.owner },
                { head: `per ${leaks.step}`, as: 'figure', value: (row) => row.slope, show: (row) => size(Math.round(row.slope)) },
                { head: 'grown by', as: 'bytes', value: (row) => row.grown },
                { head: 'at exit', as: 'bytes', value: (row) => row.held },
                { head: 'since', as: 'time', value: (row) => row.since },
            ]}
            rows={leaks.growing}
        />
    );
}

function View({ page }: { page: Page }) {
    const run = page.whole;
    const { unit, leaks } = run.head;
    if (!leaks) return null;
    const others = leaks.not_counted.map(([what, n]) => `${size(n)} ${what}`);
    const growth = leaks.unknown ? `Growth is unknown: ${leaks.unknown}.` : leaks.growing.length ? '' : 'No line keeps growing.';
    return (
        <>
            <p class="quiet">
                {others.length > 0 && `Not counted: ${others.join(', ')}; pages of files and stacks. `}
                {growth}
            </p>
            {leaks.growing.length > 0 && <Growing leaks={leaks} />}
            <Table
                caption="Still allocated at exit, by owner"
                note={`${size(leaks.bytes)} at ${moment(leaks.time, unit)}`}
                columns={columns(run, leaks.owners)}
                rows={leaks.owners}
                sum={sumOf}
            />
            <Table
                caption="Still allocated at exit, by call site"
                note="Python lines where there are any, else the function that allocated"
                limit={10}
                columns={[
                    { head: 'size', as: 'bytes', value: (row) => row.bytes },
                    { head: 'blocks', as: 'number', value: (row) => row.blocks },
                    { head: 'kind', value: (row) => row.kind },
                    { head: 'owner', value: (row) => row.owner },
                    { head: 'call site', as: 'long', value: (row) => row.label },
                ]}
                rows={leaks.places}
            />
        </>
    );
}

export const Leaks = {
    id: 'leaks',
    title: 'Still allocated at exit',
    isWhole: true,
    fits: (run: Run) => run.head.leaks !== null && run.head.leaks.owners.length > 0,
    View,
};
