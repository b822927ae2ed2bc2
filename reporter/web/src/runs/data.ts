// SPDX-License-Identifier: GPL-2.0-or-later
//
// Unpacks what the reporter put into the page: the counterpart of data.py and columns.py in reporter/jmassif/html/. The types here
// are the contract of what is in the head (docs/contributing.md). Sizes are bytes.

export type ColumnSpec = { type: 'number' | 'signed' | 'address'; rows: number; planes: number; at: number };
export type Kind = { name: string; side: '' | 'host' | 'device'; is_handle: boolean };
/** `about`: what it is; '' of the user's own rules. `is_tensors`: its device memory is what its allocator has handed out. */
export type Owner = { name: string; group: string; about: string; is_tensors: boolean };
/** Columns; `arounds`: the source around a line. */
export type Frames = {
    label: string[];
    type: string[];
    package: number[];
    library: number[];
    packages: string[];
    libraries: string[];
    around: number[];
    arounds: string[];
};
/** Columns; `around`: the source around a line; `through`: sets of lines that memory was called through, for `cell.through`. */
export type Lines = {
    label: string[];
    function: string[];
    path: string[];
    source: string[];
    around: string[];
    changed: string[];
    through: number[][];
};
export type Growth = { host: number; device: number; kinds: [string, number][] };
export type Scope = Growth & { name: string; depth: number; begin: number; end: number };
export type ScopeSum = Growth & { name: string; calls: number; time: number };
export type Region = {
    text: string;
    begin: number;
    end: number | null;
    thread: number;
    depth: number;
    most: number;
    host: number;
    device: number;
};
export type Temporary = { site: string; temporaries: number; blocks: number; bytes: number };
export type Peak = { moment: number; time: number; host: number; device: number };
/** Blocks by size: bits of a size (one of n bits is in class n), blocks, bytes; `by_mean` blocks count with the mean of their place. */
export type SizesOf = { classes: [number, number, number][]; by_mean: number };
/** `held` at the peak, `asked` for in the whole run; `at_once` of the latter were freed before their thread allocated anything else. */
export type SizesRow = { name: string; held: SizesOf; asked: SizesOf; at_once: number };
/** `when` the peak was; `lines`: those that ask most often first. */
export type Sizes = { when: string; has_all_records: boolean; all: SizesRow; owners: SizesRow[]; lines: SizesRow[] };

/** The whole machine's memory at a moment: `board` is the sum of the others, of which some may be negative. */
export type Balance = {
    moment: number;
    board: number;
    held: number;
    doubts: string[];
    names: Record<string, string>;
    /** What a row is, by its field, or why it is negative. */
    notes: Record<string, string>;
    before: number;
    untouched: number;
    allocators: number;
    valgrind: number;
    unaccounted: number;
    elsewhere: number;
    free: number;
};
/** A figure of another tool; `times` is null where the values are those of the moments. */
export type OtherFigure = { tool: string; figure: string; leaves_out: string; times: number[] | null; values: number[] };
/** `parts`: bytes and owner, '' of a hole. */
export type DrawnSegment = { address: string; bytes: number; free: number; parts: [number, string][] };
/** An allocation that failed for lack of memory, with its further tries. */
export type Incident = {
    number: number;
    time: number;
    snapshot: number;
    call: string;
    asked: number | null;
    error: number;
    tries: number[];
    outcome: string;
    freed: number;
    verdict: string;
    reason: string;
    helps: string[];
    arithmetic: [string, number, string][];
    line: string;
    stack: string[];
    map: DrawnSegment[];
    segments_left_out: number;
};
export type OutOfMemory = {
    incidents: Incident[];
    not_shown: number;
    over_time: { time: number[]; reserved: number[]; free: number[]; largest_hole: number[] };
};
/** A statement of the first screen. */
export type Statement = { about: string; severity: 'alarm' | 'warning' | 'note'; text: string };
/** A rung, as the text report has it: `group` of owners, or "others" for what is not the program's. */
export type ShownRung = { key: string; role: 'shown' | 'sum' | 'less' | 'plus'; bytes: number; label: string; number: number; group: string };
export type ShownLadder = { pool: string; title: string; note: string; rows: ShownRung[] };
export type ShownLine = { label: string; path: string; source: string; tensors: number; cache: number; total: number };
/** What the report says at a moment; `figures`: memory spaces ('' for both) and bytes; `space`: of the lines. */
export type NamedReport = {
    moment: number;
    name: string;
    when: string;
    capacity: string;
    space: '' | 'host' | 'device';
    figures: ['' | 'host' | 'device', number][];
    statements: Statement[];
    ladders: ShownLadder[];
    lines: ShownLine[];
};
export type LeakedOwner = { name: string; group: string; host: number; device: number; blocks: number };
export type LeakedPlace = { label: string; owner: string; kind: string; bytes: number; blocks: number };
/** A line that keeps growing, by `slope` bytes per step. */
export type Growing = { label: string; owner: string; slope: number; grown: number; held: number; since: number };
/** Memory still allocated at exit, before an interpreter's clean-up (analysis/leaks.py); `unknown`: why growth is unknown. */
export type LeaksData = {
    time: number;
    bytes: number;
    owners: LeakedOwner[];
    places: LeakedPlace[];
    not_counted: [string, number][];
    step: string;
    n_steps: number;
    unknown: string;
    growing: Growing[];
};
/** A figure of the machine; `beside`: the plot of memory that it is drawn in, 'both', 'host' or 'device'; '' for none. */
export type MachineFigure = { label: string; rows: number; wants_much: boolean; is_of_process: boolean; beside: string };

