// SPDX-License-Identifier: GPL-2.0-or-later
//
// A part of a run: the cells whose stacks have a function, a file, an owner or a thread in which an expression finds something, as jmassif report's
// --include and --exclude have it. It is a run of its own, with the same cells, moments and blocks, in which the others have no size; so all that is a sum over cells is
// of this part.

import { patternOf } from '../base/pattern.js';
import { Run } from './run.js';

/** `isGiven`: as the command line has it too. */
export type Filter = { only: string; except: string; isGiven: boolean };

export const NO_FILTER: Filter = { only: '', except: '', isGiven: true };

const FIELDS = ['function', 'file', 'owner', 'thread'];

/** "file:net" looks into files alone. */
export function expressionOf(text: string) {
    const [word, ...rest] = text.split(':');
    const isOne = rest.length > 0 && FIELDS.includes(word);
    return { fields: isOne ? [word] : FIELDS, ...patternOf(isOne ? rest.join(':') : text) };
}

/** By cell: whether an expression finds something. */
function finds(run: Run, { fields, pattern }: ReturnType<typeof expressionOf>) {
    const { frames, owners } = run.head;
    const { parent, frame } = run.nodes;
    const found = (text: string) => !!pattern && text !== '' && pattern.test(text);
    const hasFrame = frames.label.map((label, i) => {
        if (frames.type[i] === 't') return fields.includes('thread') && found(label);
        // "malloc (libc.so.6)", "main (a.c:9)", and of Python "net.py:12 (forward)"
        const at = label.lastIndexOf(' (');
        const [before, inside] = at < 0 ? [label, ''] : [label.slice(0, at), label.slice(at + 2, -1)];
        const [name, place] = frames.type[i] === 'p' ? [inside, before] : [before, inside];
        return (
            (fields.includes('function') && found(name)) ||
            (fields.includes('file') && (found(place.replace(/:\d+$/, '')) || found(frames.libraries[frames.library[i]])))
        );
    });
    const through = new Uint8Array(parent.length);
    for (let node = 1; node < parent.length; node++) through[node] = hasFrame[frame[node]] || through[parent[node]] ? 1 : 0;
    const hasOwner = owners.map(({ name }) => fields.includes('owner') && found(name));
    return (cell: number) => through[run.cells.node[cell]] === 1 || hasOwner[run.cells.owner[cell]];
}

/** The problem of an expression; '' for none. */
export const problemOf = ({ only, except }: Filter) => expressionOf(only).problem || expressionOf(except).problem;

export const isAll = (run: Run, { only, except, isGiven }: Filter) => !only && !except && !(isGiven && run.head.filter);

/** The part; the run itself, where that is all. The filter has no problem. */
export function partOf(run: Run, filter: Filter): Run {
    if (isAll(run, filter)) return run;
    const { parts } = run;
    const [only, except] = [expressionOf(filter.only), expressionOf(filter.except)];
    const isWanted = only.pattern ? finds(run, only) : () => true;
    const isUnwanted = except.pattern ? finds(run, except) : () => false;
    const isGiven = filter.isGiven && !!run.head.filter;
    const shown = Array.from(run.cells.node, (_, cell) => isWanted(cell) && !isUnwanted(cell) && !(isGiven && !parts.cells.chosen[cell]));
    const masked = (figures: Float64Array, cells: Uint32Array) => figures.map((figure, i) => (shown[cells[i]] ? figure : 0));
    const { rows, blocks } = parts;
    const [bytes, live, allocated] = [rows.bytes, rows.blocks, rows.allocated].map((figures) => masked(figures, rows.cell));
    const part = new Run({
        ...parts,
        rows: { ...rows, bytes, blocks: live, allocated },
        blocks: { ...blocks, bytes: masked(blocks.bytes, blocks.cell) },
    });
    part.moments.forEach((moment, i) => (moment.name = run.moments[i].name));
    return part;
}
