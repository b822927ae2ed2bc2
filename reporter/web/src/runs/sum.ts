// SPDX-License-Identifier: GPL-2.0-or-later
//
// Several processes as one run, on their common clock. The cells stand side by side, so any view works on the sum. The order of the
// processes' moments comes with the data; what a forked process inherited, and still holds, counts once: with its parent.

import { countUpTo } from '../base/search.js';
import type { RunData, Together } from './data.js';
import type { Cells, Parts } from './parts.js';
import { Run } from './run.js';

/** A float for each row of all columns, in order. */
const numbers = (columns: Float64Array[]) => Float64Array.from(columns.flatMap((column) => [...column]));
const wholes = (columns: Uint32Array[]) => Uint32Array.from(columns.flatMap((column) => [...column]));

/** Where the rows of each of them begin among those of all. */
const begins = (lengths: number[]) => lengths.map((_, i) => lengths.slice(0, i).reduce((all, n) => all + n, 0));

/** Changes at each step: `process`, and one more than its moment, or 0 at its end. */
function rowsOf(runs: Run[], process: Float64Array, moment: Float64Array, firstCell: number[]) {
    const begin = [0];
    const [cells, bytes, blocks, allocated]: number[][] = [[], [], [], []];
    process.forEach((i, step) => {
        const { parts } = runs[i];
        const add = (cell: number, ...figures: [number, number, number]) => {
            if (parts.cells.inherited[cell]) return;
            cells.push(firstCell[i] + cell);
            [bytes, blocks, allocated].forEach((column, figure) => column.push(figures[figure]));
        };
        const { rows } = parts;
        const at = moment[step] - 1;
        if (at >= 0)
            for (let row = rows.begin[at]; row < rows.begin[at + 1]; row++)
                add(rows.cell[row], rows.bytes[row], rows.blocks[row], rows.allocated[row]);
        else {
            const left = runs[i].at(runs[i].moments.length - 1);
            left.bytes.forEach((held, cell) => (held || left.blocks[cell]) && add(cell, -held, -left.blocks[cell], 0));
        }
        begin.push(cells.length);
    });
    return {
        begin: Uint32Array.from(begin),
        cell: Uint32Array.from(cells),
        bytes: Float64Array.from(bytes),
        blocks: Float64Array.from(blocks),
        allocated: Float64Array.from(allocated),
    };
}

function blocksOf(parts: Parts[], firstCell: number[]) {
    const offsets = parts.map(({ head }) => head.offset);
    const all = parts.map(({ blocks }) => blocks);
    return {
        begin: numbers(all.map(({ begin }, i) => begin.map((time) => time + offsets[i]))),
        end: numbers(all.map(({ end }, i) => end.map((time) => (time ? time + offsets[i] : 0)))),
        bytes: numbers(all.map(({ bytes }) => bytes)),
        address: BigUint64Array.from(all.flatMap(({ address }) => [...address])),
        cell: wholes(all.map(({ cell }, i) => cell.map((at) => at + firstCell[i]))),
    };
}

/**
 * Moments of a sum get the totals of the line over time: sums of shares, where ledgers count a page that several have once for
 * each. A millisecond has one such total, which is that of its fullest moment.
 */
function shareOut({ moments, outline }: Run) {
    for (const side of ['host', 'device'] as const) {
        const fullest = new Map<number, number>();
        for (const { time, [side]: bytes } of moments) fullest.set(time, Math.max(bytes, fullest.get(time) ?? 0));
        for (const moment of moments) {
            const row = countUpTo(outline.time, moment.time) - 1;
            if (row >= 0 && moment[side]) moment[side] = Math.round((moment[side] * outline[side][row]) / (fullest.get(moment.time) ?? 1));
        }
    }
}

/** `data` is that of the sum, and names no cells; `runs` are the processes. */
export function sum({ head, column }: RunData, runs: Run[], together: Together) {
    const parts = runs.map((run) => run.parts);
    const firstCell = begins(runs.map((run) => run.nCells));
    // Every trie has its root at 0: these become one.
    const firstNode = begins(parts.map(({ nodes }) => nodes.parent.length - 1));
    const shifted = (nodes: Uint32Array, i: number) => nodes.map((node) => (node ? node + firstNode[i] : 0));
    const cells = Object.fromEntries(
        (Object.keys(parts[0].cells) as (keyof Cells)[]).map((name) => [name, wholes(parts.map((part) => part.cells[name]))]),
    ) as Cells;
    cells.node = wholes(parts.map((part, i) => shifted(part.cells.node, i)));
    cells.process = wholes(parts.map((part, i) => part.cells.process.map(() => i)));
    const [process, moment] = [column('step.process'), column('step.moment')];
    const [time, host, device, maximum] = ['time', 'host', 'device', 'maximum'].map((name) => column(`timeline.${name}`));
    const whole = new Run({
        head,
        processes: parts.flatMap((part) => part.processes),
        nodes: {
            parent: wholes([Uint32Array.of(0), ...parts.map((part, i) => shifted(part.nodes.parent.subarray(1), i))]),
            frame: wholes([Uint32Array.of(0), ...parts.map((part) => part.nodes.frame.subarray(1))]),
        },
        cells,
        moments: {
            time: column('step.time'),
            id: process.map((i, step) => runs[i].moments[moment[step] - 1]?.id ?? 0),
            reason: Array.from(process, (i, step) => runs[i].moments[moment[step] - 1]?.reason ?? 'ended'),
        },
        rows: rowsOf(runs, process, moment, firstCell),
        blocks: blocksOf(parts, firstCell),
        outline: { time, host, device, maximum },
        // Files that several have mapped are in memory once, so the processes' figures do not add up.
        mapped: { begin: new Uint32Array(1), name: new Uint32Array(0), figures: [] },
        // All ran on one machine, which the first has seen for longest.
        machine: parts[0].machine.filter((figure) => !figure.isOfProcess),
        together,
    });
    whole.moments.forEach((each, step) => {
        if (each.index !== head.at.peak) each.name += ` of ${runs[process[step]].head.pid}`;
    });
    shareOut(whole);
    return whole;
}
