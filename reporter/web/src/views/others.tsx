// SPDX-License-Identifier: GPL-2.0-or-later
//
// Figures of other tools at the chosen moment, and what each does not include.

import { moment as time } from '../base/units.js';
import { Table } from '../charts/table.js';
import type { Page } from '../runs/page.js';
import type { Run } from '../runs/run.js';

/** The place of the time that is nearest. */
const nearest = (times: number[], at: number) =>
    times.reduce((best, value, place) => (Math.abs(value - at) < Math.abs(times[best] - at) ? place : best), 0);

function View({ page }: { page: Page }) {
    const { whole: run, moment } = page;
    const { unit, others } = run.head;
    const now = run.moments[moment];
    const rows = others.map(({ tool, figure, leaves_out, times, values }) => {
        const place = times ? nearest(times, now.time) : moment;
        // When it was sampled; null: then.
        const at = times && times[place] !== now.time ? times[place] : null;
        return { name: `${tool}: ${figure}`, leaves_out, held: values[place], at, most: values.reduce((most, value) => Math.max(most, value), 0) };
    });
    return (
        <Table
            caption="Compared with other tools"
            columns={[
                { head: 'tool', value: (row) => row.name },
                { head: `at ${now.name}`, as: 'bytes', value: (row) => row.held },
                {
                    head: 'sampled at',
                    as: 'figure',
                    value: (row) => row.at ?? now.time,
                    show: (row) => (row.at === null ? '' : time(row.at, unit)),
                    title: () => '',
                },
                { head: 'max', as: 'bytes', value: (row) => row.most },
                { head: 'does not include', value: (row) => row.leaves_out },
            ]}
            rows={rows}
        />
    );
}

export const Others = {
    id: 'others',
    title: 'Compared with other tools',
    isWhole: true,
    fits: (run: Run) => run.head.others.length > 0 && run.moments.length > 0,
    View,
};
