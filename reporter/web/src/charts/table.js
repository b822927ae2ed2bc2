// SPDX-License-Identifier: GPL-2.0-or-later
//
// A table that can be sorted by any column, filtered, copied, and saved as CSV. Figures are exact in the CSV and in the tooltip.

import { append, h, kept, named, replace } from '../base/dom.js';
import { patternOf } from '../base/pattern.js';
import { copy, csv, save, tabbed } from './csv.js';

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
/**
 * @template R
 * @typedef {object} Options
 * @property {string} [note]
 * @property {(rows: R[], isPart: boolean) => R|null} [sum] makes the last row, of all rows or of those that a filter has left
 * @property {number} [limit] of rows that are shown until more are asked for
 * @property {(row: R) => void} [onClick]
 * @property {(row: R) => boolean} [isChosen]
 * @property {string} [empty] what is said where there are no rows
 * @property {number} [sortBy] the column that the rows come sorted by
 */

const SHOWN = 25;
let numberOfTables = 0;

/** @template R @param {Column<R>} column @param {R} row @param {boolean} isHead */
function cell(column, row, isHead) {
    const value = column.value(row);
    const exact = column.isFigure && typeof value === 'number' ? value.toLocaleString('en-US') : undefined;
    const properties = { class: column.isFigure ? 'figure' : column.isLong ? 'long' : '', title: column.title?.(row) ?? exact, 'data-value': column.isFigure && value !== '' ? value : undefined };
    const text = column.show ? column.show(row) : String(value);
    const name = () => (typeof text === 'string' ? named(text) : h('span', { class: 'name' }, text));
    const content = isHead && !column.isFigure ? name() : text;
    return isHead ? h('th', { ...properties, scope: 'row' }, content) : h('td', properties, content);
}

/** @template R @param {Column<R>[]} columns @param {R} row */
const cells = (columns, row) => columns.map((column, i) => cell(column, row, i === 0));

/** @template R */
export class Table {
    /** @type {Column<R>[]} */
    #columns = [];
    /** @type {R[]} */
    #rows = [];
    #isAll = false;
    #head = h('thead');
    #body = h('tbody');
    #foot = h('tfoot');
    #more = h('button', { type: 'button', class: 'more' });
    #said = h('span', { role: 'status', class: 'quiet' });

