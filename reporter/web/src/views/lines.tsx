// SPDX-License-Identifier: GPL-2.0-or-later
//
// Memory that each line of the program's own Python code allocated by itself, and with all lines that it called, with its text where it
// could be read. A click narrows the call tree to what is its own.

import { useLayoutEffect } from 'preact/hooks';
import { filterOf, useKept } from '../charts/section.js';
import { type Column, Table } from '../charts/table.js';
import type { Page } from '../runs/page.js';
import type { Run } from '../runs/run.js';
import { type Row, rowsOf, sumOf, total } from '../runs/sums.js';
import { allocated, figures } from './columns.js';

const CAPTION = 'Python lines';
const SELF_AND_TOTAL = 'self: allocated by the line, also in packages that it called; total: with all lines of the program that it called';

function columnsOf(page: Page, rows: Row[], totalOf: (row: Row) => Row['sum']) {
    const { run } = page;
    const { lines, at } = run.head;
    const aboutOf = ({ index }: Row) => (index < 0 ? '' : [lines.path[index], lines.around[index]].filter((text) => text).join('\n'));
    const columns: Column<Row>[] = [{ head: 'line', value: (row) => row.name, title: aboutOf }, ...figures(page, rows, totalOf), allocated];
    if (at.end >= 0) {
        const atEnd = run.sums('line', at.end);
        const left = (row: Row) => row.members.reduce((bytes, line) => bytes + total(atEnd[line]), 0);
        columns.push({ head: 'at exit', as: 'bytes', value: left });
    }
    columns.push({ head: 'function', value: (row) => lines.function[row.index] ?? '' });
    if (lines.source.some((text) => text)) {
        const text = (row: Row) => lines.source[row.index] ?? '';
        columns.push({
            head: 'source',
            as: 'long',
            value: text,
            title: (row) => lines.around[row.index] ?? '',
            show: (row) => <code>{text(row)}</code>,
        });
    }
    return columns;
}

function View({ page }: { page: Page }) {
    const { run, moment } = page;
    const { lines } = run.head;
    const [, find] = useKept<string>(filterOf(CAPTION), '');
    useLayoutEffect(() => {
        const look = page.taken(Lines.id);
        if (look) find(look.name.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    });
    const totals = run.moments.length ? run.totals(moment) : [];
    // Memory without a line has no callees, and neither has a sum of rows.
    const totalOf = (row: Row) => (lines.path[row.index] ? totals[row.index] : row.sum);
    const rows = rowsOf(page, 'line', (sum, index) => sum.allocated > 0 || total(sum) > 0 || total(totals[index]) > 0);
    rows.sort((a, b) => total(b.sum) - total(a.sum) || total(totalOf(b)) - total(totalOf(a)));
    return (
        <>
            <Table
                caption={CAPTION}
                note={run.moments.length > 0 && `at ${run.label(moment)}; ${SELF_AND_TOTAL}`}
                columns={columnsOf(page, rows, totalOf)}
                rows={rows}
                sum={(all) => sumOf(all)}
                onClick={({ index, name }) => page.narrow({ dimension: 'line', index, name })}
                isChosen={({ index }) => page.isOnly('line', index)}
            />
            {lines.changed.length > 0 && <p class="quiet">Changed since the run, so the text may be another line's: {lines.changed.join(', ')}.</p>}
        </>
    );
}

export const Lines = { id: 'lines', title: CAPTION, fits: (run: Run) => run.head.lines.path.some((path) => path), View };
