// SPDX-License-Identifier: GPL-2.0-or-later
//
// Several processes as one run, on the clock of the first. The cells stand side by side, so any view works on the sum; at
// each moment of any process the others hold what they held last, and nothing before their start or after their end. What
// a forked process inherited, and still holds, counts once: with its parent.

import { Run } from './run.js';

/** @typedef {import('./run.js').Parts} Parts */
/** @typedef {import('./data.js').RunHead} RunHead */

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

/** @param {Run[]} runs @param {number[]} offset @returns {Step[]} */
function steps(runs, offset) {
    /** @type {Step[]} */
    const found = [];
    runs.forEach((run, i) => {
        for (const { index: moment, time } of run.moments) found.push({ clock: time + offset[i], run: i, moment });
        const end = run.head.end_time;
        if (end !== null && run.moments.length) found.push({ clock: end + offset[i], run: i, moment: -1 });
    });
    // Of one process they stay in order.
    return found.sort((a, b) => a.clock - b.clock || a.run - b.run);
}

/** @param {Run[]} runs of one program's processes, or of its ranks @param {import('./data.js').Together} together */
export function sum(runs, together) {
    const offset = runs.map((run) => run.head.offset);
    const parts = runs.map((run) => run.parts);
    const first = runs[0].head;

    const kinds = index((/** @type {import('./data.js').Kind} */ kind) => kind.name);
    const owners = index((/** @type {import('./data.js').Owner} */ owner) => owner.name);
    const roles = index((/** @type {string} */ role) => role);
    const libraries = index((/** @type {string} */ library) => library);
    const lines = index((/** @type {string[]} */ line) => JSON.stringify(line.slice(0, 3)));
    const placesOf = runs.map(({ head }) => ({
        kind: head.kinds.map(kinds.place),
        owner: head.owners.map(owners.place),
        role: head.roles.map(roles.place),
        library: head.libraries.map(libraries.place),
        line: head.lines.label.map((label, i) => lines.place([label, head.lines.path[i], head.lines.function[i], head.lines.source[i]])),
    }));

    // Every trie has its root at 0, and every table of frames has no frame there: these become one.
    const firstCell = [0];
    const firstNode = [1];
    const firstFrame = [1];
    runs.forEach((run, i) => {
        firstCell.push(firstCell[i] + run.nCells);
        firstNode.push(firstNode[i] + run.nodes.parent.length - 1);
        firstFrame.push(firstFrame[i] + run.head.frames.label.length - 1);
    });
    const nodes = {
        parent: joined([Uint32Array.of(0), ...runs.map((run, i) => run.nodes.parent.subarray(1).map((parent) => (parent ? parent - 1 + firstNode[i] : 0)))]),
        frame: joined([Uint32Array.of(0), ...runs.map((run, i) => run.nodes.frame.subarray(1).map((frame) => (frame ? frame - 1 + firstFrame[i] : 0)))]),
    };
    const packages = index((/** @type {string} */ name) => name);
    const objects = index((/** @type {string} */ name) => name);
    packages.place('');
    objects.place('');
    /** @type {import('./data.js').Frames} */
    const frames = { label: [''], type: [''], package: [0], library: [0], line: [0], packages: packages.values, libraries: objects.values };
    for (const { head } of runs) {
        const packageOf = head.frames.packages.map(packages.place);
        const objectOf = head.frames.libraries.map(objects.place);
        for (let frame = 1; frame < head.frames.label.length; frame++) {
            frames.label.push(head.frames.label[frame]);
            frames.type.push(head.frames.type[frame]);
            frames.package.push(packageOf[head.frames.package[frame]]);
            frames.library.push(objectOf[head.frames.library[frame]]);
            frames.line.push(head.frames.line[frame]);
        }
    }
    const cells = {
        node: joined(parts.map((part, i) => part.cells.node.map((node) => (node ? node - 1 + firstNode[i] : 0)))),
        kind: joined(parts.map((part, i) => part.cells.kind.map((place) => placesOf[i].kind[place]))),
        owner: joined(parts.map((part, i) => part.cells.owner.map((place) => placesOf[i].owner[place]))),
        role: joined(parts.map((part, i) => part.cells.role.map((place) => placesOf[i].role[place]))),
        library: joined(parts.map((part, i) => part.cells.library.map((place) => placesOf[i].library[place]))),
        line: joined(parts.map((part, i) => part.cells.line.map((place) => placesOf[i].line[place]))),
        process: joined(parts.map((part, i) => part.cells.process.map(() => i))),
        places: joined(parts.map((part) => part.cells.places)),
        inherited: joined(parts.map((part) => part.cells.inherited)),
    };

    const order = steps(runs, offset);
    const begin = [0];
    /** @type {number[]} */
    const rowCell = [];
    /** @type {number[]} */
    const rowBytes = [];
    /** @type {number[]} */
    const rowBlocks = [];
    /** @type {number[]} */
    const rowAllocated = [];
    for (const { run, moment } of order) {
        const { rows, cells: { inherited } } = parts[run];
        if (moment >= 0) {
            for (let row = rows.begin[moment]; row < rows.begin[moment + 1]; row++) {
                if (inherited[rows.cell[row]]) continue;
                rowCell.push(rows.cell[row] + firstCell[run]);
                rowBytes.push(rows.bytes[row]);
                rowBlocks.push(rows.blocks[row]);
                rowAllocated.push(rows.allocated[row]);
            }
        } else {
            const left = runs[run].at(runs[run].moments.length - 1);
            for (let cell = 0; cell < runs[run].nCells; cell++) {
                if (inherited[cell] || (!left.bytes[cell] && !left.blocks[cell])) continue;
                rowCell.push(cell + firstCell[run]);
                rowBytes.push(-left.bytes[cell]);
                rowBlocks.push(-left.blocks[cell]);
                rowAllocated.push(0);
            }
        }
        begin.push(rowCell.length);
    }

    // What the processes held together is known in full at their moments only, so its fullest moment stands for the peak.
    const whole = new Run({
        head: {
            ...first,
            pid: 'all',
            command: `all ${runs.length} processes`,
            end_time: null,
            answers: {},
            mapped: [],
            temporaries: runs.flatMap((run, i) => run.head.temporaries.map((row) => ({ ...row, cell: row.cell + firstCell[i] }))),
            kinds: kinds.values,
            owners: owners.values,
            roles: roles.values,
            libraries: libraries.values,
            lines: {
                label: lines.values.map((line) => line[0]),
                path: lines.values.map((line) => line[1]),
                function: lines.values.map((line) => line[2]),
                source: lines.values.map((line) => line[3]),
                changed: [...new Set(runs.flatMap((run) => run.head.lines.changed))],
            },
            frames,
            accounts: runs.reduce((n, run) => n + run.head.accounts, 0),
            nodes: runs.reduce((n, run) => n + run.head.nodes, 0),
            peaks: {},
            at: { peak: -1, end: -1, before_clean_up: -1, exit: -1 },
            // Each process has its own; what is elsewhere of one is another's.
            books: [],
            exhaustion: { incidents: [], untold: 0, over_time: { time: [], reserved: [], free: [], largest_hole: [] } },
            marks: runs.flatMap((run, i) => run.head.marks.map((mark) => ({ ...mark, time: mark.time + offset[i] }))),
            regions: runs.flatMap((run, i) =>
                run.head.regions.map((region) => ({ ...region, begin: region.begin + offset[i], end: region.end === null ? null : region.end + offset[i] })),
            ),
            events_left_out: runs.reduce((n, run) => n + run.head.events_left_out, 0),
            scopes: runs.flatMap((run, i) => run.head.scopes.map((scope) => ({ ...scope, begin: scope.begin + offset[i], end: scope.end + offset[i] }))),
            scopes_left_out: [runs.reduce((n, run) => n + run.head.scopes_left_out[0], 0), runs.reduce((n, run) => n + run.head.scopes_left_out[1], 0)],
            scope_sums: runs.flatMap((run) => run.head.scope_sums),
            blocks_left_out: [runs.reduce((n, run) => n + run.head.blocks_left_out[0], 0), Math.max(...runs.map((run) => run.head.blocks_left_out[1]))],
            failures: runs.flatMap((run) => run.head.failures),
            counters: runs.flatMap((run) => run.head.counters.map(([key, n]) => /** @type {[string, number]} */ ([`${key} (pid ${run.head.pid})`, n]))),
            facts: runs.map((run) => /** @type {[string, string]} */ ([`Process ${run.head.pid}`, run.head.command])),
            manifest: [],
            notes: [...new Set([...(together.no_clock ? [`No common clock: ${together.no_clock}.`] : []), ...runs.flatMap((run) => run.head.notes)])],
            truncation: '',
            is_complete: runs.every((run) => run.head.is_complete),
        },
        processes: parts.flatMap((part) => part.processes),
        nodes,
        cells,
        moments: {
            time: Float64Array.from(order, (step) => step.clock),
            id: Float64Array.from(order, (step) => (step.moment < 0 ? 0 : runs[step.run].moments[step.moment].id)),
            reason: order.map((step) => (step.moment < 0 ? 'ended' : runs[step.run].moments[step.moment].reason)),
        },
        rows: {
            begin: Uint32Array.from(begin),
            cell: Uint32Array.from(rowCell),
            bytes: Float64Array.from(rowBytes),
            blocks: Float64Array.from(rowBlocks),
            allocated: Float64Array.from(rowAllocated),
        },
        blocks: {
            begin: Float64Array.from(parts.flatMap((part, i) => Array.from(part.blocks.begin, (time) => time + offset[i]))),
            end: Float64Array.from(parts.flatMap((part, i) => Array.from(part.blocks.end, (time) => (time ? time + offset[i] : 0)))),
            bytes: Float64Array.from(parts.flatMap((part) => Array.from(part.blocks.bytes))),
            address: BigUint64Array.from(parts.flatMap((part) => Array.from(part.blocks.address))),
            cell: Uint32Array.from(parts.flatMap((part, i) => Array.from(part.blocks.cell, (cell) => cell + firstCell[i]))),
        },
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
    findPeaks(whole);
    if (whole.head.at.peak >= 0) whole.moments[whole.head.at.peak].name = 'peak';
    return whole;
}

/** @param {Run} run */
function findPeaks(run) {
    /** @type {Record<string, (moment: import('./run.js').Moment) => number>} */
    const figures = { total: (moment) => moment.host + moment.device, host: (moment) => moment.host, device: (moment) => moment.device };
    for (const [which, figure] of Object.entries(figures)) {
        const top = run.moments.reduce((best, moment) => (figure(moment) > figure(best) ? moment : best), run.moments[0]);
        if (top) run.head.peaks[which] = { moment: top.index, time: top.time, host: top.host, device: top.device };
    }
    const main = run.head.is_discrete ? (run.head.peaks.device?.device ? 'device' : 'host') : 'total';
    run.head.at.peak = run.head.peaks[main]?.moment ?? -1;
    run.head.at.end = -1;
}
