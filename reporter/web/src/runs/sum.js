// SPDX-License-Identifier: GPL-2.0-or-later
//
// Several processes as one run, on the clock of the first. The cells stand side by side, so any view works on the sum; at
// each moment of any process the others hold what they held last, and nothing before their start or after their end. What
// a forked process inherited, and still holds, counts once: with its parent.

import { Run } from './run.js';

/** @typedef {import('./parts.js').Parts} Parts */
/** @typedef {import('./data.js').RunHead} RunHead */
/** @typedef {import('./parts.js').Cells} Cells */

/** Places of values in one list, in the order in which they come. @template T @param {(value: T) => string} keyOf */
function index(keyOf) {
    /** @type {Map<string, number>} */
    const places = new Map();
    /** @type {T[]} */
    const values = [];
    return {
        values,
        place(/** @type {T} */ value) {
            const key = keyOf(value);
            let place = places.get(key);
            if (place === undefined) {
                place = values.length;
                places.set(key, place);
                values.push(value);
            }
            return place;
        },
    };
}

/** @param {Uint32Array[]} columns */
function joined(columns) {
    const all = new Uint32Array(columns.reduce((n, column) => n + column.length, 0));
    let at = 0;
    for (const column of columns) {
        all.set(column, at);
        at += column.length;
    }
    return all;
}

/** A moment of one process on the common clock. @typedef {{clock: number, run: number, moment: number}} Step; `moment` -1: it ended */

/** When it held nothing any more, by its own clock: where its end is not on record, after its last record. @param {Run} run */
const endOf = ({ head, outline, moments }) => Math.max(head.end_time ?? 0, outline.time[outline.time.length - 1] ?? 0, moments[moments.length - 1]?.time ?? 0);

/** @param {Run[]} runs @param {number[]} offset @returns {Step[]} */
function steps(runs, offset) {
    /** @type {Step[]} */
    const found = [];
    runs.forEach((run, i) => {
        // A peak from before a fork is the parent's. Of one process moments stay in order.
        let latest = run.moments.find(({ id }) => id)?.time ?? 0;
        for (const { index: moment, time } of run.moments) {
            latest = Math.max(latest, time);
            found.push({ clock: latest + offset[i], run: i, moment });
        }
        if (run.moments.length) found.push({ clock: endOf(run) + offset[i], run: i, moment: -1 });
    });
    return found.sort((a, b) => a.clock - b.clock || a.run - b.run);
}

/** The places of each run's names in the shared lists, and the first of its cells, nodes and frames. @param {Run[]} runs */
function shared(runs) {
    const kinds = index((/** @type {import('./data.js').Kind} */ kind) => kind.name);
    const owners = index((/** @type {import('./data.js').Owner} */ owner) => owner.name);
    const roles = index((/** @type {string} */ role) => role);
    const libraries = index((/** @type {string} */ library) => library);
    const threads = index((/** @type {string} */ thread) => thread);
    const lines = index((/** @type {string[]} */ line) => JSON.stringify(line.slice(0, 3)));
    const through = index((/** @type {number[]} */ set) => set.join());
    const placesOf = runs.map(({ head }) => ({
        kind: head.kinds.map(kinds.place),
        owner: head.owners.map(owners.place),
        role: head.roles.map(roles.place),
        library: head.libraries.map(libraries.place),
        thread: head.threads.map(threads.place),
        line: head.lines.label.map((label, i) => lines.place([label, head.lines.path[i], head.lines.function[i], head.lines.source[i], head.lines.around[i]])),
        through: /** @type {number[]} */ ([]),
    }));
    runs.forEach(({ head }, i) => (placesOf[i].through = head.lines.through.map((set) => through.place(set.map((line) => placesOf[i].line[line])))));
    // Every trie has its root at 0, and every table of frames has no frame there: these become one.
    const first = { cell: [0], node: [1], frame: [1] };
    runs.forEach((run, i) => {
        first.cell.push(first.cell[i] + run.nCells);
        first.node.push(first.node[i] + run.nodes.parent.length - 1);
        first.frame.push(first.frame[i] + run.head.frames.label.length - 1);
    });
    return { offset: runs.map((run) => run.head.offset), placesOf, first, kinds: kinds.values, owners: owners.values, roles: roles.values, libraries: libraries.values, threads: threads.values, lines: lines.values, through: through.values };
}

