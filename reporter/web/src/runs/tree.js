// SPDX-License-Identifier: GPL-2.0-or-later
//
// Trees of call stacks, made of a run's cells: what a flame graph shows. Every node holds the sum of its children and of
// what ends in it, so a tree's root is the total of what was asked for, to the byte.

/** @typedef {import('./run.js').Run} Run */
/** @typedef {import('./parts.js').Measure} Measure */
/** @typedef {'top-down'|'bottom-up'|'python'|'library'} Order */
/** @typedef {''|'python'|'native'|'internal'|'note'} FrameType */
/** @typedef {{name: string, type: FrameType, frame: number, now: number, before: number, children: TreeNode[]}} TreeNode `frame`: its place among the run's frames, 0 of what is none; `before`: at the moment compared with */

/**
 * @typedef {object} Question
 * @property {number} moment
 * @property {number|null} other the moment to compare with
 * @property {Measure} measure
 * @property {Order} order
 * @property {'both'|'host'|'device'} side
 * @property {import('./page.js').Only|null} only null: all
 * @property {boolean} isFolded runs of frames inside one package are one
 */

// Parts of the whole below which a branch is not drawn: what a screen's width cannot show.
const LEAST = 1 / 4000;
const MAX_DEPTH = 200;

/** By place in the tree while it grows. */
class TreeBuilder {
    /** @param {number} key */
    constructor(key) {
        this.key = key;
        this.now = 0;
        this.before = 0;
        /** @type {Map<number, TreeBuilder>|null} */
        this.children = null;
    }

    /** @param {number} key */
    child(key) {
        this.children ??= new Map();
        let found = this.children.get(key);
        if (!found) this.children.set(key, (found = new TreeBuilder(key)));
        return found;
    }
}

// Keys of what is no frame.
const DEEPER = -1;
const NO_STACK = -2;
const NO_PYTHON = -3;
const SMALL = -4;
const PACKAGE = -1000; // and below: a package
const LIBRARY = -2000000; // and below

/** @param {Run} run @param {number} key @returns {{name: string, type: FrameType}} */
function describe(run, key) {
    const { frames, libraries } = run.head;
    if (key >= 0) return { name: frames.label[key], type: frames.type[key] === 'p' ? 'python' : frames.package[key] ? 'internal' : 'native' };
    if (key <= LIBRARY) return { name: libraries[LIBRARY - key] || '(no library)', type: 'internal' };
    if (key <= PACKAGE) return { name: `inside ${frames.packages[PACKAGE - key]}`, type: 'internal' };
    /** @type {Record<number, string>} */
    const names = { [DEEPER]: '(deeper calls)', [NO_STACK]: '(no stack)', [NO_PYTHON]: '(native code)', [SMALL]: '(smaller ones)' };
    return { name: names[key], type: 'note' };
}

/** The keys of a cell's stack, outermost first. @param {Run} run @param {number} cell @param {Question} question */
function path(run, cell, question) {
    const { frames } = run.head;
    const { parent, frame } = run.nodes;
    /** @type {number[]} */
    const keys = [];
    const isPython = question.order === 'python';
    if (run.cells.places[cell] > 0 && !isPython) keys.push(DEEPER);
    for (let node = run.cells.node[cell]; node && keys.length < MAX_DEPTH; node = parent[node]) {
        const at = frame[node];
        if (isPython && frames.type[at] !== 'p') continue;
        const key = question.isFolded && frames.package[at] ? PACKAGE - frames.package[at] : at;
        if (key >= 0 || keys.at(-1) !== key) keys.push(key);
    }
    if (!keys.length) keys.push(isPython && run.cells.node[cell] ? NO_PYTHON : NO_STACK);
    if (question.order !== 'bottom-up') keys.reverse();
    if (question.order === 'library') keys.unshift(LIBRARY - run.cells.library[cell]);
    return keys;
}

/** @param {Run} run @param {TreeBuilder} node @param {number} least @returns {TreeNode} */
function finished(run, node, least) {
    const { name, type } = describe(run, node.key);
    /** @type {TreeNode[]} */
    const children = [];
    const small = new TreeBuilder(SMALL);
    let smallOnes = 0;
    let only = null;
    for (const child of node.children?.values() ?? []) {
        if (Math.max(child.now, child.before) >= least) children.push(finished(run, child, least));
        else {
            small.now += child.now;
            small.before += child.before;
            smallOnes++;
            only = child;
        }
    }
    if (small.now || small.before) children.push(finished(run, smallOnes === 1 && only ? Object.assign(new TreeBuilder(only.key), { now: only.now, before: only.before }) : small, 0));
    children.sort((a, b) => Math.max(b.now, b.before) - Math.max(a.now, a.before));
    return { name, type, frame: Math.max(0, node.key), now: node.now, before: node.before, children };
}

/** The answer; its root has no name. @param {Run} run @param {Question} question @returns {TreeNode} */
export function tree(run, question) {
    const root = new TreeBuilder(NO_STACK);
    if (run.moments.length) grow(run, question, root);
    const whole = Math.max(root.now, root.before);
    const done = finished(run, root, whole * LEAST);
    return { ...done, name: '', type: '' };
}

/** @param {Run} run @param {Question} question @param {TreeBuilder} root */
function grow(run, question, root) {
    const now = run.at(question.moment)[question.measure];
    const before = question.other === null ? null : run.at(question.other)[question.measure];
    const { only } = question;
    const isLeftOut = (/** @type {number} */ cell) => only && (only.dimension === 'cell' ? cell : run.cells[only.dimension][cell]) !== only.index;
    const wanted = [question.side !== 'device', question.side !== 'host', false];
    /** @type {number[]} */
    const cells = [];
    for (let cell = 0; cell < run.nCells; cell++) {
        if (!wanted[run.side[cell]] || isLeftOut(cell)) continue;
        if (!now[cell] && !before?.[cell]) continue;
        root.now += now[cell];
        root.before += before?.[cell] ?? 0;
        cells.push(cell);
    }
    // A cell that could not be seen by itself costs as much to place as any other: those are summed where they begin.
    const least = (Math.max(root.now, root.before) * LEAST) / 50;
    for (const cell of cells) {
        const a = now[cell];
        const b = before?.[cell] ?? 0;
        const isSmall = Math.max(a, b) < least;
        let node = root;
        let depth = 0;
        for (const key of path(run, cell, question)) {
            node = node.child(key);
            node.now += a;
            node.before += b;
            if (isSmall && ++depth === 12) break;
        }
    }
}
