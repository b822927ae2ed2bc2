// SPDX-License-Identifier: GPL-2.0-or-later
//
// The largest blocks that were live at the chosen moment, each with those that lie in it below it: tensors in a segment. What is
// inside counts once, with what it lies in. A click shows who allocated one, and has the call tree show its place.

import { moment as time, size } from '../base/units.js';
import { stackBox } from '../charts/stack.js';
import { Table } from '../charts/table.js';
import { allocatorOf, lineOf, liveBlocks, nested } from '../runs/blocks.js';
import { View } from './view.js';

/** @typedef {import('../runs/run.js').Run} Run */

/** @typedef {{block: number, bytes: number, inside: number, outer: number, kind: string, owner: string, begin: number, end: number, site: string}} Row `inside`: bytes of blocks in it; `outer`: the block that it lies in, or -1; a `block` of -1 is a sum */

const SHOWN = 200;
const SHOWN_INSIDE = 100; // of one block

/** @param {Run} run @param {number} block @param {number} inside @param {number} outer @returns {Row} */
function rowOf(run, block, inside, outer) {
    const cell = run.blocks.cell[block];
    return {
        block,
        bytes: run.blocks.bytes[block],
        inside,
        outer,
        kind: run.head.kinds[run.cells.kind[cell]].name,
        owner: run.head.owners[run.cells.owner[cell]].name,
        begin: run.blocks.begin[block],
        end: run.blocks.end[block] - 1,
        site: lineOf(run, cell) || allocatorOf(run, cell),
    };
}

/** The largest, each followed by those in it. @param {Run} run @param {number[]} live */
function rowsOf(run, live) {
    const { bytes } = run.blocks;
    const outer = nested(run, live).sort((a, b) => bytes[b.block] - bytes[a.block] || a.block - b.block);
    return outer.slice(0, SHOWN).flatMap(({ block, inside }) => {
        const within = inside.reduce((all, each) => all + bytes[each], 0);
        const largest = inside.sort((a, b) => bytes[b] - bytes[a] || a - b).slice(0, SHOWN_INSIDE);
        return [rowOf(run, block, within, -1), ...largest.map((each) => rowOf(run, each, 0, block))];
    });
}

/** Of what lies in no other of them. @param {Row[]} rows @returns {Row} */
function sumOf(rows) {
    const listed = new Set(rows.map((row) => row.block));
    const apart = rows.filter((row) => !listed.has(row.outer));
    const add = (/** @type {'bytes'|'inside'} */ which) => apart.reduce((all, row) => all + row[which], 0);
    return { block: -1, bytes: add('bytes'), inside: add('inside'), outer: -1, kind: 'total, nested blocks counted once', owner: '', begin: 0, end: 0, site: '' };
}

/** @param {Run} run @param {boolean} hasInner @returns {import('../charts/table.js').Column<Row>[]} */
function columns(run, hasInner) {
    const { unit } = run.head;
    const isSum = (/** @type {Row} */ row) => row.block < 0;
    /** @type {import('../charts/table.js').Column<Row>[]} */
    const inner = [{ head: 'in use', isFigure: true, value: (row) => row.inside || '', show: (row) => (row.inside ? size(row.inside) : '') }];
    return [
        { head: 'size', isFigure: true, value: (row) => row.bytes, show: (row) => (row.outer >= 0 ? `↳ ${size(row.bytes)}` : size(row.bytes)) },
        ...(hasInner ? inner : []),
        { head: 'kind', value: (row) => row.kind },
        { head: 'owner', value: (row) => row.owner },
        { head: 'allocated', isFigure: true, value: (row) => (isSum(row) ? '' : row.begin), show: (row) => (isSum(row) ? '' : time(row.begin, unit)) },
        { head: 'freed', isFigure: true, value: (row) => (isSum(row) ? '' : row.end < 0 ? Infinity : row.end), show: (row) => (isSum(row) ? '' : row.end < 0 ? 'never' : time(row.end, unit)), title: () => '' },
        { head: 'address', value: (row) => (isSum(row) ? '' : `0x${run.blocks.address[row.block].toString(16)}`) },
        { head: 'by', isLong: true, value: (row) => row.site },
    ];
}

export class Blocks extends View {
    static id = 'blocks';
    static title = 'Largest live blocks';

    /** @param {Run} run */
    static fits(run) {
        return run.blocks.begin.length > 0;
    }

    /** Place among the run's blocks. */
    #chosen = -1;
    #stack = stackBox();
    /** @type {Table<Row>} */
    #grid = new Table('Largest live blocks', {
        sum: (rows) => sumOf(rows),
        empty: 'no large block at this moment',
        onClick: (row) => {
            const { page, run } = this;
            const index = run.blocks.cell[row.block];
            // Another block of one place is no second click.
            const isAgain = row.block === this.#chosen;
            this.#chosen = row.block;
            if (isAgain || !page.isOnly('cell', index)) page.narrow({ dimension: 'cell', index, name: row.site });
            this.update();
        },
        isChosen: (row) => row.block >= 0 && row.block === this.#chosen,
    });

    content() {
        return [this.#grid.element, this.#stack.element];
    }

    update() {
        const { page, run } = this;
        const live = liveBlocks(run, run.moments[page.moment]?.time ?? 0);
        const rows = rowsOf(run, live);
        this.#follow(rows);
        const hasInner = rows.some((row) => row.outer >= 0);
        const threshold = run.head.block_thresholds.at(-1)?.[1];
        const notes = [
            run.moments.length ? `at ${run.label(page.moment)}` : '',
            hasInner ? '↳ lies in the block above it' : '',
            threshold ? `heap blocks below ${size(threshold)} have no records` : '',
            run.head.blocks_left_out[0] ? `blocks up to ${size(run.head.blocks_left_out[1])} are not on this page` : '',
        ];
        this.#grid.show(columns(run, hasInner), rows, notes.filter((note) => note).join('; '));
        this.#stack.show(run, this.#chosen);
    }

    /** The place that the page is narrowed to is in its address, the block is not: another one of that place has the same stack. @param {Row[]} rows */
    #follow(rows) {
        const { page, run } = this;
        const ofPlace = rows.filter(({ block }) => page.isOnly('cell', run.blocks.cell[block]));
        if (!ofPlace.some(({ block }) => block === this.#chosen)) this.#chosen = ofPlace[0]?.block ?? -1;
    }
}
