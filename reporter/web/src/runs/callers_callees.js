// SPDX-License-Identifier: GPL-2.0-or-later
//
// Callers and callees of a function or a line, by the memory of their stacks. A stack that goes through it several times counts once:
// with who called the outermost call, and whom the innermost called (analysis/callers_callees.py has the same).

/** @typedef {import('./run.js').Run} Run */
/** @typedef {{name: string, bytes: number, blocks: number, allocated: number, isFrame: boolean}} Neighbour */

export const ITSELF = '(itself)';
export const NOBODY = '(root)';
export const DEEPER = '(smaller ones)';

/** @param {Map<string, Neighbour>} sums @param {string} name @param {boolean} isFrame @param {number} bytes @param {number} blocks @param {number} allocated */
function count(sums, name, isFrame, bytes, blocks, allocated) {
    const sum = sums.get(name) ?? { name, bytes: 0, blocks: 0, allocated: 0, isFrame };
    sum.bytes += bytes;
    sum.blocks += blocks;
    sum.allocated += allocated;
    sums.set(name, sum);
}

/** The caller of the outermost node with that label on the way from a node, and the callee of the innermost; null: there is none. @param {Run} run @param {string} label @param {number} innermost */
function around(run, label, innermost) {
    const { parent, frame } = run.nodes;
    const labelOf = (/** @type {number} */ node) => run.head.frames.label[frame[node]];
    let inner = 0;
    let callee = -1;
    let last = 0;
    for (let node = innermost; node; node = parent[node]) {
        if (labelOf(node) === label) {
            if (callee < 0) callee = inner;
            last = node;
        }
        inner = node;
    }
    if (!last) return null;
    return { caller: parent[last] ? labelOf(parent[last]) : '', callee: callee ? labelOf(callee) : '' };
}

/** @param {Run} run @param {string} label as frames are called @param {number} moment @returns {{callers: Neighbour[], callees: Neighbour[]}} */
export function callersAndCalleesOf(run, label, moment) {
    const held = run.at(moment);
    /** @type {Map<string, Neighbour>} */
    const callers = new Map();
    /** @type {Map<string, Neighbour>} */
    const callees = new Map();
    /** @type {Map<number, ReturnType<typeof around>>} */
    const known = new Map();
    for (let cell = 0; cell < run.nCells; cell++) {
        const node = run.cells.node[cell];
        const figures = /** @type {const} */ ([held.bytes[cell], held.blocks[cell], held.allocated[cell]]);
        if (run.side[cell] === 2 || !node || !figures.some((n) => n)) continue;
        let found = known.get(node);
        if (found === undefined) known.set(node, (found = around(run, label, node)));
        if (!found) continue;
        const own = run.cells.places[cell] ? DEEPER : ITSELF;
        count(callers, found.caller || NOBODY, !!found.caller, ...figures);
        count(callees, found.callee || own, !!found.callee, ...figures);
    }
    const ranked = (/** @type {Map<string, Neighbour>} */ sums) => [...sums.values()].sort((a, b) => b.bytes - a.bytes || b.allocated - a.allocated || (a.name < b.name ? -1 : 1));
    return { callers: ranked(callers), callees: ranked(callees) };
}

/** The labels of frames, those that hold most at a moment by all that they called first. @param {Run} run @param {number} moment @returns {string[]} */
export function labelsByTotal(run, moment) {
    const { parent, frame } = run.nodes;
    const totals = new Float64Array(parent.length);
    const { bytes } = run.at(moment);
    for (let cell = 0; cell < run.nCells; cell++) if (run.side[cell] !== 2) totals[run.cells.node[cell]] += bytes[cell];
    for (let node = parent.length - 1; node > 0; node--) totals[parent[node]] += totals[node];
    /** @type {Map<string, number>} */
    const most = new Map();
    for (let node = 1; node < parent.length; node++) {
        const label = run.head.frames.label[frame[node]];
        most.set(label, Math.max(most.get(label) ?? 0, totals[node]));
    }
    return [...most.keys()].sort((a, b) => (most.get(b) ?? 0) - (most.get(a) ?? 0) || (a < b ? -1 : 1));
}
