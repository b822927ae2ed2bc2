// SPDX-License-Identifier: GPL-2.0-or-later
//
// The moments that can be chosen, as a table: what the timeline shows, for those who cannot see it.

import { type Column, Table } from '../charts/table.js';
import type { Page } from '../runs/page.js';
import type { Moment } from '../runs/run.js';

const REASONS: Record<string, string> = {
    time: 'periodic',
    'peak-total': 'peak of host and device',
    'peak-host': 'host peak',
    'peak-device': 'device peak',
    request: 'requested',
    'out-of-memory': 'failed allocation',
    ended: 'end of a process',
};

function View({ page }: { page: Page }) {
    const { run } = page;
    const { unit, is_discrete } = run.head;
    const hasDevice = run.uses('device');
    const bytes = (head: string, value: (row: Moment) => number): Column<Moment> => ({ head, as: 'bytes', value });
    const columns: Column<Moment>[] = [
        { head: 'moment', value: (row) => row.name },
        { head: 'at', as: 'time', value: (row) => row.time, title: (row) => `${row.time} ${unit}` },
        ...(hasDevice ? [bytes('host', (row) => row.host), bytes('device', (row) => row.device)] : []),
        ...(is_discrete && hasDevice ? [] : [bytes('total', (row) => row.host + row.device)]),
        { head: 'why', value: (row) => REASONS[row.reason] ?? row.reason },
    ];
    return (
        <Table
            caption="Snapshots"
            note="click a row to show that moment"
            limit={12}
            columns={columns}
            rows={run.moments}
            onClick={(row) => page.select(row.index)}
            isChosen={(row) => row.index === page.moment}
        />
    );
}

export const Snapshots = { id: 'snapshots', title: 'Snapshots', View };
