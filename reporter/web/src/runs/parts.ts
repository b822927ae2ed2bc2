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
export type Rows = { begin: Uint32Array; cell: Uint32Array; bytes: Float64Array; blocks: Float64Array; allocated: Float64Array };
export type Blocks = {
    begin: Float64Array;
    end: Float64Array;
    bytes: Float64Array;
    address: BigUint64Array;
    cell: Uint32Array;
    /** Places of the records of its begin and end (plus one; 0: none). */
    came?: Float64Array;
    went?: Float64Array;
    /** 1: its begin is no step of an allocator, 2: its end is none; 3: both. */
    silent?: Uint32Array;
};
export type Outline = { time: Float64Array; host: Float64Array; device: Float64Array; maximum: Float64Array };
export type Nodes = { parent: Uint32Array; frame: Uint32Array };
export const MAPPED = ['resident', 'virtual', 'shared', 'swapped'] as const;
/** Bytes. */
export type MappedFigures = Record<(typeof MAPPED)[number], number>;
/** Mapped memory, by moment and name: `figures` are those of MAPPED, by row. */
export type MappedRows = { begin: Uint32Array; name: Uint32Array; figures: Float64Array[] };
/** A figure of the machine: from each time on, so many bytes. */
export type Figure = {
    label: string;
    wantsMuch: boolean;
    isOfProcess: boolean;
    beside: string;
    time: Float64Array;
    bytes: Float64Array;
};

/** Memory by cell and moment. */
export type HeldParts = {
    head: RunHead;
    /** The processes' names; one, but for a sum. */
    processes: string[];
    nodes: Nodes;
    cells: Cells;
    moments: { time: Float64Array; id: Float64Array; reason: string[] };
    rows: Rows;
};
/** All other records. */
export type OtherParts = {
    blocks: Blocks;
    outline: Outline;
    machine: Figure[];
    mapped: MappedRows;
    /** Of a sum. */
    together?: Together;
    /** What is known of cells: all, if left out. */
    measures?: Measure[];
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
    return head.machine.map(({ label, rows, wants_much, is_of_process, beside }) => {
        const begin = end;
        end += rows;
        return {
            label,
            wantsMuch: wants_much,
            isOfProcess: is_of_process,
            beside,
            time: time.subarray(begin, end),
            bytes: bytes.subarray(begin, end),
        };
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
        moments: {
            time: column('moment.time'),
            id: column('moment.id'),
            reason: Array.from(column('moment.reason'), (place) => head.reasons[place]),
        },
        rows: { begin, cell, bytes, blocks: column('row.blocks'), allocated },
    };
}

/** Of what has no time. */
export function noOtherParts(): OtherParts {
    const numbers = new Float64Array(0);
    return {
        blocks: { begin: numbers, end: numbers, bytes: numbers, address: new BigUint64Array(0), cell: new Uint32Array(0) },
        outline: { time: numbers, host: numbers, device: numbers, maximum: numbers },
        machine: [],
        mapped: { begin: new Uint32Array(1), name: new Uint32Array(0), figures: MAPPED.map(() => numbers) },
    };
}

export function partsOf(data: RunData): Parts {
    const { column, addresses } = data;
    const [time, host, device, maximum] = ['time', 'host', 'device', 'maximum'].map((name) => column(`timeline.${name}`));
    return {
        ...heldParts(data),
        blocks: {
            begin: column('block.begin'),
            end: column('block.end'),
            bytes: column('block.bytes'),
            address: addresses('block.address'),
            cell: whole(column('block.cell')),
            came: column('block.came'),
            went: column('block.went'),
            silent: whole(column('block.silent')),
        },
        outline: { time, host, device, maximum },
        machine: machineOf(data),
        mapped: {
            begin: bounds(column('mapped.rows')),
            name: whole(column('mapped.name')),
            figures: MAPPED.map((name) => column(`mapped.${name}`)),
        },
    };
}
