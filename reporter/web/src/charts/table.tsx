// SPDX-License-Identifier: GPL-2.0-or-later
//
// A table that can be sorted by any column, filtered, copied, and saved as CSV. Figures are exact in the CSV and in the tooltip.

import type { ComponentChildren } from 'preact';
import { useContext, useId, useState } from 'preact/hooks';
import { patternOf } from '../base/pattern.js';
import { fixed, growth, moment, size, whole } from '../base/units.js';
import { copy, csv, save, tabbed } from './csv.js';
import { filterOf, useKept, ViewContext } from './section.js';

/** "percent" is of 0 to 100; "change" is coloured, "signed" counts; "figure" is shown in a way of its own. */
export type Kind = 'bytes' | 'number' | 'growth' | 'change' | 'signed' | 'percent' | 'time' | 'figure' | 'long';
export type Column<R> = {
    head: string;
    /** Text that takes one line, if left out. */
    as?: Kind;
    /** Exact: what is sorted by and saved. */
    value: (row: R) => number | string;
    /** As a person reads it, if that is not how others of its kind are shown. */
    show?: (row: R) => ComponentChildren;
    title?: (row: R) => string;
    /** Left out where there is little room. */
    isMinor?: boolean;
};

const SHOWN: Record<Kind, (value: number, unit: string) => string> = {
    bytes: (value) => (value ? size(value) : '–'),
    number: (value) => (value ? whole(value) : '–'),
    growth: (value) => growth(value),
    change: (value) => growth(value),
    signed: (value) => (value ? `${value > 0 ? '+' : ''}${whole(value)}` : ''),
    percent: (value) => `${fixed(value, 1)} %`,
    time: (value, unit) => moment(value, unit),
    figure: String,
    long: String,
};

/** Right-aligned, the largest first. */
const isFigure = ({ as }: { as?: Kind }) => as !== undefined && as !== 'long';

type TableProps<R> = {
    /** Also the CSV's file name. */
    caption: string;
    columns: Column<NoInfer<R>>[];
    rows: R[];
    note?: ComponentChildren;
    /** Makes the last row, of all rows or of those that a filter has left. */
    sum?: (rows: NoInfer<R>[], isPart: boolean) => NoInfer<R> | null;
    /** Of rows that are shown until more are asked for. */
    limit?: number;
    empty?: string;
    onClick?: (row: NoInfer<R>) => void;
    isChosen?: (row: NoInfer<R>) => boolean;
};

/** A name that may go on in another line after a slash, and elsewhere only where it must. */
export const Name = ({ text }: { text: string }) => (
    <span class="name">{text.split(/(?<=\/)/).map((part, i) => (i ? [<wbr key={i} />, part] : part))}</span>
);

function Cell<R>({ column, row, isHead }: { column: Column<R>; row: R; isHead: boolean }) {
    const unit = useContext(ViewContext)?.page.whole.head.unit ?? 'ms';
    const { as } = column;
    const value = column.value(row);
    const exact = isFigure(column) && as !== 'time' && as !== 'percent' && typeof value === 'number' ? value.toLocaleString('en-US') : undefined;
    const change = as !== 'change' || !value ? '' : Number(value) > 0 ? ' grown' : ' shrunk';
    const properties = {
        class: `${isFigure(column) ? `figure${change}` : (as ?? '')}${column.isMinor ? ' minor' : ''}`,
        // A bar behind a share.
        style: as === 'percent' && typeof value === 'number' ? { '--share': value } : undefined,
        title: column.title?.(row) ?? exact,
        'data-value': isFigure(column) && typeof value === 'number' ? value : undefined,
    };
    const shown = column.show ? column.show(row) : as && typeof value === 'number' ? SHOWN[as](value, unit) : String(value);
    if (!isHead) return <td {...properties}>{shown}</td>;
    const name = typeof shown === 'string' ? <Name text={shown} /> : <span class="name">{shown}</span>;
    return (
        <th scope="row" {...properties}>
            {isFigure(column) ? shown : name}
        </th>
    );
}

const cells = <R,>(columns: Column<R>[], row: R) => columns.map((column, i) => <Cell key={i} column={column} row={row} isHead={i === 0} />);

