// SPDX-License-Identifier: GPL-2.0-or-later
//
// The largest blocks that were live at the chosen moment. A click shows who allocated one.

import { moment as time, size } from '../base/units.js';
import { stackBox } from '../charts/stack.js';
import { Table } from '../charts/table.js';
import { allocatorOf, lineOf, liveBlocks } from '../runs/blocks.js';
import { View } from './view.js';

/** @typedef {import('../runs/run.js').Run} Run */

/** @typedef {{block: number, bytes: number, kind: string, owner: string, begin: number, end: number, site: string}} Row */

const SHOWN = 200;

/** @param {Run} run @param {number} block @returns {Row} */
function rowOf(run, block) {
    const cell = run.blocks.cell[block];
    return {
        block,
        bytes: run.blocks.bytes[block],
        kind: run.head.kinds[run.cells.kind[cell]].name,
        owner: run.head.owners[run.cells.owner[cell]].name,
        begin: run.blocks.begin[block],
        end: run.blocks.end[block] - 1,
        site: lineOf(run, cell) || allocatorOf(run, cell),
    };
}

/** @param {Run} run @returns {import('../charts/table.js').Column<Row>[]} */
function columns(run) {
    const { unit } = run.head;
    return [
        { head: 'size', isFigure: true, value: (row) => row.bytes, show: (row) => size(row.bytes) },
        { head: 'kind', value: (row) => row.kind },
        { head: 'owner', value: (row) => row.owner },
        { head: 'allocated', isFigure: true, value: (row) => row.begin, show: (row) => time(row.begin, unit) },
        { head: 'freed', isFigure: true, value: (row) => (row.end < 0 ? Infinity : row.end), show: (row) => (row.end < 0 ? 'never' : time(row.end, unit)), title: () => '' },
        { head: 'address', value: (row) => `0x${run.blocks.address[row.block].toString(16)}` },
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
        empty: 'no large block was live at this moment',
        onClick: (row) => {
            this.#chosen = row.block;
            this.update();
        },
        isChosen: (row) => row.block === this.#chosen,
    });

    content() {
        return [this.#grid.element, this.#stack.element];
    }

    update() {
        const { page, run } = this;
        const live = liveBlocks(run, run.moments[page.moment]?.time ?? 0);
        const rows = live.slice(0, SHOWN).map((block) => rowOf(run, block));
        const threshold = run.head.block_thresholds.at(-1)?.[1];
        const notes = [
            run.moments.length ? `at ${run.label(page.moment)}` : '',
            threshold ? `heap blocks below ${size(threshold)} have no records` : '',
            run.head.blocks_left_out[0] ? `blocks up to ${size(run.head.blocks_left_out[1])} are not on this page` : '',
        ];
        this.#grid.show(columns(run), rows, notes.filter((note) => note).join('; '));
        this.#stack.show(run, rows.some((row) => row.block === this.#chosen) ? this.#chosen : -1);
    }
}
