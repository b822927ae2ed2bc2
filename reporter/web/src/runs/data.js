// SPDX-License-Identifier: GPL-2.0-or-later
//
// Unpacks what the reporter put into the page: the counterpart of data.py and columns.py in
// reporter/jmassif/html/. The typedefs here are the contract of what is in the head (docs/contributing.md).

/** @typedef {{type: 'number'|'signed'|'address', rows: number, planes: number, at: number}} ColumnSpec */
/** @typedef {{name: string, side: ''|'host'|'device', is_handle: boolean}} Kind */
/** @typedef {{name: string, group: string, about: string}} Owner `about`: what it is; '' of the user's own rules */
/** @typedef {{label: string[], type: string[], package: number[], library: number[], packages: string[], libraries: string[], around: number[], arounds: string[]}} Frames `arounds`: the source around a line */
/** @typedef {{label: string[], function: string[], path: string[], source: string[], around: string[], changed: string[], through: number[][]}} Lines `around`: the source around it; `through`: sets of lines that memory was called through, for `cell.through` */
/** @typedef {{host: number, device: number, kinds: [string, number][]}} Growth */
/** @typedef {Growth & {name: string, depth: number, begin: number, end: number}} Scope */
/** @typedef {Growth & {name: string, calls: number, time: number}} ScopeSum */
/** @typedef {{text: string, begin: number, end: number|null, thread: number, depth: number, most: number, host: number, device: number}} Region */
/** @typedef {{site: string, temporaries: number, blocks: number, bytes: number}} Temporary */
/** @typedef {{moment: number, time: number, host: number, device: number}} Peak */
/** Blocks by size: `classes` are bits of a size (a size of n bits is in class n), blocks, bytes; `by_mean` of the blocks count with the mean of their place. @typedef {{classes: [number, number, number][], by_mean: number}} SizesOf */
/** `held` at the peak, `asked` for in the whole run; `at_once` of the latter were freed before their thread allocated anything else. @typedef {{name: string, held: SizesOf, asked: SizesOf, at_once: number}} SizesRow */

/**
 * The whole machine's memory at a moment, in bytes: `board` is the sum of the others, of which some may be negative. `notes`: what a row is, by its field, or why it is negative.
 * @typedef {{moment: number, board: number, held: number, doubts: string[], names: Record<string, string>, notes: Record<string, string>, before: number, untouched: number, allocators: number, valgrind: number, unaccounted: number, elsewhere: number, free: number}} Balance
 */
/**
 * A figure of another tool. `times` is null where the values are those of the moments.
 * @typedef {{tool: string, figure: string, leaves_out: string, times: number[]|null, values: number[]}} OtherFigure
 */
/** @typedef {{address: string, bytes: number, free: number, parts: [number, string][]}} DrawnSegment parts: bytes and owner, '' of a hole */
/**
 * An allocation that failed for lack of memory, with its further tries.
 * @typedef {{number: number, time: number, snapshot: number, call: string, asked: number|null, error: number, tries: number[], outcome: string, freed: number, verdict: string, reason: string, helps: string[], arithmetic: [string, number, string][], line: string, stack: string[], map: DrawnSegment[], segments_left_out: number}} Incident
 */
/** A statement of the first screen. @typedef {{about: string, severity: 'alarm'|'warning'|'note', text: string}} Statement */
/**
 * Memory still allocated at exit, before an interpreter's clean-up (analysis/leaks.py), by owner and call site; memory that is not
 * counted; and lines that keep growing, by `slope` bytes per `step`. `unknown`: why growth is unknown.
 * @typedef {{time: number, bytes: number, owners: {name: string, group: string, host: number, device: number, blocks: number}[], places: {label: string, owner: string, kind: string, bytes: number, blocks: number}[], not_counted: [string, number][], step: string, n_steps: number, unknown: string, growing: {label: string, owner: string, slope: number, grown: number, held: number, since: number}[]}} LeaksData
 */
/**
 * The head of one process. Cells, moments and the columns' rows are described in docs/contributing.md.
 * @typedef {object} RunHead
 * @property {string} pid
 * @property {string} key of the run for the server that the page may be from: after exec the pid is the same
 * @property {string} command
 * @property {number} offset
 * @property {'ms'|'i'|'B'} unit
 * @property {boolean} is_discrete
 * @property {number|null} end_time
 * @property {number|null} board_bytes
 * @property {Statement[]} summary
 * @property {LeaksData|null} leaks
 * @property {Temporary[]} temporaries
 * @property {{when: string, has_all_records: boolean, all: SizesRow, owners: SizesRow[], lines: SizesRow[]}|null} sizes when the peak was; lines, those that ask most often first
 * @property {Kind[]} kinds
 * @property {Owner[]} owners
 * @property {string[]} groups
 * @property {string[]} roles
 * @property {string[]} libraries
 * @property {string[]} threads by name; '' alone without a record
 * @property {Lines} lines
 * @property {Frames} frames
 * @property {number} nodes
 * @property {string[]} reasons
 * @property {Record<string, Peak>} peaks
 * @property {{first: number, peak: number, end: number}} at `first`: of the first screen
 * @property {Balance[]} balances
 * @property {OtherFigure[]} others what other tools showed
 * @property {string} overlay what a tool's log showed at the peak, in a sentence; '' without one
 * @property {{incidents: Incident[], not_shown: number, over_time: Record<'time'|'reserved'|'free'|'largest_hole', number[]>}} oom
 * @property {[string, string][]} mapped library and kind
 * @property {{label: string, rows: number, wants_much: boolean, is_of_process: boolean, beside: string}[]} machine `beside`: the plot of memory that it is drawn in, 'both', 'host' or 'device'; '' for none
 * @property {number|null} short_at when memory ran short
 * @property {{time: number, text: string}[]} marks
 * @property {Region[]} regions
 * @property {number} events_left_out
 * @property {Scope[]} scopes
 * @property {[number, number]} scopes_left_out
 * @property {ScopeSum[]} scope_sums
 * @property {[number, number]} blocks_left_out
 * @property {[number, number][]} block_thresholds
 * @property {[string, string][]} facts
 * @property {[string, string][]} manifest
 * @property {{name: string, code: number, calls: number}[]} failures
 * @property {[string, number][]} counters
 * @property {[string, number][]} without_size what the kernel's driver keeps without saying how much memory it takes: what one is, and how many
 * @property {string[]} notes
 * @property {string} filter what --include and --exclude said; '' without them
 * @property {string} truncation
 * @property {boolean} is_complete
 * @property {Record<string, ColumnSpec>} columns
 * @property {number} columns_at
 */