/** @typedef {ReturnType<typeof shared>} Shared */

/** @param {Run[]} runs @param {Shared} shared */
const nodesOf = (runs, { first }) => ({
    parent: joined([Uint32Array.of(0), ...runs.map((run, i) => run.nodes.parent.subarray(1).map((parent) => (parent ? parent - 1 + first.node[i] : 0)))]),
    frame: joined([Uint32Array.of(0), ...runs.map((run, i) => run.nodes.frame.subarray(1).map((frame) => (frame ? frame - 1 + first.frame[i] : 0)))]),
});

/** @param {Run[]} runs @returns {import('./data.js').Frames} */
function framesOf(runs) {
    const packages = index((/** @type {string} */ name) => name);
    const objects = index((/** @type {string} */ name) => name);
    const arounds = index((/** @type {string} */ text) => text);
    for (const each of [packages, objects, arounds]) each.place('');
    /** @type {import('./data.js').Frames} */
    const frames = { label: [''], type: [''], package: [0], library: [0], packages: packages.values, libraries: objects.values, around: [0], arounds: arounds.values };
    for (const { head } of runs) {
        const packageOf = head.frames.packages.map(packages.place);
        const objectOf = head.frames.libraries.map(objects.place);
        const aroundOf = head.frames.arounds.map(arounds.place);
        for (let frame = 1; frame < head.frames.label.length; frame++) {
            frames.label.push(head.frames.label[frame]);
            frames.type.push(head.frames.type[frame]);
            frames.package.push(packageOf[head.frames.package[frame]]);
            frames.library.push(objectOf[head.frames.library[frame]]);
            frames.around.push(aroundOf[head.frames.around[frame]]);
        }
    }
    return frames;
}

/** @param {Parts[]} parts @param {Shared} shared */
function cellsOf(parts, { first, placesOf }) {
    /** @type {(what: keyof Cells, of: (value: number, i: number) => number) => Uint32Array} */
    const each = (what, of) => joined(parts.map((part, i) => part.cells[what].map((value) => of(value, i))));
    const named = /** @type {const} */ (['kind', 'owner', 'role', 'library', 'thread', 'line', 'through']);
    const cells = /** @type {Cells} */ (Object.fromEntries(named.map((what) => [what, each(what, (place, i) => placesOf[i][what][place])])));
    cells.node = each('node', (node, i) => (node ? node - 1 + first.node[i] : 0));
    cells.process = each('process', (_, i) => i);
    for (const what of /** @type {const} */ (['places', 'inherited', 'chosen'])) cells[what] = each(what, (value) => value);
    return cells;
}

/** Changes at each step. @param {Run[]} runs @param {Step[]} order @param {number[]} firstCell by run @returns {import('./parts.js').Rows} */
function rowsOf(runs, order, firstCell) {
    const begin = [0];
    /** @type {number[][]} */
    const [cells, bytes, blocks, allocated] = [[], [], [], []];
    for (const { run, moment } of order) {
        const { rows, cells: { inherited } } = runs[run].parts;
        const add = (/** @type {number} */ cell, /** @type {number} */ nBytes, /** @type {number} */ nBlocks, /** @type {number} */ nAllocated) => {
            cells.push(cell + firstCell[run]);
            bytes.push(nBytes);
            blocks.push(nBlocks);
            allocated.push(nAllocated);
        };
        if (moment >= 0) {
            for (let row = rows.begin[moment]; row < rows.begin[moment + 1]; row++) {
                if (!inherited[rows.cell[row]]) add(rows.cell[row], rows.bytes[row], rows.blocks[row], rows.allocated[row]);
            }
        } else {
            const left = runs[run].at(runs[run].moments.length - 1);
            for (let cell = 0; cell < runs[run].nCells; cell++) {
                if (!inherited[cell] && (left.bytes[cell] || left.blocks[cell])) add(cell, -left.bytes[cell], -left.blocks[cell], 0);
            }
        }
        begin.push(cells.length);
    }
    return { begin: Uint32Array.from(begin), cell: Uint32Array.from(cells), bytes: Float64Array.from(bytes), blocks: Float64Array.from(blocks), allocated: Float64Array.from(allocated) };
}

