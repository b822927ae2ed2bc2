// SPDX-License-Identifier: GPL-2.0-or-later
//
// Trees of call stacks, made of a run's cells: what a flame graph shows. Every node holds the sum of its children and of
// what ends in it, so a tree's root is the total of what was asked for, to the byte.

import type { Only } from './page.js';
import type { Measure } from './parts.js';
import type { Run } from './run.js';

export type Order = 'top-down' | 'bottom-up' | 'python' | 'library';
export type FrameType = '' | 'python' | 'native' | 'internal' | 'note';
/** `frame`: its place among the run's frames, 0 of what is none; `before`: at the moment compared with. */
export type TreeNode = { name: string; type: FrameType; frame: number; now: number; before: number; children: TreeNode[] };

export type Question = {
    moment: number;
    /** The moment to compare with. */
    other: number | null;
    measure: Measure;
    order: Order;
    side: 'both' | 'host' | 'device';
    only: Only | null;
    /** Runs of frames inside one package are one. */
    isFolded: boolean;
};

// Parts of the whole below which a branch is not drawn: what a screen's width cannot show.
const LEAST = 1 / 4000;
const MAX_DEPTH = 200;

/** A node while the tree grows. */
type Branch = { key: number; now: number; before: number; children: Map<number, Branch> };

const branch = (key: number): Branch => ({ key, now: 0, before: 0, children: new Map() });

// Keys of what is no frame.
const DEEPER = -1;
const NO_STACK = -2;
const NO_PYTHON = -3;
const SMALL = -4;
const PACKAGE = -1000; // and below: a package
const LIBRARY = -2000000; // and below

function describe(run: Run, key: number): { name: string; type: FrameType } {
    const { frames, libraries } = run.head;
    if (key >= 0) return { name: frames.label[key], type: frames.type[key] === 'p' ? 'python' : frames.package[key] ? 'internal' : 'native' };
    if (key <= LIBRARY) return { name: libraries[LIBRARY - key] || '(no library)', type: 'internal' };
    if (key <= PACKAGE) return { name: `inside ${frames.packages[PACKAGE - key]}`, type: 'internal' };
    const names: Record<number, string> = {
        [DEEPER]: '(deeper calls)',
        [NO_STACK]: '(no stack)',
        [NO_PYTHON]: '(native code)',
        [SMALL]: '(smaller ones)',
    };
    return { name: names[key], type: 'note' };
}

/** The keys of a cell's stack, outermost first. */
function path(run: Run, cell: number, question: Question) {
    const { frames } = run.head;
    const { parent, frame } = run.nodes;
    const keys: number[] = [];
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

const size = ({ now, before }: { now: number; before: number }) => Math.max(now, before);

/** With branches below `least` bytes as one. */
function finished(run: Run, { key, now, before, children: branches }: Branch, least: number): TreeNode {
    const [large, small]: Branch[][] = [[], []];
    for (const child of branches.values()) (size(child) >= least ? large : small).push(child);
    const children = large.map((child) => finished(run, child, least));
    const rest = small.reduce((sum, child) => ({ ...sum, now: sum.now + child.now, before: sum.before + child.before }), branch(SMALL));
    if (size(rest)) children.push(finished(run, { ...rest, key: small.length === 1 ? small[0].key : SMALL }, 0));
    children.sort((a, b) => size(b) - size(a));
    return { ...describe(run, key), frame: Math.max(0, key), now, before, children };
}

/** The answer; its root has no name. */
export function tree(run: Run, question: Question): TreeNode {
    const root = branch(NO_STACK);
    if (run.moments.length) grow(run, question, root);
    return { ...finished(run, root, size(root) * LEAST), name: '', type: '' };
}

function grow(run: Run, question: Question, root: Branch) {
    const now = run.at(question.moment)[question.measure];
    const before = question.other === null ? null : run.at(question.other)[question.measure];
    const { only } = question;
    const isLeftOut = (cell: number) => only && (only.dimension === 'cell' ? cell : run.cells[only.dimension][cell]) !== only.index;
    const wanted = [question.side !== 'device', question.side !== 'host', false];
    const cells: number[] = [];
    for (let cell = 0; cell < run.nCells; cell++) {
        if (!wanted[run.side[cell]] || isLeftOut(cell)) continue;
        if (!now[cell] && !before?.[cell]) continue;
        root.now += now[cell];
        root.before += before?.[cell] ?? 0;
        cells.push(cell);
    }
    // A cell that could not be seen by itself costs as much to place as any other: those are summed where they begin.
    const least = (size(root) * LEAST) / 50;
    for (const cell of cells) {
        const a = now[cell];
        const b = before?.[cell] ?? 0;
        const isSmall = Math.max(a, b) < least;
        let node = root;
        let depth = 0;
        for (const key of path(run, cell, question)) {
            let next = node.children.get(key);
            if (!next) node.children.set(key, (next = branch(key)));
            node = next;
            node.now += a;
            node.before += b;
            if (isSmall && ++depth === 12) break;
        }
    }
}
