// SPDX-License-Identifier: GPL-2.0-or-later
//
// The columns of figures that tables of owners, libraries, lines and roles share, and the descriptions of owners.

import { Terms } from '../charts/section.js';
import { type Column } from '../charts/table.js';
import type { Owner } from '../runs/data.js';
import type { Page } from '../runs/page.js';
import { NOTHING, type Sum } from '../runs/run.js';
import { type Row, sidesOf, sumOf, total } from '../runs/sums.js';

type Of = (sum: Sum) => number;

/**
 * Bytes and blocks in each pool, the sum where pools add up, and shares of what may be added up. `totalOf`: of rows that have a total
 * beside what is their own.
 */
export function figures(page: Page, rows: Row[], totalOf: ((row: Row) => Sum) | null = null): Column<Row>[] {
    const { run } = page;
    const sides = sidesOf(run);
    const all = sumOf(rows).sum;
    const isApart = sides.length > 1 && run.head.is_discrete;
    const pools: [string, Of][] = isApart ? sides.map((side) => [side, (sum) => sum[side]]) : [['', total]];
    const named = (pool: string, what: string) => (pool ? `${pool} ${what}` : what);
    const bytes = (head: string, value: (row: Row) => number): Column<Row> => ({ head, as: 'bytes', value });
    const own = (head: string, of: Of) => bytes(!totalOf ? head : head === 'total' ? 'self' : `self ${head}`, (row) => of(row.sum));
    const shareOf = (n: number, part: number) => (n ? (100 * part) / n : 0);
    const share = (head: string, of: Of): Column<Row> => ({ head, as: 'percent', value: (row) => shareOf(of(all), of(row.sum)) });
    const change = (head: string, of: Of): Column<Row> => ({ head, as: 'change', value: (row) => of(row.sum) - of(row.before ?? NOTHING) });
    const columns: Column<Row>[] = [];
    for (const side of sides) {
        columns.push(own(sides.length > 1 ? side : 'total', (sum) => sum[side]));
        if (isApart) columns.push(share(`${side} share`, (sum) => sum[side]));
    }
    if (sides.length > 1 && !isApart) columns.push(own('total', total));
    if (!isApart) columns.push(share('share', total));
    if (totalOf) for (const [pool, of] of pools) columns.push(bytes(pool ? `total ${pool}` : 'total', (row) => of(totalOf(row))));
    columns.push({ head: 'blocks', as: 'number', value: (row) => row.sum.hostBlocks + row.sum.deviceBlocks });
    if (page.other !== null && pools.length === 1 && run.measures.includes('allocated') && run.parts.processes.length < 2) {
        // A peak has no count of all that was allocated by then.
        const least = [page.moment, page.other].some((index) => run.moments[index].isPeak) ? ' at least' : '';
        columns.push(bytes('before', (row) => total(row.before ?? NOTHING)));
        columns.push(bytes(`allocated since${least}`, (row) => row.since));
        columns.push(bytes(`freed since${least}`, (row) => total(row.before ?? NOTHING) + row.since - total(row.sum)));
    }
    if (page.other !== null) for (const [pool, of] of pools) columns.push(change(named(pool, 'change'), of));
    return columns;
}

export const allocated: Column<Row> = { head: 'allocated so far', as: 'bytes', value: (row) => row.sum.allocated };

/** Descriptions of owners, folded away. */
export function OwnersLegend({ owners }: { owners: Owner[] }) {
    const rows = owners.filter(({ about }) => about).map(({ name, about }): [string, string] => [name, about]);
    return rows.length ? (
        <details class="owners">
            <summary>Owner descriptions</summary>
            <Terms rows={rows} />
        </details>
    ) : null;
}
