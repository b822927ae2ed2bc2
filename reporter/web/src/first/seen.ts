// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the first screen shows at the page's moment. At a named one it is what the report says; at any other, sums of rows, and
// the sentences of the moment with which the page opens.

import { moment as time, size } from '../base/units.js';
import type { NamedReport, ShownLadder, ShownLine, Statement } from '../runs/data.js';
import type { Page } from '../runs/page.js';
import type { Run, Side, Sum } from '../runs/run.js';
import { sidesOf } from '../runs/sums.js';

/** A piece of the bar; `group` is its colour. */
export type Part = { key: string; name: string; group: string; bytes: number };
/** From the figure of a tool, if one is known, past what is not the program's, to what the framework prints. */
export type Bar = { pool: string; top: Part; above: Part[]; program: number; parts: Part[]; bottom: Part | null; ladder: ShownLadder | null };
export type Seen = {
    when: string;
    capacity: string;
    figures: [string, number][];
    bars: Bar[];
    lines: ShownLine[];
    space: '' | Side;
    /** Of the memory space of the lines. */
    whole: number;
    statements: Statement[];
    /** The moment that statements are of, where it is not the page's. */
    saidOf: string;
};

const TOOLS: Record<string, string> = { jtop: 'jtop', htop: 'htop RES', highest: 'htop RES', 'nvidia-smi': 'nvidia-smi' };
const NAMES: Record<string, string> = {
    program: 'the program',
    before: 'before the start',
    others: 'other programs',
    profiler: 'profiler',
    unexplained: 'unexplained',
    runtime: 'runtime',
    libraries: 'libraries',
    cache: 'allocator cache',
    cached: 'allocator cache',
    other: 'other owners',
    own: 'your code',
    'own-code': 'your code',
    yours: 'your code',
    allocated: 'tensors',
};
const MOST_LINES = 6;

/** Of a part of the bar. */
export const nameOf = (key: string) => NAMES[key] ?? key;

const partOf = (key: string, of: string, bytes: number): Part => ({ key, name: nameOf(key), group: key === 'allocated' ? 'tensors' : of, bytes });

/** The end of the bar. */
const bottomOf = (run: Run, part: Part) => ({ ...part, name: run.head.is_pytorch ? 'torch' : 'its allocator' });

function barOf(run: Run, ladder: ShownLadder): Bar {
    const { rows } = ladder;
    const program = rows.findIndex(({ key }) => key === 'program');
    const last = rows[rows.length - 1];
    const part = ({ key, group, bytes }: (typeof rows)[number]): Part => partOf(key, group, bytes);
    const less = (from: typeof rows) => from.filter(({ role, bytes }) => role === 'less' && bytes > 0).map(part);
    return {
        pool: ladder.pool,
        top: program > 0 ? { ...part(rows[0]), name: TOOLS[rows[0].key] ?? rows[0].label } : part(rows[0]),
        above: less(rows.slice(0, program)),
        program: rows[program].bytes,
        parts: [...less(rows.slice(program)), ...(last.bytes ? [part(last)] : [])],
        bottom: last.key === 'allocated' ? bottomOf(run, part(last)) : null,
        ladder,
    };
}

/** The program alone, from sums of its owners. */
function barFromRows(page: Page, pool: '' | Side): Bar {
    const { run, moment } = page;
    const { owners, groups } = run.head;
    const sums = run.sums('owner', moment);
    const hasTensors = pool !== 'host' && sums.some((sum, i) => owners[i].is_tensors && sum.device > 0);
    const bytes = new Map<string, number>();
    const add = (key: string, n: number) => bytes.set(key, (bytes.get(key) ?? 0) + n);
    sums.forEach((sum, i) => {
        const tensors = hasTensors && owners[i].is_tensors ? sum.device : 0;
        add(owners[i].group, (pool ? sum[pool] : sum.host + sum.device) - tensors);
        add('allocated', tensors);
    });
    const order = new Set(['runtime', 'libraries', 'cached', 'other', ...groups.filter((name) => name !== 'yours'), 'yours', 'allocated']);
    const parts = [...order].map((key) => partOf(key, key, bytes.get(key) ?? 0)).filter((part) => part.bytes > 0);
    const program = parts.reduce((all, part) => all + part.bytes, 0);
    const tensors = parts.find(({ key }) => key === 'allocated');
    return {
        pool,
        top: partOf(run.parts.together ? 'by ledger' : 'program', '', program),
        above: [],
        program,
        parts,
        bottom: tensors ? bottomOf(run, tensors) : null,
        ladder: null,
    };
}

