// SPDX-License-Identifier: GPL-2.0-or-later
//
// The balance of the whole machine: what was in use before, the program by owner, Valgrind, what nobody can explain, what is free.

import { Key } from '../charts/section.js';
import { Table } from '../charts/table.js';
import { coloursOf } from '../runs/colours.js';
import type { Balance } from '../runs/data.js';
import type { Page } from '../runs/page.js';
import type { Run } from '../runs/run.js';
import { sumsOf } from '../runs/sums.js';

/** A part of the machine's memory; a negative one is taken away. */
type Part = { name: string; note: string; bytes: number; colour: string };

function ownersOf(run: Run, { moment }: Balance): Part[] {
    const colours = coloursOf(run, 'owner');
    return sumsOf(run, 'owner', moment)
        .map(({ name, index, sum }) => ({
            name,
            note: run.head.owners[index].group,
            bytes: sum.host + (run.head.is_discrete ? 0 : sum.device),
            colour: colours[index],
        }))
        .filter(({ bytes }) => bytes > 0)
        .sort((a, b) => b.bytes - a.bytes);
}

type Field = 'before' | 'untouched' | 'allocators' | 'valgrind' | 'unaccounted' | 'elsewhere' | 'free';

function View({ page }: { page: Page }) {
    const { whole: run, moment } = page;
    const made = run.head.balances[run.head.balance_of[moment]];
    const part = (field: Field): Part => ({ name: made.names[field], note: made.notes[field], bytes: made[field], colour: 'var(--edge)' });
    const inside = (['untouched', 'allocators', 'valgrind', 'unaccounted'] as const).map(part);
    const parts = [part('before'), ...ownersOf(run, made), ...inside, part('elsewhere'), part('free')];
    return (
        <>
            <Table
                caption="System memory"
                note={`at ${run.label(made.moment)}${made.moment === moment ? '' : ', the nearest sample of pages'}`}
                columns={[
                    { head: 'part', value: ({ name }) => name, show: Key },
                    { head: 'bytes', as: 'bytes', value: ({ bytes }) => bytes },
                    { head: 'share', as: 'percent', value: ({ bytes }) => (100 * bytes) / made.board },
                    { head: 'what it is', as: 'long', value: ({ note }) => note },
                ]}
                rows={parts}
                sum={(rows) => ({ name: 'the machine', note: '', bytes: rows.reduce((sum, { bytes }) => sum + bytes, 0), colour: 'transparent' })}
                limit={60}
            />
            {made.doubts.map((text) => (
                <p key={text} class="doubt">
                    {text}
                </p>
            ))}
        </>
    );
}

export const SystemMemory = { id: 'balance', title: 'System memory', isWhole: true, fits: (run: Run) => run.head.balances.length > 0, View };
