// SPDX-License-Identifier: GPL-2.0-or-later
//
// The balance of the whole machine: what was in use before, the program by owner, Valgrind, what nobody can explain, what is free.

import { Choice, useKept } from '../charts/section.js';
import { type Step, Waterfall } from '../charts/waterfall.js';
import { coloursOf } from '../runs/colours.js';
import type { Balance } from '../runs/data.js';
import type { Page } from '../runs/page.js';
import type { Run } from '../runs/run.js';
import { sumsOf } from '../runs/sums.js';

const SCOPES: [string, string][] = [
    ['machine', 'system'],
    ['process', 'this process'],
];
const QUIET = 'var(--edge)';

function owners(run: Run, made: Balance): Step[] {
    const colours = coloursOf(run, 'owner');
    return sumsOf(run, 'owner', made.moment)
        .map(({ name, index, sum }) => ({
            name,
            group: run.head.owners[index].group,
            bytes: sum.host + (run.head.is_discrete ? 0 : sum.device),
            colour: colours[index],
        }))
        .filter((step) => step.bytes > 0)
        .sort((a, b) => b.bytes - a.bytes);
}

type Field = 'before' | 'untouched' | 'allocators' | 'valgrind' | 'unaccounted' | 'elsewhere' | 'free';

function stepsOf(run: Run, made: Balance, isWhole: boolean) {
    const row = (field: Field, colour = QUIET): Step => ({ name: made.names[field], group: made.notes[field], bytes: made[field], colour });
    const taken = [...owners(run, made), row('untouched'), row('allocators'), row('valgrind'), row('unaccounted')];
    return isWhole ? [row('before'), ...taken, row('elsewhere'), row('free', 'transparent')] : taken;
}

function View({ page }: { page: Page }) {
    const { whole: run, moment } = page;
    const [scope, set] = useKept<string>('show', 'machine');
    const made = run.head.balances[run.head.balance_of[moment]];
    const isWhole = scope === 'machine';
    return (
        <>
            <div class="above">
                <h3>
                    At {run.label(made.moment)}
                    {made.moment !== moment && ', the nearest sample of pages'}
                </h3>
                <Choice label="Show" options={SCOPES} value={scope} onChange={set} />
            </div>
            <Waterfall
                steps={stepsOf(run, made, isWhole)}
                caption={isWhole ? 'System memory' : 'This process'}
                sumName={isWhole ? 'the machine' : 'this process'}
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