/** The head of one process. Cells, moments and the columns' rows are described in docs/contributing.md. */
export type RunHead = {
    pid: string;
    /** Of the run for the server that the page may be from: after exec the pid is the same. */
    key: string;
    command: string;
    offset: number;
    unit: 'ms' | 'i' | 'B';
    is_discrete: boolean;
    end_time: number | null;
    board_bytes: number | null;
    about: string;
    is_pytorch: boolean;
    reports: NamedReport[];
    leaks: LeaksData | null;
    temporaries: Temporary[];
    sizes: Sizes | null;
    kinds: Kind[];
    owners: Owner[];
    groups: string[];
    roles: string[];
    libraries: string[];
    /** By name; '' alone without a record. */
    threads: string[];
    lines: Lines;
    frames: Frames;
    nodes: number;
    reasons: string[];
    peaks: Record<string, Peak>;
    /** Moments; `first`: of the first screen. */
    at: { first: number; peak: number; end: number };
    balances: Balance[];
    others: OtherFigure[];
    /** What a tool's log showed at the peak, in a sentence; '' without one. */
    overlay: string;
    oom: OutOfMemory;
    /** Library and kind. */
    mapped: [string, string][];
    machine: MachineFigure[];
    /** When memory ran short. */
    short_at: number | null;
    marks: { time: number; text: string }[];
    regions: Region[];
    events_left_out: number;
    scopes: Scope[];
    scopes_left_out: [number, number];
    scope_sums: ScopeSum[];
    blocks_left_out: [number, number];
    block_thresholds: [number, number][];
    facts: [string, string][];
    manifest: [string, string][];
    failures: { name: string; code: number; calls: number }[];
    counters: [string, number][];
    /** What the kernel's driver keeps without saying how much memory it takes, and how many. */
    without_size: [string, number][];
    notes: string[];
    /** What --include and --exclude said; '' without them. */
    filter: string;
    truncation: string;
    is_complete: boolean;
    columns: Record<string, ColumnSpec>;
    columns_at: number;
};

export type NumberColumn = (name: string) => Float64Array;
export type RunData = { head: RunHead; column: NumberColumn; addresses: (name: string) => BigUint64Array };
/** The sum of several processes, on the common clock. */
export type Together = {
    summary: Statement[];
    no_clock: string;
    time: number[];
    host: number[];
    device: number[];
    maximum: number[];
    peaks: Record<string, { bytes: number; time: number }>;
};