function Line<R>({ columns, row, onClick, isChosen }: { row: R } & Pick<TableProps<R>, 'columns' | 'onClick' | 'isChosen'>) {
    if (!onClick) return <tr>{cells(columns, row)}</tr>;
    const chosen = isChosen?.(row) ?? false;
    const key = (event: KeyboardEvent) => {
        if (event.key !== 'Enter' && event.key !== ' ') return;
        event.preventDefault();
        onClick(row);
    };
    return (
        <tr
            class={chosen ? 'choosable chosen' : 'choosable'}
            tabIndex={0}
            onClick={() => onClick(row)}
            onKeyDown={key}
            aria-current={chosen ? 'true' : undefined}
        >
            {cells(columns, row)}
        </tr>
    );
}

type Sorting = { column: number; isDown: boolean };

function sorted<R>(rows: R[], column: Column<R> | undefined, isDown: boolean) {
    if (!column) return rows;
    const by = isDown ? -1 : 1;
    return [...rows].sort((a, b) => {
        const [x, y] = [column.value(a), column.value(b)];
        return by * (typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y)));
    });
}

export function Table<R>({ caption, columns, rows, note, sum, limit = 25, empty = 'nothing', onClick, isChosen }: TableProps<R>) {
    const id = useId();
    // The title of a table that is all of its view would be read twice.
    const isTitle = useContext(ViewContext)?.title === caption;
    const [wanted, want] = useKept<string>(filterOf(caption), '');
    const [{ column: by, isDown }, sort] = useState<Sorting>({ column: -1, isDown: true });
    const [isAll, showAll] = useState(false);
    const [said, say] = useState('');
    const { pattern, problem } = patternOf(wanted);
    const found = pattern ? rows.filter((row) => columns.some((column) => !isFigure(column) && pattern.test(String(column.value(row))))) : rows;
    const order = sorted(found, columns[by], isDown);
    const isPart = found.length < rows.length;
    const total = order.length ? sum?.(order, isPart) : null;
    const values = () => [columns.map(({ head }) => head), ...order.map((row) => columns.map(({ value }) => value(row)))];
    const name = `${caption.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}.csv`;
    return (
        <div class="table">
            <div class="above">
                <h3 id={id} class={isTitle ? 'unseen' : undefined}>
                    {caption}
                </h3>
                <span class="quiet">{note}</span>
                <input
                    type="search"
                    class="filter"
                    placeholder="filter (regular expression)"
                    aria-label={`Filter ${caption}`}
                    aria-invalid={problem ? 'true' : undefined}
                    title={problem}
                    spellcheck={false}
                    hidden={rows.length <= limit && !wanted}
                    value={wanted}
                    onInput={(event) => want(event.currentTarget.value)}
                />
                <div class="buttons tools">
                    <button type="button" onClick={() => void copy(tabbed(values())).then(() => say('copied'))}>
                        Copy
                    </button>
                    <button type="button" onClick={() => save(name, csv(values()))}>
                        CSV
                    </button>
                    <span role="status" class="quiet">
                        {isPart ? `${whole(order.length)} of ${whole(rows.length)}` : said}
                    </span>
                </div>
            </div>
            <div class="scroll" tabIndex={0} role="region" aria-label={`${caption}: table`}>
                <table aria-labelledby={id}>
                    <thead>
                        <tr>
                            {columns.map((column, i) => (
                                <th
                                    key={i}
                                    scope="col"
                                    class={`${isFigure(column) ? 'figure' : ''}${column.isMinor ? ' minor' : ''}`}
                                    aria-sort={i === by ? (isDown ? 'descending' : 'ascending') : undefined}
                                >
                                    <button type="button" onClick={() => sort({ column: i, isDown: i === by ? !isDown : isFigure(column) })}>
                                        {column.head + (i === by ? (isDown ? ' ▾' : ' ▴') : '')}
                                    </button>
                                </th>
                            ))}
                        </tr>
                    </thead>
                    <tbody>
                        {(isAll ? order : order.slice(0, limit)).map((row, i) => (
                            <Line key={i} columns={columns} row={row} onClick={onClick} isChosen={isChosen} />
                        ))}
                        {!order.length && (
                            <tr>
                                <td colSpan={columns.length} class="quiet">
                                    {rows.length ? 'nothing found' : empty}
                                </td>
                            </tr>
                        )}
                    </tbody>
                    <tfoot>{total && <tr>{cells(columns, total)}</tr>}</tfoot>
                </table>
            </div>
            <button type="button" class="more" hidden={order.length <= limit} onClick={() => showAll(!isAll)}>
                {isAll ? `Show the first ${limit}` : `Show all ${whole(order.length)} rows`}
            </button>
        </div>
    );
}
