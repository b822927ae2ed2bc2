// SPDX-License-Identifier: GPL-2.0-or-later
//
// Memory between two moments, by call site: what was there before, what was allocated and freed in between, and what is there after.
// Freed bytes follow from the other three.

/** @typedef {import('./run.js').Run} Run */
/** Bytes. @typedef {{before: number, allocated: number, freed: number, after: number}} Flow */

/** By cell, the first of those that differ in the role of their tensors alone, for that may change without an allocation. @param {Run} run */
function sitesOf(run) {
    const { node, kind, owner, library, thread, line, places } = run.cells;
    /** @type {Map<string, number>} */
    const known = new Map();
    return Uint32Array.from(node, (_, cell) => {
        const key = [node[cell], kind[cell], owner[cell], library[cell], thread[cell], line[cell], places[cell] ? 1 : 0].join();
        const site = known.get(key) ?? cell;
        known.set(key, site);
        return site;
    });
}

/** Of the sites where anything is or was, each by its first cell. @param {Run} run @param {number} first @param {number} second @returns {{cell: number, flow: Flow}[]} */
export function rangeOf(run, first, second) {
    const sites = sitesOf(run);
    const sums = (/** @type {Float64Array} */ column) => column.reduce((sum, n, cell) => ((sum[sites[cell]] += n), sum), new Float64Array(run.nCells));
    const [before, after] = [sums(run.at(first).bytes), sums(run.at(second).bytes)];
    const [allocatedThen, allocatedNow] = [sums(run.at(first).allocated), sums(run.at(second).allocated)];
    const found = [];
    for (let cell = 0; cell < run.nCells; cell++) {
        const allocated = Math.max(allocatedNow[cell] - allocatedThen[cell], after[cell] - before[cell], 0);
        const flow = { before: before[cell], allocated, freed: before[cell] + allocated - after[cell], after: after[cell] };
        if (run.side[cell] !== 2 && (flow.before || allocated || flow.after)) found.push({ cell, flow });
    }
    return found;
}
