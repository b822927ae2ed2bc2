// SPDX-License-Identifier: GPL-2.0-or-later
//
// The JSON in a page. Written by reporter/jmassif/html/typescript.py: do not edit.

export type FleetPage = { groups: string[]; parts: string[]; runs: FleetRuns[]; tables: ReadyTable[] };
/** A table that follows no moment. `view`: the section that it is in; `limit`: rows that are shown until more are asked for. Columns have a head, and how their figures are shown ("" for a text, else as in charts/table.tsx). */
export type ReadyTable = {
    view: string;
    caption: string;
    note: string;
    limit: number;
    columns: [string, string][];
    rows: (number | string)[][];
    total: (number | string)[];
};
/** Columns, of the runs of a group. `report`: its address below the page's; "" or none where there is none. */
export type FleetRuns = { host: string[]; board: string[]; file: string[]; start: string[]; report: string[] };
export type Together = { summary: Statement[]; peaks: Record<string, SumPeak> };
export type SumPeak = { bytes: number; time: number };
/** A sentence of the first screen, or more. `action`, what to do, is the end of the text. */
export type Statement = { about: string; severity: 'alarm' | 'warning' | 'note'; text: string; action: string };
export type RunHead = {
    unit: 'ms' | 'i' | 'B';
    is_discrete: boolean;
    offset: number;
    pid: string;
    key: string;
    command: string;
    end_time: number | null;
    board_bytes: number | null;
    filter: string;
    about: string;
    is_pytorch: boolean;
    reports: NamedReport[];
    tables: ReadyTable[];
    balances: Balance[];
    balance_of: number[];
    others: OtherFigure[];
    oom: OutOfMemory;
    mapped: [string, string][];
    blocks_left_out: [number, number];
    block_thresholds: [number, number][];
    kinds: Kind[];
    owners: Owner[];
    groups: string[];
    roles: string[];
    libraries: string[];
    threads: string[];
    lines: Lines;
    frames: Frames;
    reasons: string[];
    peaks: Record<string, Peak>;
    at: ChosenMoments;
    machine: MachineFigure[];
    short_at: number | null;
    marks: Mark[];
    regions: Region[];
    scopes: Scope[];
    facts: [string, string][];
    notes: Statement[];
    columns: Record<string, ColumnSpec>;
    columns_at: number;
};
/** A column of numbers, in planes: the lowest bytes of all rows come first. */
export type ColumnSpec = { type: 'number' | 'signed' | 'address'; rows: number; planes: number; at: number };
export type Scope = { name: string; depth: number; begin: number; end: number };
export type Region = { text: string; begin: number; end: number | null; depth: number };
export type Mark = { time: number; text: string };
export type MachineFigure = { label: string; rows: number; worst: number; is_of_process: boolean };
/** Indices of moments, or -1. `first`: of the first screen. */
export type ChosenMoments = { first: number; peak: number; end: number };
export type Peak = { moment: number; time: number; host: number; device: number };
/** Columns. `arounds` are pieces of source, each around a line. */
export type Frames = {
    label: string[];
    type: string[];
    package: number[];
    library: number[];
    around: number[];
    packages: string[];
    libraries: string[];
    arounds: string[];
};
/** Columns of Python lines. `through`: sets of lines that memory was called through, for `cell.through`. */
export type Lines = {
    label: string[];
    function: string[];
    path: string[];
    source: string[];
    around: string[];
    changed: string[];
    through: number[][];
};
/** `about` describes it, and is empty for an owner of the user's own rules. `place`: in its group, the same in all runs. */
export type Owner = { name: string; group: string; about: string; is_tensors: boolean; place: number };
export type Kind = { name: string; side: 'host' | 'device' | ''; is_handle: boolean };
export type OutOfMemory = { incidents: Incident[]; not_shown: number };
/** An allocation that failed for lack of memory, with its further tries. */
export type Incident = {
    number: number;
    time: number;
    snapshot: number;
    outcome: string;
    verdict: string;
    text: string;
    helps: string[];
    arithmetic: [string, number, string][];
    line: string;
    stack: string[];
    map: DrawnSegment[];
    segments_left_out: number;
};
/** `parts`: bytes and owner; "" for a hole. */
export type DrawnSegment = { address: string; bytes: number; free: number; parts: [number, string][] };
/** A figure of another tool. `times` is null where the values are those of the moments. */
export type OtherFigure = { tool: string; figure: string; leaves_out: string; times: number[] | null; values: number[] };
/** The machine's memory at a moment: `board` is the sum of the others, of which some may be negative. `names` and `notes` by field; a note says what a row is, or why it is negative. */
export type Balance = {
    moment: number;
    board: number;
    held: number;
    doubts: string[];
    names: Record<string, string>;
    notes: Record<string, string>;
    before: number;
    untouched: number;
    allocators: number;
    valgrind: number;
    unaccounted: number;
    elsewhere: number;
    free: number;
};
/** The report's statements at a moment. `figures`: memory spaces, "" for both, and bytes; `space`: of the lines. */
export type NamedReport = {
    moment: number;
    name: string;
    when: string;
    capacity: string;
    space: 'host' | 'device' | '';
    figures: [string, number][];
    statements: Statement[];
    ladders: ShownLadder[];
    lines: ShownLine[];
};
export type ShownLine = { label: string; path: string; source: string; tensors: number; cache: number; total: number };
export type ShownLadder = { pool: string; title: string; note: string; rows: ShownRung[] };
/** As the text report has it. `group`: of owners, or "others" for what is not the program's. */
export type ShownRung = { key: string; role: 'shown' | 'sum' | 'less' | 'plus'; bytes: number; label: string; number: number; group: string };
