// SPDX-License-Identifier: GPL-2.0-or-later
//
// The largest blocks that were live at the chosen moment, each with those that lie in it below it: tensors in a segment. What is
// inside counts once, with what it lies in. A click shows who allocated one, and has the call tree show its place.

import { useMemo, useState } from 'preact/hooks';
import { moment, size } from '../base/units.js';
import { Chip } from '../charts/chip.js';
import { StackBox } from '../charts/stack.js';
import { type Column, Table } from '../charts/table.js';
import { liveBlocks, nested } from '../runs/blocks.js';
import type { Page } from '../runs/page.js';
import type { Run } from '../runs/run.js';

/** `inside`: bytes of blocks in it; `outer`: the block that it lies in, or -1; a `block` of -1 is a sum. */
type Row = { block: number; bytes: number; inside: number; outer: number; kind: string; owner: string; begin: number; end: number; site: string };

const SHOWN = 200;
const SHOWN_INSIDE = 100; // of one block

function rowOf(run: Run, block: number, inside: number, outer: number): Row {
    const { bytes, begin, end, cell: cells } = run.blocks;
    const cell = cells[block];
    return {
        block,
        bytes: bytes[block],
        inside,
        outer,
        kind: run.head.kinds[run.cells.kind[cell]].name,
        owner: run.head.owners[run.cells.owner[cell]].name,
        begin: begin[block],
        end: end[block] - 1,
        site: run.site(cell),
    };
}

/** The largest, each followed by those in it. */
function rowsOf(run: Run, live: number[]) {
    const { bytes } = run.blocks;
    const outer = nested(run, live).sort((a, b) => bytes[b.block] - bytes[a.block] || a.block - b.block);
    return outer.slice(0, SHOWN).flatMap(({ block, inside }) => {
        const within = inside.reduce((all, each) => all + bytes[each], 0);
        const largest = inside.sort((a, b) => bytes[b] - bytes[a] || a - b).slice(0, SHOWN_INSIDE);
        return [rowOf(run, block, within, -1), ...largest.map((each) => rowOf(run, each, 0, block))];
    });
}

/** Of what lies in no other of them. */
function sumOf(rows: Row[]): Row {
    const listed = new Set(rows.map((row) => row.block));
    const apart = rows.filter((row) => !listed.has(row.outer));
    const add = (which: 'bytes' | 'inside') => apart.reduce((all, row) => all + row[which], 0);
    const kind = 'total, nested blocks counted once';
    return { block: -1, bytes: add('bytes'), inside: add('inside'), outer: -1, kind, owner: '', begin: 0, end: 0, site: '' };
}

function columnsOf(run: Run, hasInner: boolean): Column<Row>[] {
    const inner: Column<Row> = { head: 'in use', as: 'bytes', value: (row) => row.inside || '' };
    const at = (head: string, of: (row: Row) => number): Column<Row> => ({
        head,
        as: 'figure',
        value: (row) => (row.block < 0 ? '' : of(row)),
        show: (row) => (row.block < 0 ? '' : of(row) === Infinity ? 'never' : moment(of(row), run.head.unit)),
        title: () => '',
    });
    return [
        { head: 'size', as: 'bytes', value: (row) => row.bytes, show: (row) => `${row.outer >= 0 ? '↳ ' : ''}${size(row.bytes)}` },
        ...(hasInner ? [inner] : []),
        { head: 'kind', value: (row) => row.kind },
        { head: 'owner', value: (row) => row.owner },
        at('allocated', (row) => row.begin),
        at('freed', (row) => (row.end < 0 ? Infinity : row.end)),
        { head: 'address', value: (row) => (row.block < 0 ? '' : `0x${run.blocks.address[row.block].toString(16)}`) },
        { head: 'by', as: 'long', value: (row) => row.site },
    ];
}

function View({ page }: { page: Page }) {
    const { run, moment: index } = page;
    const [clicked, click] = useState(-1);
    const rows = useMemo(() => rowsOf(run, liveBlocks(run, run.moments[index]?.time ?? 0)), [run, index]);
    // The place that the page is narrowed to is in its address, the block is not: another one of that place has the same stack.
    const ofPlace = rows.filter(({ block }) => page.isOnly('cell', run.blocks.cell[block]));
    const chosen = ofPlace.some(({ block }) => block === clicked) ? clicked : (ofPlace[0]?.block ?? -1);
    const choose = ({ block, site }: Row) => {
        const cell = run.blocks.cell[block];
        click(block);
        // Another block of one place is no second click.
        if (block === chosen || !page.isOnly('cell', cell)) page.narrow({ dimension: 'cell', index: cell, name: site });
    };
    const hasInner = rows.some((row) => row.outer >= 0);
    const threshold = run.head.block_thresholds.at(-1)?.[1];
    const [left, upTo] = run.head.blocks_left_out;
    const notes = [
        run.moments.length ? `at ${run.label(index)}` : '',
        hasInner ? '↳ lies in the block above it' : '',
        threshold ? `heap blocks below ${size(threshold)} have no records` : '',
        left ? `blocks up to ${size(upTo)} are not on this page` : '',
    ];
    return (
        <>
            <Chip page={page} />
            <Table
                caption="Largest live blocks"
                note={notes.filter((note) => note).join('; ')}
                columns={columnsOf(run, hasInner)}
                rows={rows}
                sum={sumOf}
                empty="no large block at this moment"
                onClick={choose}
                isChosen={({ block }) => block >= 0 && block === chosen}
            />
            <StackBox run={run} block={chosen} />
        </>
    );
}

export const Blocks = { id: 'blocks', title: 'Largest live blocks', fits: (run: Run) => run.blocks.begin.length > 0, View };
