// SPDX-License-Identifier: GPL-2.0-or-later
//
// The page of a fleet: how one part is distributed (a row of bars for each group on one scale, and the runs of the chosen bar), and
// tables of each part in each group with its change, of outliers, and of other differences.

import './page.css';
import { render } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { count, growth, size, whole } from './base/units.js';
import { type Column, Table } from './charts/table.js';
import { type Bin, bins, type Fact, Fleet, type FleetHead, type FleetRow } from './fleet/data.js';
import { unpack } from './runs/data.js';

const BARS = 40;

type RunRow = { host: string; board: string; bytes: number; file: string; start: string };

const RUN_COLUMNS: Column<RunRow>[] = [
    { head: 'run', value: (run) => run.host || run.file },
    { head: 'bytes', as: 'figure', value: (run) => run.bytes, show: (run) => size(run.bytes) },
    { head: 'board', value: (run) => run.board },
    { head: 'start', value: (run) => run.start },
    { head: 'trace', as: 'long', value: (run) => run.file },
];

type Chosen = { group: number; bin: Bin };

/** The runs of the bar that was chosen. */
function Runs({ fleet, values, chosen: { group, bin } }: { fleet: Fleet; values: Float64Array; chosen: Chosen }) {
    const { groups, runs } = fleet.head;
    const of = runs[group];
    const rows = bin.runs.map((run) => ({ host: of.host[run], board: of.board[run], bytes: values[run], file: of.file[run], start: of.start[run] }));
    rows.sort((a, b) => b.bytes - a.bytes);
    const note = `${whole(rows.length)} of ${groups[group].label}, from ${size(bin.from)} to ${size(bin.to)}`;
    return <Table caption="Runs" columns={RUN_COLUMNS} rows={rows} note={note} />;
}

function Bar({ bin, most, choose }: { bin: Bin; most: number; choose: () => void }) {
    const n = bin.runs.length;
    if (!n) return <span class="bin" />;
    const text = `${count(n, 'run')} from ${size(bin.from)} to ${size(bin.to)}`;
    return (
        <button type="button" class="bin" title={text} aria-label={text} data-value={n} onClick={choose}>
            <i style={{ height: `${Math.max(3, (100 * n) / most)}%` }} />
        </button>
    );
}

/** A row of bars for each group, on one scale. */
function Distribution({ fleet, row }: { fleet: Fleet; row: number }) {
    const [chosen, choose] = useState<Chosen | null>(null);
    const { head } = fleet;
    const { view, name, groups } = head.rows[row];
    const values = fleet.values(row);
    const all = bins(values, BARS);
    const most = Math.max(1, ...all.flat().map((bin) => bin.runs.length));
    const [first] = all;
    return (
        <>
            <h2>{view === 'total' ? 'Total' : `${view.replaceAll('-', ' ')} ${name}`}</h2>
            <p class="quiet">Runs by size. Click a bar for its runs; click a row below for another part.</p>
            <div class="distributions">
                {groups.map((of, group) => (
                    <div key={group} class="distribution">
                        <h3>{head.groups[group].label}</h3>
                        <p class="quiet">
                            {count(of.n, 'run')}: median {size(of.median)}, spread {size(of.spread)}, 5 % below {size(of.low)}, 5 % above{' '}
                            {size(of.high)}
                        </p>
                        <div class="bins">
                            {all[group].map((bin, i) => (
                                <Bar key={i} bin={bin} most={most} choose={() => choose({ group, bin })} />
                            ))}
                        </div>
                    </div>
                ))}
                <div class="ends quiet">
                    <span>{size(first[0].from)}</span>
                    <span>{size(first[first.length - 1].to)}</span>
                </div>
            </div>
            {chosen && <Runs fleet={fleet} values={values[chosen.group]} chosen={chosen} />}
        </>
    );
}

type Part = { row: FleetRow; index: number };

const titleOf = (view: string) =>
    view === 'total' ? 'Memory at the peak' : view === 'scope' ? 'Cost by call' : `By ${view.replaceAll('-', ' ')}, at the peak`;

