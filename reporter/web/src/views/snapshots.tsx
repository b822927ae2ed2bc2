// SPDX-License-Identifier: GPL-2.0-or-later
//
// The moments that can be chosen, as a table: what the timeline shows, for those who cannot see it; and regions and marks.

import { growth, moment, size, whole } from '../base/units.js';
import { type Column, Table } from '../charts/table.js';
import type { RunHead } from '../runs/data.js';
import type { Page } from '../runs/page.js';
import type { Moment } from '../runs/run.js';

type Event = { at: number; what: string; name: string; took: number | null; most: number | null; host: number; device: number };

const REASONS: Record<string, string> = {
    time: 'periodic',
    'peak-total': 'peak of host and device',
    'peak-host': 'host peak',
    'peak-device': 'device peak',
    request: 'requested',
    'out-of-memory': 'failed allocation',
    ended: 'end of a process',
};

/** Regions and marks, in order. */
const eventsOf = ({ regions, marks }: RunHead): Event[] =>
    [
        ...regions.map(({ begin, end, text, most, host, device }) => ({
            at: begin,
            what: 'region',
            name: text,
            took: end === null ? null : end - begin,
            most,
            host,
            device,
        })),
        ...marks.map((mark) => ({ at: mark.time, what: 'mark', name: mark.text, took: null, most: null, host: 0, device: 0 })),
    ].sort((a, b) => a.at - b.at);

function Events({ head, events }: { head: RunHead; events: Event[] }) {
    const { unit, events_left_out: others } = head;
    const change = (side: 'host' | 'device'): Column<Event> => ({
        head: side,
        as: 'figure',
        value: (row) => row[side],
        show: (row) => (row.what === 'mark' ? '' : growth(row[side])),
    });
    const took = (row: Event) => (row.took !== null ? moment(row.took, unit) : row.what === 'mark' ? '' : 'still open at the end');
    return (
        <Table
            caption="Regions and marks"
            limit={15}
            note={others > 0 && `${whole(others)} more are not on this page`}
            columns={[
                { head: 'at', as: 'time', value: (row) => row.at },
                { head: 'what', value: (row) => row.what },
                { head: 'name', as: 'long', value: (row) => row.name },
                { head: 'took', as: 'figure', value: (row) => row.took ?? -1, show: took, title: () => '' },
                { head: 'max', as: 'figure', value: (row) => row.most ?? -1, show: (row) => (row.most === null ? '' : size(row.most)) },
                change('host'),
                change('device'),
            ]}
            rows={events}
        />
    );
}

function View({ page }: { page: Page }) {
    const { run } = page;
    const { unit, is_discrete } = run.head;
    const hasDevice = run.uses('device');
    const events = eventsOf(run.head);
    const bytes = (head: string, value: (row: Moment) => number): Column<Moment> => ({ head, as: 'bytes', value });
    const columns: Column<Moment>[] = [
        { head: 'moment', value: (row) => row.name },
        { head: 'at', as: 'time', value: (row) => row.time, title: (row) => `${row.time} ${unit}` },
        ...(hasDevice ? [bytes('host', (row) => row.host), bytes('device', (row) => row.device)] : []),
        ...(is_discrete && hasDevice ? [] : [bytes('total', (row) => row.host + row.device)]),
        { head: 'why', value: (row) => REASONS[row.reason] ?? row.reason },
    ];
    return (
        <>
            <Table
                caption="Snapshots"
                note="click a row to show that moment"
                limit={12}
                columns={columns}
                rows={run.moments}
                onClick={(row) => page.select(row.index)}
                isChosen={(row) => row.index === page.moment}
            />
            {events.length > 0 && <Events head={run.head} events={events} />}
        </>
    );
}

export const Snapshots = { id: 'snapshots', title: 'Snapshots, regions and marks', View };