/** @typedef {(name: string) => Float64Array} NumberColumn */
/** @typedef {{head: RunHead, column: NumberColumn, addresses: (name: string) => BigUint64Array}} RunData */
/**
 * The sum of several processes, on the common clock.
 * @typedef {{summary: Statement[], no_clock: string, time: number[], host: number[], device: number[], maximum: number[], peaks: Record<string, {bytes: number, time: number}>}} Together
 */
/** @typedef {{title: string, together: Together|null, generator: string, difference: Difference|null, fleet: any, runs: RunData[]}} PageData of a fleet: fleet/data.js */

/** @typedef {{host: number, device: number, number: number}} DifferenceFigures bytes; `number` of blocks or calls */
/** @typedef {'host'|'device'|'bytes'} Pool `bytes`: both */
/** @typedef {DifferenceFigures & {change: DifferenceFigures, beyond_noise: boolean|null}} DifferenceCell against the first column */
/** @typedef {{name: string, inside: string[], in_total: boolean, cells: DifferenceCell[]}} DifferenceRow a cell a column */
/** @typedef {{by: string, number_is: 'blocks'|'calls', rows: DifferenceRow[], other_rows: number, other: DifferenceRow|null, rounding: DifferenceRow|null, total: DifferenceRow}} DifferenceTable */
/** @typedef {{key: string, role: 'shown'|'sum'|'less'|'plus', about: boolean, bytes: number[], changes: number[]}} LadderRow figures a column */
/** @typedef {{label: string, before: number, now: number, is_line: boolean}} Moved */
/** @typedef {{pool: Pool, before: number, now: number, most: Moved|null, against: Moved|null, step: {key: string, change: number}|null, by: string, largest: {name: string, change: number}[], is_beyond_noise: boolean|null}} Finding */
/** @typedef {{label: string, stacks_of: string, runs: {file: string, complete: boolean}[]}} DifferenceColumn */
/**
 * As docs/reference.md describes the JSON of jmassif diff, but for `stacks_of`, `is_detail` and `common`.
 * @typedef {object} Difference
 * @property {string} format
 * @property {number} version of that format
 * @property {string[]} headline the findings as text has them
 * @property {Finding[]} findings
 * @property {{pool: string, title: string, heads: string[], rows: string[][], data: LadderRow[]}[]} ladders as text has them, and their bytes
 * @property {string} moment
 * @property {boolean} discrete
 * @property {number} min_bytes
 * @property {DifferenceColumn[]} columns
 * @property {{key: string, label: string, values: string[], is_detail: boolean}[]} facts
 * @property {[string, string][]} common
 * @property {DifferenceTable[]} views
 */

const VERSION = 1;

/** @param {string} text @returns {Promise<Uint8Array>} */
async function inflate(text) {
    const packed = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
    return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** @param {Uint8Array} bytes @param {ColumnSpec} spec @param {number} at @returns {Float64Array} */
function numbers(bytes, spec, at) {
    const column = new Float64Array(spec.rows);
    let weight = 1;
    for (let plane = 0; plane < spec.planes; plane++) {
        const begin = at + spec.at + plane * spec.rows;
        for (let row = 0; row < spec.rows; row++) column[row] += bytes[begin + row] * weight;
        weight *= 256;
    }
    if (spec.type === 'signed') {
        for (let row = 0; row < spec.rows; row++) {
            const folded = column[row];
            const half = Math.floor(folded / 2);
            column[row] = folded % 2 ? -half - 1 : half;
        }
    }
    return column;
}

/** @param {Uint8Array} bytes @param {ColumnSpec} spec @param {number} at @returns {BigUint64Array} */
function addresses(bytes, spec, at) {
    const column = new BigUint64Array(spec.rows);
    const raw = new DataView(column.buffer);
    for (let plane = 0; plane < spec.planes; plane++) {
        const begin = at + spec.at + plane * spec.rows;
        for (let row = 0; row < spec.rows; row++) raw.setUint8(8 * row + plane, bytes[begin + row]);
    }
    return column;
}

/** @param {string} text what the element #data holds @returns {Promise<PageData>} */
export async function unpack(text) {
    const bytes = await inflate(text);
    const n = new DataView(bytes.buffer).getUint32(0, true);
    const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + n)));
    if (head.version !== VERSION) throw new Error(`the data has version ${head.version}, and this page reads ${VERSION}`);
    /** @type {RunData[]} */
    const runs = head.runs.map((/** @type {RunHead} */ run) => {
        const at = 4 + n + run.columns_at;
        return {
            head: run,
            column: (/** @type {string} */ name) => numbers(bytes, run.columns[name], at),
            addresses: (/** @type {string} */ name) => addresses(bytes, run.columns[name], at),
        };
    });
    return { title: head.title, together: head.together, generator: head.generator, difference: head.difference, fleet: head.fleet, runs };
}
