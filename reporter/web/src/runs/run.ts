// SPDX-License-Identifier: GPL-2.0-or-later
//
// A run as views ask for it: what its cells held at any moment, and sums of them. Everything a view shows is a sum over cells
// at a moment, so views agree.

import { moment as time } from '../base/units.js';
import { MAPPED, type MappedFigures, type Measure, type Parts } from './parts.js';

export type Dimension = 'owner' | 'group' | 'kind' | 'library' | 'role' | 'thread' | 'line' | 'process' | 'site';
export type Side = 'host' | 'device';
export type Moment = { index: number; time: number; id: number; reason: string; name: string; isPeak: boolean; host: number; device: number };
/** By cell. */
export type Held = Record<Measure, Float64Array>;
/** Bytes, but for the blocks. */
export type Sum = { host: number; device: number; hostBlocks: number; deviceBlocks: number; allocated: number; listed: number };

const CACHED = 12;
const SIDES = [
    ['host', 'hostBlocks'],
    ['device', 'deviceBlocks'],
] as const;

/** Name of all moments at which an allocation failed. */
export const FAILED = 'allocation failed';

function nameOf(reason: string, id: number) {
    if (reason === 'peak-total') return 'total peak';
    if (reason.startsWith('peak-')) return `${reason.slice(5)} peak`;
    if (reason === 'ended') return 'end of a process';
    return reason === 'out-of-memory' ? FAILED : `snapshot ${id}`;
}

export const NOTHING: Sum = { host: 0, device: 0, hostBlocks: 0, deviceBlocks: 0, allocated: 0, listed: 0 };

let nRuns = 0;

export class Run {
    /** Tells the views of this run from those of another. */
    readonly number = nRuns++;
    #cache = new Map<number, Held>();
    #dimensions = new Map<Dimension, { names: string[]; of: Uint32Array }>();
    readonly parts;
    readonly head;
    readonly cells;
    readonly nodes;
    readonly blocks;
    readonly outline;
    readonly measures: Measure[];
    readonly nCells: number;
    /** By cell: 0 host, 1 device, 2 listed, not counted. */
    readonly side: Uint8Array;
    readonly moments: Moment[] = [];

    constructor(parts: Parts) {
        this.parts = parts;
        this.head = parts.head;
        this.cells = parts.cells;
        this.nodes = parts.nodes;
        this.blocks = parts.blocks;
        this.outline = parts.outline;
        this.measures = parts.columns ? ['bytes', 'blocks'] : ['bytes', 'blocks', 'allocated'];
        this.nCells = parts.cells.node.length;
        this.side = Uint8Array.from(parts.cells.kind, (kind) => ({ host: 0, device: 1, '': 2 })[parts.head.kinds[kind].side]);
        this.#describeMoments();
    }

