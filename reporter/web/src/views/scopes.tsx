// SPDX-License-Identifier: GPL-2.0-or-later
//
// Memory that start-up calls took: loading libraries, cuInit, contexts, cudnnCreate …

import { count, growth } from '../base/units.js';
import { type Column, Table } from '../charts/table.js';
import type { RunHead, Scope, ScopeSum } from '../runs/data.js';
import type { Page } from '../runs/page.js';
import type { Run } from '../runs/run.js';

const kinds = ({ kinds: each }: Scope | ScopeSum) => each.map(([kind, n]) => `${kind} ${growth(n)}`).join(', ');

const grown = <R extends Scope | ScopeSum>(side: 'host' | 'device'): Column<R> => ({
    head: side,
    as: 'growth',
    value: (row) => row[side],
});

/** Calls by themselves. */
function Single({ head: { scopes } }: { head: RunHead }) {
    const most = scopes.reduce((top, row) => Math.max(top, Math.abs(row.host + row.device)), 1);
    const bar = (row: Scope) => (
        <span class="meter" aria-hidden="true">
            <span style={{ width: `${(100 * Math.abs(row.host + row.device)) / most}%` }} />
        </span>
    );
    const nested = (row: Scope) => <span style={{ paddingLeft: `${row.depth * 1.2}em` }}>{row.name}</span>;
    return (
        <Table
            caption="Start-up calls"
            note="net growth by the time each call returned, with the calls inside it"
            limit={40}
            columns={[
                { head: 'call', as: 'long', value: (row) => row.name, show: nested },
                { head: 'at', as: 'time', value: (row) => row.begin },
                { head: 'took', as: 'time', value: (row) => row.end - row.begin },
                grown('host'),
                grown('device'),
                { head: 'cost', value: (row) => row.host + row.device, show: bar, as: 'figure' },
                { head: 'by kind', as: 'long', value: kinds },
            ]}
            rows={scopes}
        />
    );
}

function View({ page }: { page: Page }) {
    const { head } = page.whole;
    const [n, left] = head.scopes_left_out;
    return (
        <>
            {head.scopes.length > 0 && <Single head={head} />}
            {n > 0 && (
                <p class="quiet">
                    and {count(n, 'more call')}, each smaller, {growth(left)} in all
                </p>
            )}
            {head.scope_sums.length > 0 && (
                <Table
                    caption="Repeated calls"
                    limit={10}
                    columns={[
                        { head: 'call', value: (row) => row.name },
                        { head: 'calls', as: 'number', value: (row) => row.calls },
                        { head: 'took', as: 'time', value: (row) => row.time },
                        grown('host'),
                        grown('device'),
                        { head: 'by kind', as: 'long', value: kinds },
                    ]}
                    rows={head.scope_sums}
                />
            )}
        </>
    );
}

export const Scopes = {
    id: 'start-up',
    title: 'Start-up cost',
    isWhole: true,
    fits: (run: Run) => run.head.scopes.length + run.head.scope_sums.length > 0,
    View,
};
