// SPDX-License-Identifier: GPL-2.0-or-later
//
// A range of a run, from one moment to another: by place, what is new, what was freed, what only passed. The same bounds as those
// of jm_print --from --to (analysis/range_diff.py says why they hold): what was there before is no more than the least that the place
// held at any snapshot since; blocks with records are known one by one; the rest is uncertain.

/** @typedef {import('./run.js').Run} Run */
/** Bytes; `fresh` is what is new. @typedef {{before: number, after: number, fresh: number, freed: number, passing: number, uncertain: number, untold: number}} Flow */

/** @returns {Flow} */
export const nothing = () => ({ before: 0, after: 0, fresh: 0, freed: 0, passing: 0, uncertain: 0, untold: 0 });

/** @param {Flow} sum @param {Flow} flow */
export function add(sum, flow) {
    for (const figure of /** @type {(keyof Flow)[]} */ (Object.keys(sum))) sum[figure] += flow[figure];
}

/** @param {number} before @param {number} after @param {number} least allocated @param {number} most @param {number} lowest @returns {Flow} */
function bounds(before, after, least, most, lowest) {
    const certain = Math.max(least, after - before, 0);
    const possible = Math.max(most, certain);
    const fresh = after - Math.min(before, after, lowest);
    const atMost = Math.max(fresh, Math.min(possible, after));
    const passing = Math.max(0, certain - atMost);
    return { before, after, fresh, freed: before - after + fresh, passing, uncertain: atMost - fresh, untold: possible - atMost - passing };
}

/** Which place each cell is of: those that differ in their tensors' role alone are one, for that may change. @param {Run} run */
function placesOf(run) {
    const { node, kind, owner, library, thread, line, process, inherited, places } = run.cells;
    /** @type {Map<string, number>} */
    const known = new Map();
    return Uint32Array.from(node, (_, cell) => {
        const key = [node[cell], kind[cell], owner[cell], library[cell], thread[cell], line[cell], process[cell], inherited[cell], places[cell] ? 1 : 0].join();
        const place = known.get(key) ?? cell;
        known.set(key, place);
        return place;
    });
}

/** @param {ArrayLike<number>} column @param {Uint32Array} places */
function summed(column, places) {
    const sums = new Float64Array(places.length);
    for (let cell = 0; cell < places.length; cell++) sums[places[cell]] += column[cell];
    return sums;
}

/** The moment itself if it is a snapshot, else the next one in a direction that is; -1 or their number: there is none. @param {Run} run @param {number} moment @param {1|-1} step */
function snapshotFrom(run, moment, step) {
    while (run.moments[moment]?.isPeak) moment += step;
    return moment;
}

/** All that places had allocated by a moment, at least and at most. At peaks it is not told. @param {Run} run @param {Uint32Array} places @param {number} moment */
function allocatedBy(run, places, moment) {
    const column = (/** @type {number} */ at) => (run.moments[at] ? summed(run.at(at).allocated, places) : new Float64Array(places.length));
    const before = snapshotFrom(run, moment, -1);
    const after = snapshotFrom(run, moment, 1);
    return [column(before), column(Math.min(after, run.moments.length - 1))];
}

/** By place: what of it is in blocks with records, at snapshots by their ordinal from 1. @param {Run} run @param {Uint32Array} places */
class Recorded {
    /** @param {Run} run @param {Uint32Array} places */
    constructor(run, places) {
        this.blocks = run.blocks;
        this.places = places;
        this.live = new Float64Array(places.length);
        this.before = new Float64Array(places.length);
        this.fresh = new Float64Array(places.length);
        this.allocated = new Float64Array(places.length);
        /** @type {Map<number, [number, number][]>} by ordinal: places, and how their bytes change */
        this.changes = new Map();
    }

    /** From one snapshot to another. @param {number} first @param {number} second */
    span(first, second) {
        const { cell, bytes, born, died } = this.blocks;
        if (!born || !died) return;
        const note = (/** @type {number} */ ordinal, /** @type {number} */ place, /** @type {number} */ change) => {
            const list = this.changes.get(ordinal) ?? [];
            list.push([place, change]);
            this.changes.set(ordinal, list);
        };
        for (let block = 0; block < cell.length; block++) {
            const place = this.places[cell[block]];
            // It is there from the snapshot after its birth to that before its end; 0: it has none.
            const [from, to] = [born[block] + 1, died[block] || Infinity];
            if (from > second || to <= first) continue;
            if (from <= first) {
                this.live[place] += bytes[block];
                this.before[place] += bytes[block];
            } else {
                this.allocated[place] += bytes[block];
                if (to > from) note(from, place, bytes[block]);
                if (to > second) this.fresh[place] += bytes[block];
            }
            if (to > from && to <= second) note(to, place, -bytes[block]);
        }
    }

