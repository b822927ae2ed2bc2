// SPDX-License-Identifier: GPL-2.0-or-later
//
// Fragmentation of segments over time: the share of their free memory that is not in the largest hole.

import { moment, percent, size } from '../base/units.js';
import { Table } from '../charts/table.js';
import type { Page } from '../runs/page.js';
import type { Run } from '../runs/run.js';

function View({ page }: { page: Page }) {
    const { unit, oom } = page.whole.head;
    const { time: times, reserved, free, largest_hole: holes, share } = oom.over_time;
    const rows = times.map((at, i) => ({ at, reserved: reserved[i], free: free[i], hole: holes[i], share: share[i] }));
    return (
        <>
            <figure class="fragmentation">
                <figcaption>
                    <b>Fragmentation at each snapshot</b>
                </figcaption>
                <div class="scale quiet" aria-hidden="true">
                    <span>100 %</span>
                    <span>0 %</span>
                </div>
                <div class="bars" role="img" aria-label="fragmentation at each snapshot, from 0 to 100 percent">
                    {rows.map((row, i) => (
                        <span
                            key={i}
                            title={`${moment(row.at, unit)}: ${percent(row.share, 1)}; ${size(row.free)} free, the largest hole ${size(row.hole)}`}
                            style={{ height: `${100 * row.share}%` }}
                        />
                    ))}
                </div>
                <div class="ends quiet">
                    <span>{moment(times[0], unit)}</span>
                    <span>{moment(times[times.length - 1], unit)}</span>
                </div>
            </figure>
            <Table
                caption="Segments at snapshots"
                limit={8}
                note="fragmentation: share of the free memory that is not in the largest hole"
                columns={[
                    { head: 'at', as: 'time', value: (row) => row.at },
                    { head: 'reserved', as: 'bytes', value: (row) => row.reserved },
                    { head: 'free', as: 'bytes', value: (row) => row.free },
                    { head: 'largest hole', as: 'bytes', value: (row) => row.hole },
                    { head: 'fragmentation', as: 'percent', value: (row) => 100 * row.share },
                ]}
                rows={rows}
            />
        </>
    );
}

export const Fragmentation = {
    id: 'fragmentation',
    title: 'Fragmentation over time',
    isWhole: true,
    fits: (run: Run) => run.head.oom.over_time.time.length > 0,
    View,
};
