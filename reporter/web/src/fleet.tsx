// SPDX-License-Identifier: GPL-2.0-or-later
//
// The page of a fleet: the distribution of one part in each group, the runs of a bar, and tables of parts, outliers and facts.

import './page.css';
import { render } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { count, size, whole } from './base/units.js';
import { type Column, Table } from './charts/table.js';
import type { FleetPage, NumberColumn } from './runs/data.js';
import { madeBy, start, unpacked } from './start.js';
import { type Link, Ready } from './views/ready.js';

const BARS = 40;

/** The last one has its end in it too; runs by their place in the group. */
type Bin = { from: number; to: number; runs: number[] };

/** Distribution of the runs of each group, in steps of one width for all groups. */
function bins(values: Float64Array[]) {
    const ends = (of: (...values: number[]) => number) =>
        values.flatMap((group) => group.reduce((a, b) => of(a, b), of())).reduce((a, b) => of(a, b));
    const least = ends(Math.min);
    const width = Math.max(1, Math.ceil((ends(Math.max) - least + 1) / BARS));
    return values.map((group) => {
        const found = Array.from({ length: BARS }, (_, i): Bin => ({ from: least + i * width, to: least + (i + 1) * width, runs: [] }));
        group.forEach((value, run) => found[Math.floor((value - least) / width)].runs.push(run));
        return found;
    });
}

type RunRow = { host: string; board: string; bytes: number; file: string; start: string };

const runColumns = (link: Link): Column<RunRow>[] => [
    { head: 'run', value: (run) => run.host || run.file },
    { head: 'bytes', as: 'bytes', value: (run) => run.bytes },
    { head: 'board', value: (run) => run.board },
    { head: 'start', value: (run) => run.start },
    { head: 'trace', as: 'long', value: (run) => run.file, show: (run) => link(run.file) },
];

type Chosen = { group: number; bin: Bin };
type FleetProps = { fleet: FleetPage; column: NumberColumn };

/** A row of bars for each group, on one scale; the runs of the bar that was chosen. */
function Distribution({ fleet: { groups, parts, runs }, column, part, link }: FleetProps & { part: number; link: Link }) {
    const [chosen, choose] = useState<Chosen | null>(null);
    const values = groups.map((_, group) => column(`${part}.${group}`));
    const all = bins(values);
    const most = Math.max(1, ...all.flat().map((bin) => bin.runs.length));
    const bar = (group: number, bin: Bin, i: number) => {
        const n = bin.runs.length;
        if (!n) return <span key={i} class="bin" />;
        const text = `${count(n, 'run')} from ${size(bin.from)} to ${size(bin.to)}`;
        return (
            <button key={i} type="button" class="bin" title={text} aria-label={text} data-value={n} onClick={() => choose({ group, bin })}>
                <i style={{ height: `${Math.max(3, (100 * n) / most)}%` }} />
            </button>
        );
    };
    const rowsOf = ({ group, bin }: Chosen): RunRow[] => {
        const { host, board, file, start } = runs[group];
        const rows = bin.runs.map((run) => ({ host: host[run], board: board[run], bytes: values[group][run], file: file[run], start: start[run] }));
        return rows.sort((a, b) => b.bytes - a.bytes);
    };
    return (
        <>
            <h2>{parts[part]}</h2>
            <p class="quiet">Runs by size. Click a bar for its runs; click a row below for another part.</p>
            <div class="distributions">
                {groups.map((label, group) => (
                    <div key={group} class="distribution">
                        <h3>{label}</h3>
                        <p class="quiet">{count(values[group].length, 'run')}</p>
                        <div class="bins">{all[group].map((bin, i) => bar(group, bin, i))}</div>
                    </div>
                ))}
                <div class="ends quiet">
                    <span>{size(all[0][0].from)}</span>
                    <span>{size(all[0][BARS - 1].to)}</span>
                </div>
            </div>
            {chosen && (
                <Table
                    caption="Runs"
                    columns={runColumns(link)}
                    rows={rowsOf(chosen)}
                    note={`${whole(chosen.bin.runs.length)} of ${groups[chosen.group]}, from ${size(chosen.bin.from)} to ${size(chosen.bin.to)}`}
                />
            )}
        </>
    );
}

function Page({ fleet, column }: FleetProps) {
    const [chosen, choose] = useState(0);
    const place = useRef<HTMLElement>(null);
    // A server has reports of runs.
    const reports = new Map(fleet.runs.flatMap(({ file, report }) => report.map((address, i) => [file[i], address])));
    const link: Link = (file) => (reports.get(file) ? <a href={reports.get(file)}>{file}</a> : file);
    const rows = fleet.tables.filter(({ view }) => view.startsWith('by-')).flatMap((table) => table.rows);
    const partOf = (row: unknown) => Math.floor(rows.indexOf(row as never) / fleet.groups.length);
    const choosing = {
        isChosen: (row: unknown) => partOf(row) === chosen,
        onClick: (row: unknown) => {
            choose(partOf(row));
            place.current?.scrollIntoView({ block: 'nearest' });
        },
    };
    return (
        <>
            <section id="distribution" aria-label="Distribution" ref={place}>
                <Distribution key={chosen} fleet={fleet} column={column} part={chosen} link={link} />
            </section>
            {fleet.tables.map((table) => (
                <section key={table.view} id={table.view}>
                    <Ready table={table} {...(table.view.startsWith('by-') ? choosing : { link })} />
                </section>
            ))}
        </>
    );
}

async function open(place: HTMLElement) {
    const data = await unpacked();
    if (!data.fleet) throw new Error('the data is that of another page');
    render(<Page fleet={data.fleet} column={data.runs[0].column} />, place.appendChild(document.createElement('div')));
    madeBy(data);
    document.documentElement.dataset.state = 'ready';
}

start(open);