    /** @param {string} caption also the CSV's file name @param {Options<R>} [options] */
    constructor(caption, options = {}) {
        const id = `table-${++numberOfTables}`;
        this.options = options;
        this.limit = options.limit ?? SHOWN;
        this.sorted = { column: options.sortBy ?? -1, isDown: true };
        this.note = h('span', { class: 'quiet' }, options.note ?? '');
        this.filter = h('input', { ...kept(`filter ${caption}`), type: 'search', class: 'filter', placeholder: 'filter (regular expression)', 'aria-label': `Filter ${caption}`, spellcheck: false, hidden: true, oninput: () => this.#draw() });
        const buttons = h(
            'div',
            { class: 'buttons tools' },
            h('button', { type: 'button', onclick: () => void copy(tabbed(this.#values())).then(() => replace(this.#said, 'copied')) }, 'Copy'),
            h('button', { type: 'button', onclick: () => save(`${caption.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}.csv`, csv(this.#values())) }, 'CSV'),
            this.#said,
        );
        const grid = h('table', { 'aria-labelledby': id }, this.#head, this.#body, this.#foot);
        this.element = h(
            'div',
            { class: 'table' },
            h('div', { class: 'above' }, h('h3', { id }, caption), this.note, this.filter, buttons),
            h('div', { class: 'scroll', tabIndex: 0, role: 'region', 'aria-label': `${caption}: table` }, grid),
            this.#more,
        );
    }

    /** @param {Column<R>[]} columns @param {R[]} rows @param {string} [note] */
    show(columns, rows, note) {
        this.#columns = columns;
        this.#rows = rows;
        if (note !== undefined) replace(this.note, note);
        this.#draw();
    }

    /** Leaves the rows with a text, as if the reader had asked for them. @param {string} text */
    find(text) {
        this.filter.value = text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
        this.filter.dispatchEvent(new Event('input', { bubbles: true }));
    }

    /** The rows in whose texts the filter finds something. */
    #wanted() {
        const { filter } = this;
        filter.removeAttribute('aria-invalid');
        const { pattern, problem } = patternOf(filter.value);
        filter.title = problem;
        if (problem) filter.setAttribute('aria-invalid', 'true');
        if (!pattern) return this.#rows;
        return this.#rows.filter((row) => this.#columns.some((column) => !column.isFigure && pattern.test(String(column.value(row)))));
    }

    #ordered() {
        const column = this.#columns[this.sorted.column];
        if (!column) return this.#wanted();
        const by = this.sorted.isDown ? -1 : 1;
        return [...this.#wanted()].sort((a, b) => {
            const [x, y] = [column.value(a), column.value(b)];
            return typeof x === 'number' && typeof y === 'number' ? by * (x - y) : by * String(x).localeCompare(String(y));
        });
    }

    /** As it is taken away. */
    #values() {
        return [this.#columns.map((column) => column.head), ...this.#ordered().map((row) => this.#columns.map((column) => column.value(row)))];
    }

    /** @param {R} row */
    #line(row) {
        const { onClick, isChosen } = this.options;
        if (!onClick) return h('tr', {}, ...cells(this.#columns, row));
        const chosen = isChosen?.(row) ?? false;
        const choose = () => onClick(row);
        const key = (/** @type {KeyboardEvent} */ event) => {
            if (event.key === 'Enter' || event.key === ' ') {
                event.preventDefault();
                choose();
            }
        };
        return h('tr', { class: chosen ? 'choosable chosen' : 'choosable', tabIndex: 0, onclick: choose, onkeydown: key, 'aria-current': chosen ? 'true' : undefined }, ...cells(this.#columns, row));
    }

    /** @param {Column<R>} column @param {number} i */
    #heading(column, i) {
        const { sorted } = this;
        const isBy = i === sorted.column;
        const sort = () => {
            this.sorted = { column: i, isDown: isBy ? !sorted.isDown : !!column.isFigure };
            this.#draw();
            /** @type {HTMLElement|null} */ (this.#head.querySelectorAll('button')[i])?.focus();
        };
        const arrow = isBy ? (sorted.isDown ? ' ▾' : ' ▴') : '';
        return h(
            'th',
            { scope: 'col', class: column.isFigure ? 'figure' : '', 'aria-sort': isBy ? (sorted.isDown ? 'descending' : 'ascending') : undefined },
            h('button', { type: 'button', onclick: sort }, column.head + arrow),
        );
    }

    #draw() {
        const { limit, options } = this;
        const columns = this.#columns;
        const order = this.#ordered();
        const nRows = this.#rows.length;
        const isPart = order.length < nRows;
        const shown = this.#isAll ? order : order.slice(0, limit);
        replace(this.#head, h('tr', {}, ...columns.map((column, i) => this.#heading(column, i))));
        const focused = [...this.#body.children].indexOf(/** @type {Element} */ (document.activeElement));
        replace(this.#body, ...shown.map((row) => this.#line(row)));
        // Keys go on from the chosen row.
        if (focused >= 0) /** @type {HTMLElement|undefined} */ (this.#body.children[focused])?.focus({ preventScroll: true });
        replace(this.#said, isPart && `${order.length.toLocaleString('en-US')} of ${nRows.toLocaleString('en-US')}`);
        this.filter.hidden = nRows <= limit && !this.filter.value;
        if (!order.length) append(this.#body, h('tr', {}, h('td', { colSpan: columns.length, class: 'quiet' }, nRows ? 'nothing found' : (options.empty ?? 'nothing'))));
        const sum = order.length ? options.sum?.(order, isPart) : null;
        replace(this.#foot, sum && h('tr', {}, ...cells(columns, sum)));
        this.#more.hidden = order.length <= limit;
        this.#more.textContent = this.#isAll ? `Show the first ${limit}` : `Show all ${order.length.toLocaleString('en-US')} rows`;
        this.#more.onclick = () => {
            this.#isAll = !this.#isAll;
            this.#draw();
        };
    }
}
