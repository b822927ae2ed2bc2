// SPDX-License-Identifier: GPL-2.0-or-later
//
// How large the blocks are that a program asks for: at the peak and in the whole run, of all, of an owner or of a line; and the lines
// that ask most often. A size of n bits is in class n, so each class is twice as wide as the one before. These are figures of the run,
// whatever moment is chosen.

import { useState } from 'preact/hooks';
import { size, whole } from '../base/units.js';
import { Choice, useKept } from '../charts/section.js';
import { type Column, Table } from '../charts/table.js';
import type { Sizes as SizesData, SizesOf, SizesRow as Row } from '../runs/data.js';
import type { Page } from '../runs/page.js';
import type { Run } from '../runs/run.js';

type When = 'held' | 'asked';
/** Blocks and bytes. */
type Class = { label: string; isSum: boolean; held: [number, number]; asked: [number, number] };
type Narrowed = { by: 'owners' | 'lines'; name: string };

// The columns of the tables by owner and line: up to so many bits.
const STEPS: [string, number][] = [
    ['< 64 B', 6],
    ['< 512 B', 9],
    ['< 4 KiB', 12],
    ['< 32 KiB', 15],
    ['< 256 KiB', 18],
    ['< 2 MiB', 21],
    ['< 16 MiB', 24],
    ['larger', Infinity],
];

const labelOf = (bits: number) => (!bits ? '0 B' : bits === 1 ? '1 B' : `${size(2 ** (bits - 1))} to ${size(2 ** bits)}`);
/** Without gaps, the smallest first. */
function classesOf({ held, asked }: Row): Class[] {
    const all = [...held.classes, ...asked.classes].map(([bits]) => bits);
    const first = Math.min(...all);
    return Array.from({ length: all.length ? Math.max(...all) - first + 1 : 0 }, (_, i) => {
        const of = ({ classes }: SizesOf) => (classes.find(([bits]) => bits === first + i)?.slice(1) ?? [0, 0]) as [number, number];
        return { label: labelOf(first + i), isSum: false, held: of(held), asked: of(asked) };
    });
}

function sumOf(rows: Class[]): Class {
    const sum = (when: When) => [0, 1].map((i) => rows.reduce((all, row) => all + row[when][i], 0)) as [number, number];
    return { label: 'all', isSum: true, held: sum('held'), asked: sum('asked') };
}

/** A number with a bar as long as it is. */
const withBar = (n: number, most: number) => (
    <span class="with-bar">
        <span class="bar-room" aria-hidden="true">
            <i style={{ width: `${n ? Math.max(1, (100 * n) / most) : 0}%` }} />
        </span>
        <span class="beside-bar">{n ? whole(n) : '–'}</span>
    </span>
);

function Histogram({ row, when }: { row: Row; when: string }) {
    const rows = classesOf(row);
    const columns = (key: When, text: string): Column<Class>[] => {
        const most = Math.max(1, ...rows.map((each) => each[key][0]));
        const show = (each: Class) => (each.isSum ? whole(each[key][0]) : withBar(each[key][0], most));
        return [
            { head: `blocks ${text}`, as: 'number', value: (each) => each[key][0], show },
            { head: `bytes ${text}`, as: 'bytes', value: (each) => each[key][1] },
        ];
    };
    return (
        <Table
            caption="Blocks by size"
            limit={64}
            note={`at ${when}, and in the whole run`}
            columns={[{ head: 'size of a block', value: (each) => each.label }, ...columns('held', 'at the peak'), ...columns('asked', 'in all')]}
            rows={rows}
            sum={sumOf}
        />
    );
}

function bySize(head: string, when: When): Column<Row>[] {
    const steps = STEPS.map(([name, most], i): Column<Row> => {
        const least = i ? STEPS[i - 1][1] : -1;
        return {
            head: name,
            as: 'number',
            value: (row) => row[when].classes.reduce((sum, [bits, n]) => (bits > least && bits <= most ? sum + n : sum), 0),
        };
    });
    return [{ head, as: head === 'line' ? 'long' : undefined, value: (row) => row.name }, ...steps, ...totals(when)];
}

const totals = (when: When): Column<Row>[] => [
    { head: 'blocks', as: 'number', value: (row) => row[when].blocks },
    { head: 'bytes', as: 'bytes', value: (row) => row[when].bytes },
    { head: 'mean', as: 'bytes', value: (row) => row[when].mean },
];

function View({ page }: { page: Page }) {
    const sizes = page.whole.head.sizes as SizesData;
    const [when, setWhen] = useKept<When>('by owner and line', 'asked');
    const [of, narrow] = useState<Narrowed | null>(null);
    const choosing = (by: Narrowed['by']) => {
        const isOf = ({ name }: Row) => of?.by === by && of.name === name;
        // Again what it is narrowed to already: no longer.
        return { limit: 12, isChosen: isOf, onClick: (row: Row) => narrow(isOf(row) ? null : { by, name: row.name }) };
    };
    const ranked = (rows: Row[]) => rows.filter((row) => row[when].classes.length).sort((a, b) => b[when].blocks - a[when].blocks);
    const words: [When, string][] = [
        ['asked', 'in the whole run'],
        ['held', `at ${sizes.when}`],
    ];
    const note = when === 'held' ? `at ${sizes.when}` : 'in the whole run';
    const all = sizes.all.asked.blocks;
    const [blocks, ...others] = totals('asked');
    const share: Column<Row> = {
        head: 'share',
        as: 'percent',
        value: (row) => (100 * row.asked.blocks) / all,
    };
    return (
        <>
            <p class="quiet">{sizes.exactness} Click an owner or a line to see the sizes of its blocks.</p>
            <p class="chips" role="status">
                {of && (
                    <button type="button" class="chip" onClick={() => narrow(null)}>
                        only {of.by === 'owners' ? 'owner' : 'line'} {of.name} ✕
                    </button>
                )}
            </p>
            <Histogram row={(of && sizes[of.by].find(({ name }) => name === of.name)) || sizes.all} when={sizes.when} />
            <div class="above">
                <Choice label="By owner and line" options={words} value={when} onChange={setWhen} />
            </div>
            <Table
                caption="Blocks by size and owner"
                note={note}
                columns={bySize('owner', when)}
                rows={ranked(sizes.owners)}
                {...choosing('owners')}
            />
            <Table caption="Blocks by size and line" note={note} columns={bySize('line', when)} rows={ranked(sizes.lines)} {...choosing('lines')} />
            <Table
                caption="Lines that allocate most often"
                note="in the whole run; at once: freed before their thread had allocated anything else"
                columns={[
                    { head: 'line', as: 'long', value: (row) => row.name },
                    blocks,
                    share,
                    ...others,
                    { head: 'at once', as: 'number', value: (row) => row.at_once },
                ]}
                rows={sizes.lines}
                {...choosing('lines')}
            />
        </>
    );
}

export const Sizes = { id: 'sizes', title: 'Block sizes', isWhole: true, fits: (run: Run) => run.head.sizes !== null, View };