/** The largest lines, from sums of rows. */
function linesFromRows({ run, moment }: Page, space: '' | Side): ShownLine[] {
    const { lines, owners } = run.head;
    const of = (sum: Sum) => (space ? sum[space] : sum.host + sum.device);
    const order = run
        .sums('line', moment)
        .map((sum, line) => ({ line, total: of(sum) }))
        .filter(({ line, total }) => lines.path[line] && total > 0)
        .sort((a, b) => b.total - a.total)
        .slice(0, MOST_LINES);
    const held = run.at(moment).bytes;
    const rows = new Map(
        order.map(({ line, total }) => [
            line,
            { label: lines.label[line], path: lines.path[line], source: lines.source[line], tensors: 0, cache: 0, total },
        ]),
    );
    for (let cell = 0; cell < run.nCells; cell++) {
        const row = rows.get(run.cells.line[cell]);
        const side = (['host', 'device', ''] as const)[run.side[cell]];
        if (!row || !side || (space && side !== space)) continue;
        const owner = owners[run.cells.owner[cell]];
        if (owner.is_tensors) row.tensors += held[cell];
        else if (owner.group === 'cached') row.cache += held[cell];
    }
    return [...rows.values()];
}

/** What the report says at the page's moment; null at a moment without a name, and of a part or a sum. */
export const namedReport = (page: Page): NamedReport | null =>
    page.isPart || page.data.difference ? null : (page.run.head.reports.find(({ moment }) => moment === page.moment) ?? null);

export function seenAt(page: Page): Seen {
    const { run, whole, moment } = page;
    const at = run.moments[moment];
    const { head, parts } = whole;
    const first = head.reports.find((each) => each.moment === head.at.first);
    const named = namedReport(page);
    // Sentences on a part that the command line chose are of no other part.
    const isGiven = !head.filter || page.filter.isGiven;
    const said = parts.together?.summary ?? (isGiven ? (first?.statements ?? []) : []);
    const isOpening = moment === head.at.first && !page.isPart;
    const figuresOf = (): [string, number][] => {
        if (!at) return [];
        if (!head.is_discrete || sidesOf(run).length < 2) return [['', at.host + at.device]];
        return [
            ['device', at.device],
            ['host', at.host],
        ];
    };
    const given = named?.figures ?? figuresOf();
    const space = named?.space ?? ((given[0]?.[0] ?? '') as '' | Side);
    const all = whole.moments[moment];
    const ofAll = page.isPart && all ? `of ${size(all.host + all.device)} shown, ` : '';
    const main = !head.is_discrete ? 'total' : head.peaks.device?.device ? 'device' : 'host';
    const peakOfSum = parts.together && isOpening ? parts.together.peaks[main] : null;
    const figures: typeof given = peakOfSum && given.length === 1 ? [['', peakOfSum.bytes]] : given;
    return {
        when: named?.when ?? (at ? `${ofAll}at ${time(peakOfSum?.time ?? at.time, head.unit)}, ${at.name}` : ''),
        capacity: named?.capacity ?? '',
        figures,
        bars: named?.ladders.length
            ? named.ladders.map((ladder) => barOf(run, ladder))
            : at
              ? figures.filter(([, bytes]) => bytes > 0).map(([pool]) => barFromRows(page, pool as '' | Side))
              : [],
        lines: named ? named.lines : at ? linesFromRows(page, space) : [],
        space,
        whole: figures[0]?.[1] ?? 0,
        statements: named?.statements ?? said,
        saidOf: named || isOpening || parts.together ? '' : (first?.when ?? ''),
    };
}
