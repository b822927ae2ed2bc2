// SPDX-License-Identifier: GPL-2.0-or-later
//
// A comparison: the difference of each column to the one that it is compared with, tables with a row a name and a column a column,
// and the traces of each column.

import { count, growth, size, whole } from '../base/units.js';
import { Terms } from '../charts/section.js';
import { type Column, Table } from '../charts/table.js';
import { type Step, Waterfall } from '../charts/waterfall.js';
import { groupColour, REST } from '../runs/colours.js';
import { changeOf, type Comparison, comparisonOf, held, isBeyondNoise } from '../runs/comparison.js';
import type { DifferenceColumn, DifferenceLadder, DifferenceRow as Row, DifferenceTable, Pool } from '../runs/data.js';
import type { Page } from '../runs/page.js';
import { OwnersLegend } from './columns.js';

const MOST_STEPS = 14;

/** Suffix of pools that do not add up. */
const suffix = (pool: Pool) => (pool === 'bytes' ? '' : `, ${pool}`);

/** From the total of one column to that of the other, owner by owner. */
function stepsOf(run: Comparison, table: DifferenceTable, pool: Pool, from: number, to: number): Step[] {
    const groups = new Map(run.head.owners.map(({ name, group }) => [name, group]));
    const rows = [...table.rows, ...[table.other, table.rounding].filter((row) => row !== null)];
    const all = rows
        .map(({ name, cells }) => ({ name, group: groups.get(name) ?? '', bytes: held(cells[to], pool) - held(cells[from], pool) }))
        .filter((step) => step.bytes)
        .sort((a, b) => Math.abs(b.bytes) - Math.abs(a.bytes));
    const small = all.splice(MOST_STEPS);
    if (small.length)
        all.push({ name: `${whole(small.length)} smaller changes`, group: '', bytes: small.reduce((sum, step) => sum + step.bytes, 0) });
    const first = { name: run.label(from), group: 'total', bytes: held(table.total.cells[from], pool), colour: REST };
    return [first, ...all.map((step) => ({ ...step, text: growth(step.bytes), colour: groupColour(step.group || 'other') }))];
}

const Ladder = ({ ladder: { title, heads, rows, data } }: { ladder: DifferenceLadder }) => (
    <table class="table steps">
        <caption>{title}</caption>
        <thead>
            <tr>
                {['', ...heads].map((head, n) => (
                    <th key={n} scope="col" class={n ? 'figure' : ''}>
                        {head || <span class="unseen">step</span>}
                    </th>
                ))}
            </tr>
        </thead>
        <tbody>
            {rows.map(([name, ...figures], n) => (
                <tr key={n} data-key={data[n].key} data-role={data[n].role}>
                    <th scope="row">{name}</th>
                    {figures.map((figure, i) => (
                        <td key={i} class="figure">
                            {figure}
                        </td>
                    ))}
                </tr>
            ))}
        </tbody>
    </table>
);

/** The total of a column. */
function Tile({ page, table, pool, column }: { page: Page; table: DifferenceTable; pool: Pool; column: number }) {
    const { label } = comparisonOf(page).difference.columns[column];
    const now = held(table.total.cells[column], pool);
    const before = page.other === null || page.other === column ? null : held(table.total.cells[page.other], pool);
    const isNoise = isBeyondNoise(table.total, column, page.other) === false;
    const changes = before === null ? [] : [growth(now - before), changeOf(before, now), isNoise ? 'within noise' : ''];
    const change = changes.filter((text) => text).join(', ');
    return (
        <button
            type="button"
            class="tile"
            data-column={column}
            data-pool={pool}
            data-bytes={now}
            aria-pressed={column === page.moment}
            onClick={() => page.select(column)}
        >
            <span>
                {label}
                {suffix(pool)}
            </span>
            <span class="large" title={`${whole(now)} bytes`}>
                {size(now)}
            </span>
            <span class="change">{change || (page.other === column ? 'base' : ' ')}</span>
        </button>
    );
}

function ChangesView({ page }: { page: Page }) {
    const run = comparisonOf(page);
    const { difference, hasRepeats } = run;
    const { moment, other } = page;
    const tables = difference.views.filter(({ by }) => by !== 'scope');
    const owners = tables.find(({ by }) => by === 'owner');
    const pools = tables.length ? run.pools(tables[0]) : [];
    const isHeld = (pool: Pool) => owners && other !== null && held(owners.total.cells[other], pool) + held(owners.total.cells[moment], pool) > 0;
    return (
        <>
            <p class="quiet">At {difference.moment}.</p>
            <div class="tiles">
                {pools.flatMap((pool) =>
                    difference.columns.map((_, column) => (
                        <Tile key={`${pool}${column}`} page={page} table={tables[0]} pool={pool} column={column} />
                    )),
                )}
            </div>
            {difference.ladders.map((ladder) => (
                <Ladder key={ladder.pool} ladder={ladder} />
            ))}
            {owners &&
                other !== null &&
                pools
                    .filter(isHeld)
                    .map((pool) => (
                        <Waterfall
                            key={pool}
                            steps={stepsOf(run, owners, pool, other, moment)}
                            caption={`From ${run.label(other)} to ${run.label(moment)}, by owner${suffix(pool)}`}
                            sumName={run.label(moment)}
                        />
                    ))}
            {hasRepeats && <p class="quiet">Figures of repeated runs are medians. Noise: "within" where runs of both columns overlap.</p>}
        </>
    );
}

export const Changes = { id: 'changes', title: 'Changes', View: ChangesView };

type Fact = { label: string; values: string[] };

