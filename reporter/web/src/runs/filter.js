// SPDX-License-Identifier: GPL-2.0-or-later
//
// A part of a run: the cells whose stacks have a function, a file, an owner or a thread in which an expression finds something, as jmassif report's
// --include and --exclude have it. It is a run of its own, with the same moments, so all that is a sum over cells is of this part.

import { patternOf } from '../base/pattern.js';
import { Run } from './run.js';

/** @typedef {{only: string, except: string, isGiven: boolean}} Filter `isGiven`: as the command line has it too */

/** @type {Filter} */
export const NO_FILTER = { only: '', except: '', isGiven: true };

const FIELDS = ['function', 'file', 'owner', 'thread'];

/** "file:net" looks into files alone. @param {string} text @returns {{fields: string[], pattern: RegExp|null, problem: string}} */
export function expressionOf(text) {
    const [word, ...rest] = text.split(':');
    const isOne = rest.length > 0 && FIELDS.includes(word);
    return { fields: isOne ? [word] : FIELDS, ...patternOf(isOne ? rest.join(':') : text) };
}

/** By cell: whether an expression finds something. @param {Run} run @param {ReturnType<typeof expressionOf>} expression @returns {(cell: number) => boolean} */
function finds(run, { fields, pattern }) {
    const { frames, owners } = run.head;
    const { parent, frame } = run.nodes;
    const found = (/** @type {string} */ text) => !!pattern && text !== '' && pattern.test(text);
    const hasFrame = frames.label.map((label, i) => {
        if (frames.type[i] === 't') return fields.includes('thread') && found(label);
        // "malloc (libc.so.6)", "main (a.c:9)", and of Python "net.py:12 (forward)"
        const at = label.lastIndexOf(' (');
        const [before, inside] = at < 0 ? [label, ''] : [label.slice(0, at), label.slice(at + 2, -1)];
        const [name, place] = frames.type[i] === 'p' ? [inside, before] : [before, inside];
        return (fields.includes('function') && found(name)) || (fields.includes('file') && (found(place.replace(/:\d+$/, '')) || found(frames.libraries[frames.library[i]])));
    });
    const through = new Uint8Array(parent.length);
    for (let node = 1; node < parent.length; node++) through[node] = hasFrame[frame[node]] || through[parent[node]] ? 1 : 0;
    const hasOwner = owners.map(({ name }) => fields.includes('owner') && found(name));
    return (cell) => through[run.cells.node[cell]] === 1 || hasOwner[run.cells.owner[cell]];
}

/** The problem of an expression; '' for none. @param {Filter} filter */
export const problemOf = ({ only, except }) => expressionOf(only).problem || expressionOf(except).problem;

/** @param {Run} run @param {Filter} filter */
export const isAll = (run, { only, except, isGiven }) => !only && !except && !(isGiven && run.head.filter);

/** @template {Float64Array|Uint32Array|BigUint64Array} T @param {T} column @param {number[]} places @returns {T} */
const picked = (column, places) => /** @type {T} */ (/** @type {any} */ (column.constructor).from(places, (/** @type {number} */ place) => column[place]));

/** The part; the run itself, where that is all. @param {Run} run @param {Filter} filter without problems @returns {Run} */
export function partOf(run, filter) {
    if (isAll(run, filter)) return run;
    const { parts } = run;
    const [only, except] = [expressionOf(filter.only), expressionOf(filter.except)];
    const isWanted = only.pattern ? finds(run, only) : () => true;
    const isUnwanted = except.pattern ? finds(run, except) : () => false;
    const isGiven = filter.isGiven && !!run.head.filter;
    const shown = Uint8Array.from(run.cells.node, (_, cell) => (isWanted(cell) && !isUnwanted(cell) && (!isGiven || parts.cells.chosen[cell]) ? 1 : 0));
    const begin = new Uint32Array(parts.rows.begin.length);
    /** @type {number[]} */
    const rows = [];
    for (let moment = 0; moment + 1 < begin.length; moment++) {
        for (let row = parts.rows.begin[moment]; row < parts.rows.begin[moment + 1]; row++) if (shown[parts.rows.cell[row]]) rows.push(row);
        begin[moment + 1] = rows.length;
    }
    /** @type {number[]} */
    const blocks = [];
    parts.blocks.cell.forEach((cell, block) => shown[cell] && blocks.push(block));
    const { cell, bytes, blocks: live, allocated } = parts.rows;
    const { begin: from, end, bytes: sizes, address, cell: cellOf } = parts.blocks;
    const part = new Run({
        ...parts,
        rows: { begin, cell: picked(cell, rows), bytes: picked(bytes, rows), blocks: picked(live, rows), allocated: picked(allocated, rows) },
        blocks: { begin: picked(from, blocks), end: picked(end, blocks), bytes: picked(sizes, blocks), address: picked(address, blocks), cell: picked(cellOf, blocks) },
    });
    part.moments.forEach((moment, i) => (moment.name = run.moments[i].name));
    return part;
}