function partColumns(head: FleetHead) {
    const columns: Column<Part>[] = [{ head: 'name', value: ({ row }) => row.name }];
    head.groups.forEach(({ label }, group) => {
        const median = ({ row }: Part) => row.groups[group].median;
        columns.push({ head: label, as: 'figure', value: median, show: (part) => size(median(part)) });
    });
    head.groups.forEach(({ label }, group) => {
        if (group === head.base) return;
        const bytes = ({ row }: Part) => row.changes[group]?.bytes ?? 0;
        const kind = (part: Part) => (part.row.changes[group]?.is_change ? (bytes(part) > 0 ? 'grown' : 'shrunk') : 'quiet');
        const show = (part: Part) => <span class={kind(part)}>{growth(bytes(part))}</span>;
        columns.push({ head: `change, ${label}`, as: 'figure', value: bytes, show });
        columns.push({ head: 'from … to', value: ({ row }) => row.changes[group]?.interval?.map(growth).join(' … ') ?? 'too few runs' });
    });
    return columns;
}

function Outliers({ head }: { head: FleetHead }) {
    return (
        <section id="outliers">
            <Table
                caption="Outliers"
                empty="none"
                columns={[
                    { head: 'run', value: (run) => run.host || run.file },
                    { head: 'group', value: (run) => head.groups[run.group].label },
                    { head: 'bytes', as: 'bytes', value: (run) => run.bytes },
                    { head: 'median', as: 'bytes', value: (run) => run.median },
                    { head: 'part', value: (run) => (run.view === 'total' ? 'total' : `${run.view} ${run.name}`) },
                    { head: 'trace', as: 'long', value: (run) => run.file },
                ]}
                rows={head.outliers}
            />
        </section>
    );
}

function Facts({ head }: { head: FleetHead }) {
    const most = (runs: number, group: number) => (fact: Fact) => {
        const { value, runs: n } = fact.values[group];
        return `${value || '?'}${n < runs ? ` (${Math.floor((100 * n) / runs)} %)` : ''}`;
    };
    return (
        <section id="facts">
            <Table
                caption="Facts that differ between most runs of the groups"
                empty="none"
                columns={[
                    { head: 'name', value: (fact) => fact.label },
                    ...head.groups.map(({ label, runs }, group) => ({ head: label, value: most(runs, group) })),
                ]}
                rows={head.facts}
            />
        </section>
    );
}

function Page({ fleet }: { fleet: Fleet }) {
    const { head } = fleet;
    const [chosen, choose] = useState(0);
    const place = useRef<HTMLElement>(null);
    const parts = head.rows.map((row, index) => ({ row, index }));
    const columns = partColumns(head);
    return (
        <>
            <section id="distribution" aria-label="Distribution" ref={place}>
                <Distribution key={chosen} fleet={fleet} row={chosen} />
            </section>
            {[...new Set(head.rows.map((row) => row.view))].map((view) => (
                <section key={view} id={`by-${view}`}>
                    <Table
                        caption={titleOf(view)}
                        note="medians; significant changes are coloured"
                        columns={columns}
                        rows={parts.filter(({ row }) => row.view === view)}
                        isChosen={({ index }) => index === chosen}
                        onClick={({ index }) => {
                            choose(index);
                            place.current?.scrollIntoView({ block: 'nearest' });
                        }}
                    />
                </section>
            ))}
            <Outliers head={head} />
            <Facts head={head} />
        </>
    );
}

/** `place` has the headline in it. */
async function open(place: HTMLElement) {
    const data = await unpack(document.getElementById('data')?.textContent ?? '');
    if (!data.fleet) throw new Error('the data is that of another page');
    const fleet = new Fleet(data.fleet as FleetHead, data.runs[0].column);
    const parts = place.appendChild(document.createElement('div'));
    render(<Page fleet={fleet} />, parts);
    const maker = Object.assign(document.createElement('p'), { textContent: `Made by ${data.generator}.` });
    document.querySelector('footer')?.prepend(maker);
    document.documentElement.dataset.state = 'ready';
}

const place = document.getElementById('page');
if (place) {
    open(place).catch((error: unknown) => {
        const text = `The rest of this page cannot be shown: ${String(error)}`;
        place.append(Object.assign(document.createElement('p'), { role: 'alert', className: 'problem', textContent: text }));
        console.error(error);
    });
}
