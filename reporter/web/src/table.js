// SPDX-License-Identifier: GPL-2.0-or-later
//
// A table that can be sorted by any column, filtered, copied, and saved as CSV. Figures are exact in the CSV and in the tooltip.

import { append, h, replace } from './dom.js';

/**
 * @template R
 * @typedef {object} Column
 * @property {string} head
 * @property {(row: R) => number|string} value exact: what is sorted by and saved
 * @property {(row: R) => string|Node} [show] as a person reads it (the value, if left out)
 * @property {(row: R) => string} [title]
 * @property {boolean} [isFigure] right-aligned, the largest first
 * @property {boolean} [isLong] text that may take several lines
 */

const SHOWN = 25;
let numberOfTables = 0;

/** A field of a CSV file. A text that a spreadsheet would take for a formula is marked as text. @param {string|number} value */
function field(value) {
    if (typeof value === 'number') return String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** @template R @param {Column<R>[]} columns @param {R[]} rows */
export const csv = (columns, rows) =>
    [columns.map((column) => field(column.head)), ...rows.map((row) => columns.map((column) => field(column.value(row))))].map((fields) => fields.join(',')).join('\r\n') + '\r\n';

/** @param {string} name @param {string} text */
function save(name, text) {
    const url = URL.createObjectURL(new Blob([text], { type: 'text/csv;charset=utf-8' }));
    const link = h('a', { href: url, download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** @param {string} text */
async function copy(text) {
    try {
        await navigator.clipboard.writeText(text);
    } catch {
        // Not allowed here, as on some browsers for pages opened from a disk.
        const area = h('textarea', { value: text, class: 'unseen' });
        document.body.append(area);
        area.select();
        document.execCommand('copy');
        area.remove();
    }
}

/**
 * @template R
 * @param {string} caption also the CSV's file name
 * @param {{note?: string, sum?: (rows: R[], isPart: boolean) => R|null, limit?: number, onClick?: (row: R) => void, isChosen?: (row: R) => boolean, empty?: string, sortBy?: number}} [options]
 * `sum` makes the last row, of all rows or of those that a filter has left; `sortBy` is the column that the rows come sorted by
 */
export function table(caption, options = {}) {
    const id = `table-${++numberOfTables}`;
    const limit = options.limit ?? SHOWN;
    /** @type {Column<R>[]} */
    let columns = [];
    /** @type {R[]} */
    let rows = [];
    let sorted = { column: options.sortBy ?? -1, isDown: true };
    let isAll = false;

    const head = h('thead');
    const body = h('tbody');
    const foot = h('tfoot');
    const more = h('button', { type: 'button', class: 'more' });
    const note = h('span', { class: 'quiet' }, options.note ?? '');
    const said = h('span', { role: 'status', class: 'quiet' });
    const filter = h('input', { type: 'search', class: 'filter', placeholder: 'filter (regular expression)', 'aria-label': `Filter ${caption}`, spellcheck: false, hidden: true, oninput: () => draw() });
    const buttons = h(
        'div',
        { class: 'buttons tools' },
        h('button', { type: 'button', onclick: () => void copy(tabbed()).then(() => replace(said, 'copied')) }, 'Copy'),
        h('button', { type: 'button', onclick: () => save(`${caption.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}.csv`, csv(columns, ordered())) }, 'CSV'),
        said,
    );
    const grid = h('table', { 'aria-labelledby': id }, head, body, foot);
    const element = h(
        'div',
        { class: 'table' },
        h('div', { class: 'above' }, h('h3', { id }, caption), note, filter, buttons),
        h('div', { class: 'scroll', tabIndex: 0, role: 'region', 'aria-labelledby': id }, grid),
        more,
    );

    /** The rows in whose texts the filter finds something. */
    function wanted() {
        filter.removeAttribute('aria-invalid');
        if (!filter.value) return rows;
        try {
            const pattern = new RegExp(filter.value, 'i');
            return rows.filter((row) => columns.some((column) => !column.isFigure && pattern.test(String(column.value(row)))));
        } catch {
            filter.setAttribute('aria-invalid', 'true');
            return rows;
        }
    }

    function ordered() {
        const column = columns[sorted.column];
        if (!column) return wanted();
        const by = sorted.isDown ? -1 : 1;
        return [...wanted()].sort((a, b) => {
            const [x, y] = [column.value(a), column.value(b)];
            return typeof x === 'number' && typeof y === 'number' ? by * (x - y) : by * String(x).localeCompare(String(y));
        });
    }

    const tabbed = () =>
        [columns.map((column) => column.head), ...ordered().map((row) => columns.map((column) => String(column.value(row)).replaceAll(/[\t\n\r]/g, ' ')))]
            .map((fields) => fields.join('\t'))
            .join('\n') + '\n';

    /** @param {Column<R>} column @param {R} row @param {boolean} isHead */
    function cell(column, row, isHead) {
        const value = column.value(row);
        const exact = column.isFigure && typeof value === 'number' ? value.toLocaleString('en-US') : undefined;
        const properties = { class: column.isFigure ? 'figure' : column.isLong ? 'long' : '', title: column.title?.(row) ?? exact, 'data-value': column.isFigure && value !== '' ? value : undefined };
        const content = column.show ? column.show(row) : String(value);
        return isHead ? h('th', { ...properties, scope: 'row' }, content) : h('td', properties, content);
    }

    /** @param {R} row */
    function line(row) {
        const cells = columns.map((column, i) => cell(column, row, i === 0));
        if (!options.onClick) return h('tr', {}, ...cells);
        const choose = () => options.onClick?.(row);
        const isChosen = options.isChosen?.(row) ?? false;
        const key = (/** @type {KeyboardEvent} */ event) => {
            if (event.key === 'Enter' || event.key === ' ') {
                event.preventDefault();
                choose();
            }
        };
        return h('tr', { class: isChosen ? 'choosable chosen' : 'choosable', tabIndex: 0, onclick: choose, onkeydown: key, 'aria-current': isChosen ? 'true' : undefined }, ...cells);
    }

    function draw() {
        const order = ordered();
        const shown = isAll ? order : order.slice(0, limit);
        const heads = columns.map((column, i) => {
            const isBy = i === sorted.column;
            const sort = () => {
                sorted = { column: i, isDown: isBy ? !sorted.isDown : !!column.isFigure };
                draw();
                /** @type {HTMLElement|null} */ (head.querySelectorAll('button')[i])?.focus();
            };
            const arrow = isBy ? (sorted.isDown ? ' ▾' : ' ▴') : '';
            return h(
                'th',
                { scope: 'col', class: column.isFigure ? 'figure' : '', 'aria-sort': isBy ? (sorted.isDown ? 'descending' : 'ascending') : undefined },
                h('button', { type: 'button', onclick: sort }, column.head + arrow),
            );
        });
        replace(head, h('tr', {}, ...heads));
        replace(body, ...shown.map(line));
        replace(said, order.length < rows.length && `${order.length.toLocaleString('en-US')} of ${rows.length.toLocaleString('en-US')}`);
        filter.hidden = rows.length <= limit && !filter.value;
        if (!order.length) append(body, h('tr', {}, h('td', { colSpan: columns.length, class: 'quiet' }, rows.length ? 'nothing found' : (options.empty ?? 'nothing'))));
        const sum = order.length ? options.sum?.(order, order.length < rows.length) : null;
        replace(foot, sum && h('tr', {}, ...columns.map((column, i) => cell(column, sum, i === 0))));
        more.hidden = order.length <= limit;
        more.textContent = isAll ? `Show the first ${limit}` : `Show all ${order.length.toLocaleString('en-US')} rows`;
        more.onclick = () => {
            isAll = !isAll;
            draw();
        };
    }

    return {
        element,
        /** @param {Column<R>[]} newColumns @param {R[]} newRows @param {string} [newNote] */
        show(newColumns, newRows, newNote) {
            columns = newColumns;
            rows = newRows;
            if (newNote !== undefined) replace(note, newNote);
            draw();
        },
    };
}
