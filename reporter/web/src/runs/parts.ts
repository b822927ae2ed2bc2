// SPDX-License-Identifier: GPL-2.0-or-later
//
// The arrays of a run: cells, moments, and changes in between; blocks, outline, machine, mapped memory.
//
// A cell is memory that the page keeps as one: one node of the trie of stacks, one kind, owner, role, library and
// Python line. A moment is a snapshot or a peak.

import type { RunData, RunHead, Together } from './data.js';

/** Live bytes, live blocks, all bytes ever allocated. */
export type Measure = 'bytes' | 'blocks' | 'allocated';

const OF_CELLS = ['node', 'kind', 'owner', 'role', 'library', 'thread', 'line', 'through', 'places', 'inherited'] as const;
export type Cells = Record<(typeof OF_CELLS)[number] | 'process' | 'chosen', Uint32Array>;
/** Changes from moment to moment; `begin`: the first row of each. */
export type Rows = Record<'begin' | 'cell', Uint32Array> & Record<Measure, Float64Array>;
export type Blocks = Record<'begin' | 'end' | 'bytes', Float64Array> & { address: BigUint64Array; cell: Uint32Array };
export const MAPPED = ['resident', 'virtual', 'shared', 'swapped'] as const;
/** Bytes. */
export type MappedFigures = Record<(typeof MAPPED)[number], number>;
/** A figure of the machine: from each time on, so many bytes. */
export type Figure = { label: string; worst: number; isOfProcess: boolean } & Record<'time' | 'bytes', Float64Array>;

/** Memory by cell and moment. */
type HeldParts = {
    head: RunHead;
    /** The processes' names; one, but for a sum. */
    processes: string[];
    nodes: Record<'parent' | 'frame', Uint32Array>;
    cells: Cells;
    moments: { time: Float64Array; id: Float64Array; reason: string[] };
    rows: Rows;
};
/** All other records. */
type OtherParts = {
    blocks: Blocks;
    outline: Record<'time' | 'host' | 'device' | 'maximum', Float64Array>;
    machine: Figure[];
    /** By moment and name: `figures` are those of MAPPED, by row. */
    mapped: { begin: Uint32Array; name: Uint32Array; figures: Float64Array[] };
    /** Of a sum. */
    together?: Together;
    /** Of a comparison, whose moments are columns. */
    columns?: string[];
};
export type Parts = HeldParts & OtherParts;

const whole = (column: Float64Array) => Uint32Array.from(column);

/** `rowsOf`: by moment. */
function bounds(rowsOf: Float64Array) {
    const begin = new Uint32Array(rowsOf.length + 1);
    for (let i = 0; i < rowsOf.length; i++) begin[i + 1] = begin[i] + rowsOf[i];
    return begin;
}

function machineOf({ head, column }: RunData): Figure[] {
    const [time, bytes] = [column('machine.time'), column('machine.bytes')];
    let end = 0;
    return head.machine.map(({ label, rows, worst, is_of_process }) => {
        const begin = end;
        end += rows;
        return { label, worst, isOfProcess: is_of_process, time: time.subarray(begin, end), bytes: bytes.subarray(begin, end) };
    });
}

export function heldParts({ head, column }: RunData): HeldParts {
    const begin = bounds(column('moment.rows'));
    const steps = column('row.cell');
    const cell = new Uint32Array(steps.length);
    for (let moment = 0; moment + 1 < begin.length; moment++) {
        for (let row = begin[moment], at = 0; row < begin[moment + 1]; row++) cell[row] = at += steps[row];
    }
    const bytes = column('row.bytes');
    // Beyond what the live bytes grew by.
    const allocated = column('row.allocated').map((beyond, row) => beyond + Math.max(0, bytes[row]));
    const cells = Object.fromEntries(OF_CELLS.map((name) => [name, whole(column(`cell.${name}`))])) as Cells;
    cells.process = new Uint32Array(cells.node.length);
    cells.chosen = head.filter ? whole(column('cell.chosen')) : new Uint32Array(0);
    return {
        head,
        processes: [`${head.pid || '?'} ${head.command}`.trim()],
        nodes: { parent: whole(column('node.parent')), frame: whole(column('node.frame')) },
        cells,
        moments: { time: column('moment.time'), id: column('moment.id'), reason: Array.from(column('moment.reason'), (at) => head.reasons[at]) },
        rows: { begin, cell, bytes, blocks: column('row.blocks'), allocated },
    };
}

/** Of what has no time. */
export function noOtherParts(): OtherParts {
    const none = new Float64Array(0);
    return {
        blocks: { begin: none, end: none, bytes: none, address: new BigUint64Array(0), cell: new Uint32Array(0) },
        outline: { time: none, host: none, device: none, maximum: none },
        machine: [],
        mapped: { begin: new Uint32Array(1), name: new Uint32Array(0), figures: MAPPED.map(() => none) },
    };
}

export function partsOf(data: RunData): Parts {
    const { column, addresses } = data;
    const columns = <T extends string>(group: string, ...names: T[]) =>
        Object.fromEntries(names.map((name) => [name, column(`${group}.${name}`)])) as Record<T, Float64Array>;
    return {
        ...heldParts(data),
        blocks: { ...columns('block', 'begin', 'end', 'bytes'), address: addresses('block.address'), cell: whole(column('block.cell')) },
        outline: columns('timeline', 'time', 'host', 'device', 'maximum'),
        machine: machineOf(data),
        mapped: {
            begin: bounds(column('mapped.rows')),
            name: whole(column('mapped.name')),
            figures: MAPPED.map((name) => column(`mapped.${name}`)),
        },
    };
}