/** A line by line comparison. */
const Facing = ({ caption, rows, columns }: { caption: string; rows: Fact[]; columns: DifferenceColumn[] }) => (
    <Table
        caption={caption}
        limit={40}
        columns={[
            { head: 'fact', value: (row) => row.label },
            ...columns.map(({ label }, n): Column<Fact> => ({ head: label, as: 'long', value: (row) => row.values[n] || '?' })),
        ]}
        rows={rows}
    />
);

function SidesView({ page }: { page: Page }) {
    const { columns, facts, common } = comparisonOf(page).difference;
    const values = columns.map(({ runs }) => runs.map(({ file, complete }) => (complete ? file : `${file} (truncated)`)).join(', '));
    const repeated = columns.filter(({ runs }) => runs.length > 1).map(({ label, stacks_of }) => `${label}: ${stacks_of}`);
    const details = facts.filter((fact) => fact.is_detail);
    return (
        <>
            <Facing caption="Differences" rows={[{ label: 'traces', values }, ...facts.filter((fact) => !fact.is_detail)]} columns={columns} />
            {repeated.length > 0 && <p class="quiet">Call trees of repeated runs are of the median run ({repeated.join('; ')}).</p>}
            {details.length > 0 && (
                <details>
                    <summary>{whole(details.length)} more: options, environment, packages</summary>
                    <Facing caption="Options, environment and packages" rows={details} columns={columns} />
                </details>
            )}
            {common.length > 0 && (
                <details>
                    <summary>The same in all runs</summary>
                    <Terms rows={common} />
                </details>
            )}
        </>
    );
}

export const Sides = { id: 'sides', title: 'Compared runs', View: SidesView };

const isListed = (row: Row) => !row.in_total && !row.inside.length;
const fullName = (row: Row) => [...row.inside, row.name].join(' > ') + (isListed(row) ? ' (further calls, not counted)' : '');
const signed = (n: number) => (n ? `${n > 0 ? '+' : ''}${whole(n)}` : '');

function columnsOf(run: Comparison, table: DifferenceTable, pool: Pool, now: number, before: number | null): Column<Row>[] {
    const about = new Map(run.head.owners.map((owner) => [owner.name, owner.about]));
    const name: Column<Row> = {
        head: table.by.replaceAll('-', ' '),
        value: fullName,
        show: (row) => (
            <span class="nested" style={{ paddingLeft: `${1.2 * row.inside.length}em` }}>
                {row.inside.length ? row.name : fullName(row)}
            </span>
        ),
        title: (row) => (table.by === 'owner' ? (about.get(row.name) ?? '') : row.inside.length ? fullName(row) : ''),
    };
    const found = [
        name,
        ...run.difference.columns.map(({ label }, n): Column<Row> => ({ head: label, as: 'bytes', value: (row) => held(row.cells[n], pool) })),
    ];
    if (before === null) return found;
    const change = (head: string, of: Pool): Column<Row> => {
        const value = (row: Row) => held(row.cells[now], of) - held(row.cells[before], of);
        const kind = (row: Row) => (value(row) > 0 ? 'grown' : value(row) ? 'shrunk' : '');
        return { head, as: 'figure', value, show: (row) => <span class={kind(row)}>{growth(value(row))}</span> };
    };
    const share = (row: Row) => (row === table.rounding ? '' : changeOf(held(row.cells[before], pool), held(row.cells[now], pool)));
    found.push(change('change', pool), { head: '%', value: share });
    if (run.hasRepeats && before === 0) found.push({ head: 'noise', value: (row) => (isBeyondNoise(row, now, before) ? '' : 'within') });
    if (pool !== 'bytes') return found; // blocks of either side are not known
    const uses = (side: 'host' | 'device') => table.total.cells.some((cell) => cell[side]);
    if (uses('host') && uses('device')) found.push(change('host change', 'host'), change('device change', 'device'));
    const number = (row: Row) => row.cells[now].number - row.cells[before].number;
    found.push({ head: `${table.number_is} change`, as: 'figure', value: number, show: (row) => signed(number(row)) });
    return found;
}

function ComparedTable({ page, table, title }: { page: Page; table: DifferenceTable; title: string }) {
    const run = comparisonOf(page);
    const { min_bytes, moment } = run.difference;
    const isCalls = table.by === 'scope';
    const owners = isCalls || table.by !== 'owner' ? [] : run.head.owners.filter(({ name }) => table.rows.some((row) => row.name === name));
    return (
        <>
            {table.rows.some((row) => row.inside.length) && <p class="quiet">Nested calls are included in their callers.</p>}
            {run.pools(table).map((pool) => {
                const rows = table.rows.filter((row) => pool === 'bytes' || row.cells.some((cell) => cell[pool]));
                if (table.other) rows.push({ ...table.other, name: `${count(table.other_rows, 'other')}, each under ${size(min_bytes)}` });
                if (table.rounding) rows.push({ ...table.rounding, name: 'rounding of medians' });
                return (
                    <Table
                        key={pool}
                        caption={pool === 'bytes' ? title : `${title}: ${pool} memory`}
                        note={isCalls ? 'over the whole run' : `at ${moment}`}
                        columns={columnsOf(run, table, pool, page.moment, page.other)}
                        rows={rows}
                        sum={(_rows, isPart) => (isPart ? null : table.total)}
                    />
                );
            })}
            <OwnersLegend owners={owners} />
        </>
    );
}

/** The view of a table of the difference. */
export function compared(table: DifferenceTable) {
    const title = table.by === 'scope' ? 'Cost by call' : `By ${table.by.replaceAll('-', ' ')}`;
    return {
        id: `by-${table.by}`,
        title,
        // Without tensors, or Python, the rows say just that.
        fits: () => table.rows.some((row) => !row.name.startsWith('(')) || !!table.other,
        View: ({ page }: { page: Page }) => <ComparedTable page={page} table={table} title={title} />,
    };
}