/** @param {Parts[]} parts @param {Shared} shared */
const blocksOf = (parts, { offset, first }) => ({
    begin: Float64Array.from(parts.flatMap((part, i) => Array.from(part.blocks.begin, (time) => time + offset[i]))),
    end: Float64Array.from(parts.flatMap((part, i) => Array.from(part.blocks.end, (time) => (time ? time + offset[i] : 0)))),
    bytes: Float64Array.from(parts.flatMap((part) => Array.from(part.blocks.bytes))),
    address: BigUint64Array.from(parts.flatMap((part) => Array.from(part.blocks.address))),
    cell: Uint32Array.from(parts.flatMap((part, i) => Array.from(part.blocks.cell, (cell) => cell + first.cell[i]))),
});

/** @param {RunHead[]} heads */
function withoutSize(heads) {
    /** @type {Map<string, number>} */
    const sums = new Map();
    for (const [noun, n] of heads.flatMap((head) => head.without_size)) sums.set(noun, (sums.get(noun) ?? 0) + n);
    return [...sums];
}

/** Events of all runs, on the common clock. @param {RunHead[]} heads @param {number[]} offset */
const eventsOf = (heads, offset) => ({
    marks: heads.flatMap((head, i) => head.marks.map((mark) => ({ ...mark, time: mark.time + offset[i] }))),
    regions: heads.flatMap((head, i) => head.regions.map((region) => ({ ...region, begin: region.begin + offset[i], end: region.end === null ? null : region.end + offset[i] }))),
    scopes: heads.flatMap((head, i) => head.scopes.map((scope) => ({ ...scope, begin: scope.begin + offset[i], end: scope.end + offset[i] }))),
    scope_sums: heads.flatMap((head) => head.scope_sums),
    failures: heads.flatMap((head) => head.failures),
    counters: heads.flatMap((head) => head.counters.map(([key, n]) => /** @type {[string, number]} */ ([`${key} (pid ${head.pid})`, n]))),
    without_size: withoutSize(heads),
});

/** @param {RunHead[]} heads */
function countsOf(heads) {
    const total = (/** @type {(head: RunHead) => number} */ of) => heads.reduce((n, head) => n + of(head), 0);
    return {
        nodes: total((head) => head.nodes),
        events_left_out: total((head) => head.events_left_out),
        scopes_left_out: /** @type {[number, number]} */ ([total((head) => head.scopes_left_out[0]), total((head) => head.scopes_left_out[1])]),
        blocks_left_out: /** @type {[number, number]} */ ([total((head) => head.blocks_left_out[0]), Math.max(...heads.map((head) => head.blocks_left_out[1]))]),
    };
}

/** Head of the sum. @param {Run[]} runs @param {Shared} shared @param {import('./data.js').Together} together @returns {RunHead} */
function headOf(runs, { offset, first, kinds, owners, roles, libraries, threads, lines, through }, together) {
    const heads = runs.map((run) => run.head);
    return {
        ...heads[0],
        ...countsOf(heads),
        ...eventsOf(heads, offset),
        pid: 'all',
        key: 'all',
        command: `all ${runs.length} processes`,
        end_time: null,
        mapped: [],
        sizes: null,
        temporaries: heads.flatMap((head) => head.temporaries),
        kinds,
        owners,
        roles,
        libraries,
        threads,
        lines: {
            label: lines.map((line) => line[0]),
            path: lines.map((line) => line[1]),
            function: lines.map((line) => line[2]),
            source: lines.map((line) => line[3]),
            around: lines.map((line) => line[4]),
            changed: [...new Set(heads.flatMap((head) => head.lines.changed))],
            through,
        },
        frames: framesOf(runs),
        peaks: {},
        at: { first: -1, peak: -1, end: -1 },
        // Each process has its own; what is elsewhere of one is another's.
        balances: [],
        others: [],
        overlay: '',
        reports: [],
        oom: { incidents: [], not_shown: 0, over_time: { time: [], reserved: [], free: [], largest_hole: [] } },
        facts: heads.map((head) => /** @type {[string, string]} */ ([`Process ${head.pid}`, head.command])),
        manifest: [],
        notes: [...new Set([...(together.no_clock ? [`No common clock: ${together.no_clock}.`] : []), ...heads.flatMap((head) => head.notes)])],
        truncation: '',
        is_complete: heads.every((head) => head.is_complete),
    };
}

