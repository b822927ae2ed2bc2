// SPDX-License-Identifier: GPL-2.0-or-later
//
// The arrays of a run: cells, moments, and changes in between; blocks, outline, machine, mapped memory.
//
// A cell is memory that the page keeps as one: one node of the trie of stacks, one kind, owner, role, library and
// Python line. A moment is a snapshot or a peak.

/** @typedef {import('./data.js').RunData} RunData */
/** @typedef {import('./data.js').RunHead} RunHead */
/** @typedef {'bytes'|'blocks'|'allocated'} Measure live bytes, live blocks, all bytes ever allocated */
/** @typedef {{node: Uint32Array, kind: Uint32Array, owner: Uint32Array, role: Uint32Array, library: Uint32Array, thread: Uint32Array, line: Uint32Array, through: Uint32Array, process: Uint32Array, places: Uint32Array, inherited: Uint32Array, chosen: Uint32Array}} Cells */
/** @typedef {{begin: Uint32Array, cell: Uint32Array, bytes: Float64Array, blocks: Float64Array, allocated: Float64Array}} Rows */
/** @typedef {{begin: Float64Array, end: Float64Array, bytes: Float64Array, address: BigUint64Array, cell: Uint32Array, came?: Float64Array, went?: Float64Array}} Blocks */
/** @typedef {{time: Float64Array, host: Float64Array, device: Float64Array, maximum: Float64Array}} Outline */
/** @typedef {{parent: Uint32Array, frame: Uint32Array}} Nodes */
/** Mapped memory, by moment and name: `figures` are those of MAPPED, by row. @typedef {{begin: Uint32Array, name: Uint32Array, figures: Float64Array[]}} MappedRows */
/** @typedef {{resident: number, virtual: number, shared: number, swapped: number}} MappedFigures bytes */
/** A figure of the machine: from each time on, so many bytes. @typedef {{label: string, wantsMuch: boolean, isOfProcess: boolean, beside: string, time: Float64Array, bytes: Float64Array}} Figure */

/**
 * Memory by cell and moment.
 * @typedef {object} HeldParts
 * @property {RunHead} head
 * @property {string[]} processes the processes' names; one, but for a sum
 * @property {Nodes} nodes
 * @property {Cells} cells
 * @property {{time: Float64Array, id: Float64Array, reason: string[]}} moments
 * @property {Rows} rows
 */
/**
 * All other records.
 * @typedef {object} OtherParts
 * @property {Blocks} blocks
 * @property {Outline} outline
 * @property {Figure[]} machine
 * @property {MappedRows} mapped
 * @property {import('./data.js').Together} [together] of a sum
 * @property {Measure[]} [measures] what is known of cells (all, if left out)
 */
/** @typedef {HeldParts & OtherParts} Parts */

export const MAPPED = /** @type {(keyof MappedFigures)[]} */ (['resident', 'virtual', 'shared', 'swapped']);

/** @param {Float64Array} column */
const whole = (column) => Uint32Array.from(column);

/** @param {Float64Array} rowsOf by moment */
function bounds(rowsOf) {
    const begin = new Uint32Array(rowsOf.length + 1);
    for (let i = 0; i < rowsOf.length; i++) begin[i + 1] = begin[i] + rowsOf[i];
    return begin;
}

/** @param {RunData} data @returns {Figure[]} */
function machineOf({ head, column }) {
    const [time, bytes] = [column('machine.time'), column('machine.bytes')];
    let end = 0;
    return head.machine.map(({ label, rows, wants_much, is_of_process, beside }) => {
        const begin = end;
        end += rows;
        return { label, wantsMuch: wants_much, isOfProcess: is_of_process, beside, time: time.subarray(begin, end), bytes: bytes.subarray(begin, end) };
    });
}

/** @param {RunData} data @returns {HeldParts} */
export function heldParts({ head, column }) {
    const begin = bounds(column('moment.rows'));
    const steps = column('row.cell');
    const cell = new Uint32Array(steps.length);
    for (let moment = 0; moment + 1 < begin.length; moment++) {
        for (let row = begin[moment], at = 0; row < begin[moment + 1]; row++) cell[row] = at += steps[row];
    }
    const bytes = column('row.bytes');
    // Beyond what the live bytes grew by.
    const allocated = column('row.allocated').map((beyond, row) => beyond + Math.max(0, bytes[row]));
    const names = ['node', 'kind', 'owner', 'role', 'library', 'thread', 'line', 'through', 'places', 'inherited'];
    const cells = /** @type {Cells} */ (Object.fromEntries(names.map((name) => [name, whole(column(`cell.${name}`))])));
    cells.process = new Uint32Array(cells.node.length);
    cells.chosen = head.filter ? whole(column('cell.chosen')) : new Uint32Array(0);
    return {
        head,
        processes: [`${head.pid || '?'} ${head.command}`.trim()],
        nodes: { parent: whole(column('node.parent')), frame: whole(column('node.frame')) },
        cells,
        moments: { time: column('moment.time'), id: column('moment.id'), reason: Array.from(column('moment.reason'), (place) => head.reasons[place]) },
        rows: { begin, cell, bytes, blocks: column('row.blocks'), allocated },
    };
}

/** Of what has no time. @returns {OtherParts} */
export function noOtherParts() {
    const numbers = new Float64Array(0);
    return {
        blocks: { begin: numbers, end: numbers, bytes: numbers, address: new BigUint64Array(0), cell: new Uint32Array(0) },
        outline: { time: numbers, host: numbers, device: numbers, maximum: numbers },
        machine: [],
        mapped: { begin: new Uint32Array(1), name: new Uint32Array(0), figures: MAPPED.map(() => numbers) },
    };
}

/** @param {RunData} data @returns {Parts} */
export function partsOf(data) {
    const { column, addresses } = data;
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
        },
        outline: { time: column('timeline.time'), host: column('timeline.host'), device: column('timeline.device'), maximum: column('timeline.maximum') },
        machine: machineOf(data),
        mapped: { begin: bounds(column('mapped.rows')), name: whole(column('mapped.name')), figures: MAPPED.map((name) => column(`mapped.${name}`)) },
    };
}