    /** Goes on to a snapshot. @param {number} ordinal @param {Set<number>} touched */
    advance(ordinal, touched) {
        for (const [place, change] of this.changes.get(ordinal) ?? []) {
            this.live[place] += change;
            touched.add(place);
        }
    }
}

/** The least that places held at the snapshots from one moment to another: in all, and beside blocks with records. @param {Run} run @param {Uint32Array} places @param {number} first @param {number} second @param {Recorded|null} recorded */
function lowestOf(run, places, first, second, recorded) {
    const { rows } = run.parts;
    const held = summed(run.at(first).bytes, places);
    const lowest = held.slice();
    const besides = held.map((n, place) => n - (recorded ? recorded.live[place] : 0));
    /** @type {Set<number>} */
    const touched = new Set();
    let ordinal = run.moments.slice(0, first + 1).filter((moment) => !moment.isPeak).length;
    for (let moment = first + 1; moment <= second; moment++) {
        for (let row = rows.begin[moment]; row < rows.begin[moment + 1]; row++) {
            const place = places[rows.cell[row]];
            held[place] += rows.bytes[row];
            touched.add(place);
        }
        if (run.moments[moment].isPeak) continue;
        ordinal++;
        recorded?.advance(ordinal, touched);
        for (const place of touched) {
            lowest[place] = Math.min(lowest[place], held[place]);
            besides[place] = Math.min(besides[place], held[place] - (recorded ? recorded.live[place] : 0));
        }
        touched.clear();
    }
    return { lowest, besides };
}

/** @param {Run} run @param {Uint32Array} places @param {number} first @param {number} second @returns {Flow[]} of bytes, by place */
function flowsOf(run, places, first, second) {
    const isTold = !run.moments[first].isPeak && !run.moments[second].isPeak;
    const ordinals = [first, second].map((at) => run.moments.slice(0, at + 1).filter((moment) => !moment.isPeak).length);
    const recorded = isTold && run.blocks.born ? new Recorded(run, places) : null;
    recorded?.span(ordinals[0], ordinals[1]);
    const { lowest, besides } = lowestOf(run, places, first, second, recorded);
    const before = summed(run.at(first).bytes, places);
    const after = summed(run.at(second).bytes, places);
    const [firstLeast, firstMost] = allocatedBy(run, places, first);
    const [secondLeast, secondMost] = allocatedBy(run, places, second);
    return Array.from(places, (place, cell) => {
        if (place !== cell) return nothing();
        const [least, most] = [secondLeast[place] - firstMost[place], secondMost[place] - firstLeast[place]];
        const whole = bounds(before[place], after[place], least, most, lowest[place]);
        if (!recorded || !whole.uncertain) return whole;
        const known = { before: recorded.before[place], after: recorded.live[place], fresh: recorded.fresh[place], allocated: recorded.allocated[place] };
        const rest = [before[place] - known.before, after[place] - known.after, least - known.allocated, most - known.allocated, besides[place]];
        if (Math.min(...rest) < 0) return whole;
        const narrow = bounds(rest[0], rest[1], rest[2], rest[3], rest[4]);
        add(narrow, { before: known.before, after: known.after, fresh: known.fresh, freed: known.before - known.after + known.fresh, passing: known.allocated - known.fresh, uncertain: 0, untold: 0 });
        return narrow.uncertain <= whole.uncertain ? narrow : whole;
    });
}

/** What came and went from one moment to a later one, by place: those where anything is or was. @param {Run} run @param {number} first @param {number} second @returns {{cell: number, flow: Flow}[]} */
export function rangeOf(run, first, second) {
    const places = placesOf(run);
    return flowsOf(run, places, first, second)
        .map((flow, cell) => ({ cell, flow }))
        .filter(({ cell, flow }) => run.side[cell] !== 2 && Object.values(flow).some((n) => n));
}