/** @param {Run[]} runs of one program's processes, or of its ranks @param {import('./data.js').Together} together */
export function sum(runs, together) {
    const parts = runs.map((run) => run.parts);
    const all = shared(runs);
    const order = steps(runs, all.offset);
    const whole = new Run({
        head: headOf(runs, all, together),
        processes: parts.flatMap((part) => part.processes),
        nodes: nodesOf(runs, all),
        cells: cellsOf(parts, all),
        moments: {
            time: Float64Array.from(order, (step) => step.clock),
            id: Float64Array.from(order, (step) => (step.moment < 0 ? 0 : runs[step.run].moments[step.moment].id)),
            reason: order.map((step) => (step.moment < 0 ? 'ended' : runs[step.run].moments[step.moment].reason)),
        },
        rows: rowsOf(runs, order, all.first.cell),
        blocks: blocksOf(parts, all),
        outline: {
            time: Float64Array.from(together.time),
            host: Float64Array.from(together.host),
            device: Float64Array.from(together.device),
            maximum: Float64Array.from(together.maximum),
        },
        // Files that several have mapped are in memory once, so the processes' figures do not add up.
        mapped: { begin: new Uint32Array(1), name: new Uint32Array(0), figures: [] },
        // All ran on one machine, which the first has seen for longest.
        machine: parts[0].machine.filter((figure) => !figure.isOfProcess),
        together,
    });
    order.forEach((step, i) => (whole.moments[i].name += ` of ${runs[step.run].head.pid}`));
    findPeaks(whole, together);
    if (whole.head.at.peak >= 0) whole.moments[whole.head.at.peak].name = 'peak';
    return whole;
}

/** @typedef {import('./run.js').Moment} Moment */

/**
 * The moment that stands for a time of the common clock, as analysis/processes.py has it: of those of this very millisecond
 * the fullest, else the last one before. @param {Moment[]} moments @param {number} time @param {(moment: Moment) => number} figure
 */
function momentAt(moments, time, figure) {
    const here = moments.filter((moment) => moment.time === time);
    if (here.length) return fullest(here, figure);
    return moments.filter((moment) => moment.time < time).at(-1) ?? moments[0];
}

/** @param {Moment[]} moments @param {(moment: Moment) => number} figure */
const fullest = (moments, figure) => moments.reduce((best, moment) => (figure(moment) > figure(best) ? moment : best), moments[0]);

/** @param {Run} run @param {import('./data.js').Together} together */
function findPeaks(run, together) {
    /** @type {Record<string, (moment: Moment) => number>} */
    const figures = { total: (moment) => moment.host + moment.device, host: (moment) => moment.host, device: (moment) => moment.device };
    for (const [which, figure] of Object.entries(figures)) {
        const top = together.no_clock ? fullest(run.moments, figure) : momentAt(run.moments, together.peaks[which].time, figure);
        if (top) run.head.peaks[which] = { moment: top.index, time: top.time, host: top.host, device: top.device };
    }
    const main = run.head.is_discrete ? (run.head.peaks.device?.device ? 'device' : 'host') : 'total';
    run.head.at.peak = run.head.at.first = run.head.peaks[main]?.moment ?? -1;
    run.head.at.end = -1;
}