    #describeMoments() {
        const { rows, moments } = this.parts;
        const sums = [0, 0, 0];
        for (let index = 0; index < moments.time.length; index++) {
            for (let row = rows.begin[index]; row < rows.begin[index + 1]; row++) {
                sums[this.side[rows.cell[row]]] += rows.bytes[row];
            }
            const reason = moments.reason[index];
            const id = moments.id[index];
            const isPeak = reason.startsWith('peak-');
            const name = index === this.head.at.peak ? 'peak' : nameOf(reason, id);
            this.moments.push({ index, time: moments.time[index], id, reason, name, isPeak, host: sums[0], device: sums[1] });
        }
    }

    /** Memory of each cell at a moment, and all allocated by then. Read only. */
    at(moment: number): Held {
        const cached = this.#cache.get(moment);
        if (cached) return cached;
        const { begin, cell, ...rows } = this.parts.rows;
        const distance = (known: number) => Math.abs(begin[known + 1] - begin[moment + 1]);
        const from = [...this.#cache.keys()].reduce((best, known) => (distance(known) < distance(best) ? known : best), -1);
        const held = { bytes: new Float64Array(this.nCells), blocks: new Float64Array(this.nCells), allocated: new Float64Array(this.nCells) };
        const [first, last] = [begin[Math.min(from, moment) + 1], begin[Math.max(from, moment) + 1]];
        const sign = from < moment ? 1 : -1;
        for (const measure of ['bytes', 'blocks', 'allocated'] as const) held[measure].set(this.#cache.get(from)?.[measure] ?? []);
        for (let row = first; row < last; row++) {
            const at = cell[row];
            held.bytes[at] += sign * rows.bytes[row];
            held.blocks[at] += sign * rows.blocks[row];
            held.allocated[at] += sign * rows.allocated[row];
        }
        for (const oldest of this.#cache.keys()) if (this.#cache.size >= CACHED) this.#cache.delete(oldest);
        this.#cache.set(moment, held);
        return held;
    }

    /** The names of a dimension, and which of them each cell has. */
    dimension(dimension: Dimension) {
        const found = this.#dimensions.get(dimension) ?? this.#describe(dimension);
        this.#dimensions.set(dimension, found);
        return found;
    }

    #describe(dimension: Dimension): { names: string[]; of: Uint32Array } {
        const { head, cells } = this;
        if (dimension === 'site') {
            const places = new Map<string, number>();
            const of = cells.node.map((_, cell) => {
                const site = this.site(cell);
                if (!places.has(site)) places.set(site, places.size);
                return places.get(site) ?? 0;
            });
            return { names: [...places.keys()], of };
        }
        const names = {
            owner: head.owners.map(({ name }) => name),
            group: head.groups,
            kind: head.kinds.map(({ name }) => name),
            library: head.libraries,
            role: head.roles.map((role) => role || '(no tensor)'),
            thread: head.threads,
            line: head.lines.label,
            process: this.parts.processes,
        }[dimension];
        if (dimension !== 'group') return { names, of: cells[dimension] };
        return { names, of: cells.owner.map((owner) => names.indexOf(head.owners[owner].group)) };
    }

    /** Adds what a cell holds to a sum. */
    count(sum: Sum, held: Held, cell: number) {
        if (this.side[cell] === 2) sum.listed += held.bytes[cell];
        else {
            const [bytes, blocks] = SIDES[this.side[cell]];
            sum[bytes] += held.bytes[cell];
            sum[blocks] += held.blocks[cell];
            sum.allocated += held.allocated[cell];
        }
    }

    /** The sums of a dimension's names at a moment. */
    sums(dimension: Dimension, moment: number): Sum[] {
        const { names, of } = this.dimension(dimension);
        const held = this.at(moment);
        const sums = names.map(() => ({ ...NOTHING }));
        for (let cell = 0; cell < this.nCells; cell++) this.count(sums[of[cell]], held, cell);
        return sums;
    }

    /** Totals of each Python line at a moment: itself, and all lines that it called. */
    totals(moment: number): Sum[] {
        const { lines } = this.head;
        const { bytes } = this.at(moment);
        const sums = lines.label.map(() => ({ ...NOTHING }));
        for (let cell = 0; cell < this.nCells; cell++) {
            if (this.side[cell] === 2 || !bytes[cell]) continue;
            for (const line of lines.through[this.cells.through[cell]]) sums[line][this.side[cell] ? 'device' : 'host'] += bytes[cell];
        }
        return sums;
    }

    /** By name of a dimension, its bytes at every moment. */
    series(dimension: Dimension, side: 'both' | Side) {
        const { names, of } = this.dimension(dimension);
        const { rows } = this.parts;
        const n = this.moments.length;
        const wanted = [side !== 'device', side !== 'host', false];
        const now = new Float64Array(names.length);
        const series = names.map(() => new Float64Array(n));
        for (let moment = 0; moment < n; moment++) {
            for (let row = rows.begin[moment]; row < rows.begin[moment + 1]; row++) {
                const cell = rows.cell[row];
                if (wanted[this.side[cell]]) now[of[cell]] += rows.bytes[row];
            }
            for (let name = 0; name < names.length; name++) series[name][moment] = now[name];
        }
        return series;
    }

    /** Of mapped memory, by name in the head's `mapped`. */
    mapped(moment: number) {
        const { begin, name, figures } = this.parts.mapped;
        const found = this.head.mapped.map((): MappedFigures => ({ resident: 0, virtual: 0, shared: 0, swapped: 0 }));
        for (let row = 0; row < (begin[moment + 1] ?? 0); row++) MAPPED.forEach((figure, i) => (found[name[row]][figure] = figures[i][row]));
        return found;
    }

    /** The frames of a cell's stack, innermost first, by their places in the head. */
    frames(cell: number) {
        const frames = [];
        for (let node = this.cells.node[cell]; node; node = this.nodes.parent[node]) frames.push(this.nodes.frame[node]);
        return frames;
    }

    /** Labels of a cell's stack. */
    stack(cell: number) {
        return this.frames(cell).map((frame) => this.head.frames.label[frame]);
    }

    /** The line of Python that a cell's memory is due to; "" where there is none. */
    line(cell: number) {
        const { path, label } = this.head.lines;
        return path[this.cells.line[cell]] ? label[this.cells.line[cell]] : '';
    }

    /** That line, else the first frame that is not the recorder's own. */
    site(cell: number) {
        return this.line(cell) || this.stack(cell).find((label) => !label.includes('vgpreload_')) || '(no stack)';
    }

    /** The source around a frame's line; '' where there is none. */
    around(frame: number) {
        const { around, arounds } = this.head.frames;
        return arounds[around[frame]] ?? '';
    }

    /** Label of a moment: "peak, 2.61 s". A failure has its own time, shortly before that of its snapshot. */
    label(index: number) {
        const { columns } = this.parts;
        if (columns) return columns[index];
        const failure = this.head.reports?.find(({ name }) => name === 'the failure');
        if (failure?.moment === index) return `failure, ${failure.when.split(', ').at(-1)}`;
        return `${this.moments[index].name}, ${time(this.moments[index].time, this.head.unit)}`;
    }

    /** The moment of the first screen, with which the page opens. */
    get mainMoment() {
        return Math.max(0, this.head.at.first);
    }

    /** True if any memory of a side was ever in use. */
    uses(side: Side) {
        return this.moments.some((moment) => moment[side] > 0) || this.outline[side].some((bytes) => bytes > 0);
    }
}
