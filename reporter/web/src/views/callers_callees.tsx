// SPDX-License-Identifier: GPL-2.0-or-later
//
// Callers and callees of one function or line. A click on one goes on to it. A stack that goes through it several times counts once:
// with the caller of the outermost call, and the callee of the innermost.

import { useLayoutEffect, useMemo } from 'preact/hooks';
import { useKept } from '../charts/section.js';
import { type Column, Table } from '../charts/table.js';
import type { Page } from '../runs/page.js';
import type { Run } from '../runs/run.js';
import { rowsOfSums, sumOf, sumsBy, total, type Row } from '../runs/sums.js';

const NO_FRAME = ['(itself)', '(root)', '(smaller ones)'];
const [ITSELF, ROOT, DEEPER] = NO_FRAME;

function callersOf(run: Run, label: string, moment: number) {
    return sumsBy(run, moment, (cell) => {
        const stack = run.stack(cell);
        const outermost = stack.lastIndexOf(label);
        return outermost < 0 ? null : (stack[outermost + 1] ?? ROOT);
    });
}

function calleesOf(run: Run, label: string, moment: number) {
    return sumsBy(run, moment, (cell) => {
        const stack = run.stack(cell);
        const innermost = stack.indexOf(label);
        return innermost < 0 ? null : (stack[innermost - 1] ?? (run.cells.places[cell] ? DEEPER : ITSELF));
    });
}

/** The labels of frames, those that hold most at a moment by all that they called first. */
function labelsByTotal(run: Run, moment: number) {
    const totals = new Map<string, number>();
    const { bytes } = run.at(moment);
    for (let cell = 0; cell < run.nCells; cell++) {
        const held = run.side[cell] === 2 ? 0 : bytes[cell];
        for (const label of new Set(run.stack(cell))) totals.set(label, (totals.get(label) ?? 0) + held);
    }
    return [...totals].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([label]) => label);
}

const OFFERED = 300;

const columns = (head: string): Column<Row>[] => [
    { head, as: 'long', value: (row) => row.name },
    { head: 'bytes', as: 'bytes', value: (row) => total(row.sum) },
    { head: 'blocks', as: 'number', value: (row) => row.sum.hostBlocks + row.sum.deviceBlocks },
    { head: 'allocated so far', as: 'bytes', value: (row) => row.sum.allocated },
];

/** The frame that is called so, or else the first in whose name it is; at first a line or function of Python: most that holds memory is called by the interpreter. */
const found = (run: Run, labels: string[], wanted: string) => {
    if (wanted) return labels.find((label) => label === wanted) ?? labels.find((label) => label.includes(wanted)) ?? '';
    const { label, type } = run.head.frames;
    const python = new Set(label.filter((_, frame) => type[frame] === 'p'));
    return labels.find((each) => python.has(each)) ?? labels[0] ?? '';
};

function View({ page }: { page: Page }) {
    const { run, moment } = page;
    const [wanted, want] = useKept<string>('of', '');
    const labels = useMemo(() => labelsByTotal(run, moment), [run, moment]);
    const label = found(run, labels, wanted);
    useLayoutEffect(() => {
        const look = page.taken(CallersCallees.id);
        if (look) want(look.name);
    });
    const go = ({ name }: Row) => void (NO_FRAME.includes(name) || want(name));
    const table = (caption: string, head: string, of: typeof callersOf) => (
        <Table
            caption={caption}
            columns={columns(head)}
            rows={rowsOfSums(of(run, label, moment))}
            sum={(rows) => sumOf(rows)}
            limit={10}
            empty="none"
            onClick={go}
        />
    );
    return (
        <>
            <div class="buttons">
                <label>
                    of{' '}
                    <input
                        type="search"
                        class="filter long-name"
                        list="callers-callees-of"
                        placeholder="a function or a line"
                        aria-label="Callers and callees of"
                        spellcheck={false}
                        value={label || wanted}
                        onChange={(event) => want(event.currentTarget.value)}
                    />
                </label>
            </div>
            <datalist id="callers-callees-of">
                {labels.slice(0, OFFERED).map((each) => (
                    <option key={each} value={each} />
                ))}
            </datalist>
            <p role="status" class="quiet">
                {!label ? 'No match' : run.moments.length > 0 && `at ${run.label(moment)}; click a row to go to it`}
            </p>
            {table('Callers', 'caller', callersOf)}
            {table('Callees', 'callee', calleesOf)}
        </>
    );
}

export const CallersCallees = {
    id: 'callers-callees',
    title: 'Callers and callees',
    fits: (run: Run) => run.nodes.parent.length > 1 && run.measures.includes('allocated'),
    View,
};
