// SPDX-License-Identifier: GPL-2.0-or-later
//
// The largest blocks that were live at the chosen moment. A click shows who allocated one.

import { momentName } from '../bar.js';
import { stackBox } from '../stack.js';
import { table } from '../table.js';
import { moment as time, size } from '../units.js';

/** @typedef {{block: number, bytes: number, kind: string, owner: string, begin: number, end: number, site: string}} Row */

const SHOWN = 200;

/** The blocks that are live at a time, the largest first. @param {import('../run.js').Run} run @param {number} now @returns {number[]} */
export function liveBlocks(run, now) {
    const { begin, end, bytes } = run.blocks;
    const live = [];
    for (let block = 0; block < begin.length; block++) {
        // `end` is the time of the free plus one; freed and allocated within one tick of the clock counts as gone.
        if (begin[block] <= now && (!end[block] || end[block] - 1 > now)) live.push(block);
    }
    return live.sort((a, b) => bytes[b] - bytes[a]);
}

/** @param {import('../run.js').Run} run @param {number} cell */
const siteOf = (run, cell) => {
    const stack = run.stack(cell);
    const line = run.head.lines.path[run.cells.line[cell]] ? run.head.lines.label[run.cells.line[cell]] : '';
    return line || stack.find((label) => !label.includes('vgpreload_')) || '(no stack)';
};

/** @type {import('../page.js').View} */
export const blocks = {
    id: 'blocks',
    title: 'Largest live blocks',
    fits: (run) => run.blocks.begin.length > 0,
    mount(place, page) {
        const stack = stackBox();
        /** @type {Row|null} */
        let chosen = null;
        const grid = /** @type {ReturnType<typeof table<Row>>} */ (
            table('Largest live blocks', {
                empty: 'no large block was live at this moment',
                onClick: (row) => {
                    chosen = row;
                    show();
                },
                isChosen: (row) => row.block === chosen?.block,
            })
        );
        place.append(grid.element, stack.element);

        function show() {
            const { run } = page;
            const unit = run.head.unit;
            const live = liveBlocks(run, run.moments[page.moment]?.time ?? 0);
            const rows = live.slice(0, SHOWN).map((block) => {
                const cell = run.blocks.cell[block];
                return {
                    block,
                    bytes: run.blocks.bytes[block],
                    kind: run.head.kinds[run.cells.kind[cell]].name,
                    owner: run.head.owners[run.cells.owner[cell]].name,
                    begin: run.blocks.begin[block],
                    end: run.blocks.end[block] - 1,
                    site: siteOf(run, cell),
                };
            });
            const threshold = run.head.block_thresholds.at(-1)?.[1];
            const notes = [
                run.moments.length ? `at ${momentName(run, page.moment)}` : '',
                threshold ? `heap blocks below ${size(threshold)} have no records` : '',
                run.head.blocks_left_out[0] ? `blocks up to ${size(run.head.blocks_left_out[1])} are not on this page` : '',
            ];
            grid.show(
                [
                    { head: 'size', isFigure: true, value: (row) => row.bytes, show: (row) => size(row.bytes) },
                    { head: 'kind', value: (row) => row.kind },
                    { head: 'owner', value: (row) => row.owner },
                    { head: 'allocated', isFigure: true, value: (row) => row.begin, show: (row) => time(row.begin, unit) },
                    { head: 'freed', isFigure: true, value: (row) => (row.end < 0 ? Infinity : row.end), show: (row) => (row.end < 0 ? 'never' : time(row.end, unit)), title: () => '' },
                    { head: 'address', value: (row) => `0x${run.blocks.address[row.block].toString(16)}` },
                    { head: 'by', isLong: true, value: (row) => row.site },
                ],
                rows,
                notes.filter((note) => note).join('; '),
            );
            stack.show(run, rows.find((row) => row.block === chosen?.block)?.block ?? -1);
        }
        return show;
    },
};