/** `number` of blocks or calls. */
export type DifferenceFigures = { host: number; device: number; number: number };
/** `bytes`: both. */
export type Pool = 'host' | 'device' | 'bytes';
/** Against the first column. */
export type DifferenceCell = DifferenceFigures & { change: DifferenceFigures; beyond_noise: boolean | null };
/** A cell a column. */
export type DifferenceRow = { name: string; inside: string[]; in_total: boolean; cells: DifferenceCell[] };
export type DifferenceTable = {
    by: string;
    number_is: 'blocks' | 'calls';
    rows: DifferenceRow[];
    other_rows: number;
    other: DifferenceRow | null;
    rounding: DifferenceRow | null;
    total: DifferenceRow;
};
/** Figures a column. */
export type LadderRow = { key: string; role: 'shown' | 'sum' | 'less' | 'plus'; about: boolean; bytes: number[]; changes: number[] };
export type Moved = { label: string; before: number; now: number; is_line: boolean };
export type Finding = {
    pool: Pool;
    before: number;
    now: number;
    most: Moved | null;
    against: Moved | null;
    step: { key: string; change: number } | null;
    by: string;
    largest: { name: string; change: number }[];
    is_beyond_noise: boolean | null;
};
export type DifferenceColumn = { label: string; stacks_of: string; runs: { file: string; complete: boolean }[] };
/** As docs/reference.md describes the JSON of jmassif diff, but for `stacks_of`, `is_detail` and `common`. */
export type Difference = {
    format: string;
    /** Of that format. */
    version: number;
    /** The findings as text has them. */
    headline: string[];
    findings: Finding[];
    /** As text has them, and their bytes. */
    ladders: { pool: string; title: string; heads: string[]; rows: string[][]; data: LadderRow[] }[];
    moment: string;
    discrete: boolean;
    min_bytes: number;
    columns: DifferenceColumn[];
    facts: { key: string; label: string; values: string[]; is_detail: boolean }[];
    common: [string, string][];
    views: DifferenceTable[];
};

/** `fleet`: of a fleet (fleet/data.ts). */
export type PageData = {
    title: string;
    together: Together | null;
    generator: string;
    difference: Difference | null;
    fleet: unknown;
    runs: RunData[];
};

const VERSION = 1;

async function inflate(text: string) {
    const packed = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
    return new Uint8Array(await new Response(stream).arrayBuffer());
}

function numbers(bytes: Uint8Array, spec: ColumnSpec, at: number) {
    const column = new Float64Array(spec.rows);
    let weight = 1;
    for (let plane = 0; plane < spec.planes; plane++) {
        const begin = at + spec.at + plane * spec.rows;
        for (let row = 0; row < spec.rows; row++) column[row] += bytes[begin + row] * weight;
        weight *= 256;
    }
    if (spec.type !== 'signed') return column;
    return column.map((folded) => (folded % 2 ? -Math.floor(folded / 2) - 1 : folded / 2));
}

function addresses(bytes: Uint8Array, spec: ColumnSpec, at: number) {
    const column = new BigUint64Array(spec.rows);
    const raw = new DataView(column.buffer);
    for (let plane = 0; plane < spec.planes; plane++) {
        const begin = at + spec.at + plane * spec.rows;
        for (let row = 0; row < spec.rows; row++) raw.setUint8(8 * row + plane, bytes[begin + row]);
    }
    return column;
}

/** `text` is what the element #data holds. */
export async function unpack(text: string): Promise<PageData> {
    const bytes = await inflate(text);
    const n = new DataView(bytes.buffer).getUint32(0, true);
    const head: Omit<PageData, 'runs'> & { version: number; runs: RunHead[] } = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + n)));
    if (head.version !== VERSION) throw new Error(`the data has version ${head.version}, and this page reads ${VERSION}`);
    const runs = head.runs.map((run): RunData => {
        const at = 4 + n + run.columns_at;
        return {
            head: run,
            column: (name) => numbers(bytes, run.columns[name], at),
            addresses: (name) => addresses(bytes, run.columns[name], at),
        };
    });
    return { ...head, runs };
}
