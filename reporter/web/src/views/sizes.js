// SPDX-License-Identifier: GPL-2.0-or-later
//
// How large the blocks are that a program asks for: at the peak and in the whole run, of all, of an owner or of a line; and the lines
// that ask most often. A size of n bits is in class n, so each class is twice as wide as the one before.

import { choice, h, replace } from '../base/dom.js';
import { percent, size, whole } from '../base/units.js';
import { Table } from '../charts/table.js';
import { View } from './view.js';

/** @typedef {import('../runs/data.js').SizesRow} Row */
/** @typedef {import('../runs/data.js').SizesOf} SizesOf */
/** @typedef {import('../runs/run.js').Run} Run */
/** @typedef {'held'|'asked'} When */
/** @typedef {{label: string, class: number, held: [number, number], asked: [number, number]}} Class blocks and bytes */

const ALL = -1; // in the place of a class
const SELECTED = { owners: 'owner', lines: 'line' };
// The columns of the tables by owner and line: up to so many bits.
const STEPS = /** @type {[string, number][]} */ ([['< 64 B', 6], ['< 512 B', 9], ['< 4 KiB', 12], ['< 32 KiB', 15], ['< 256 KiB', 18], ['< 2 MiB', 21], ['< 16 MiB', 24], ['larger', Infinity]]);

/** @param {number} bits */
const labelOf = (bits) => (!bits ? '0 B' : bits === 1 ? '1 B' : `${size(2 ** (bits - 1))} to ${size(2 ** bits)}`);
/** @param {SizesOf} of */
const blocksOf = (of) => of.classes.reduce((sum, [, blocks]) => sum + blocks, 0);
/** @param {SizesOf} of */
const bytesOf = (of) => of.classes.reduce((sum, [, , bytes]) => sum + bytes, 0);
/** @param {SizesOf} of */
const meanOf = (of) => Math.floor(bytesOf(of) / (blocksOf(of) || 1));

/** @param {Row} row @returns {Class[]} without gaps, the smallest first */
function classesOf({ held, asked }) {
    const all = [...held.classes, ...asked.classes].map(([bits]) => bits);
    const first = Math.min(...all);
    return Array.from({ length: all.length ? Math.max(...all) - first + 1 : 0 }, (_, i) => {
        const of = (/** @type {SizesOf} */ { classes }) => /** @type {[number, number]} */ (classes.find(([bits]) => bits === first + i)?.slice(1) ?? [0, 0]);
        return { label: labelOf(first + i), class: first + i, held: of(held), asked: of(asked) };
    });
}

/** A number with a bar as long as it is. @param {number} n @param {number} most */
const withBar = (n, most) => h('span', { class: 'with-bar' }, h('span', { class: 'bar-room', 'aria-hidden': 'true' }, h('i', { style: { width: `${n ? Math.max(1, (100 * n) / most) : 0}%` } })), h('span', { class: 'beside-bar' }, n ? whole(n) : '–'));

export class Sizes extends View {
    static id = 'sizes';
    static title = 'Block sizes';
    static isWhole = true;

    /** @param {Run} run */
    static fits(run) {
        return run.head.sizes !== null;
    }

    /** @type {When} */
    #when = 'asked';
    /** @type {{by: 'owners'|'lines', name: string}|null} null: all */
    #of = null;
    #exact = h('p', { class: 'quiet' });
    #narrowed = h('p', { class: 'chips', role: 'status' });
    /** @type {Table<Class>} */
    #histogram = new Table('Blocks by size', {
        limit: 64,
        sum: (rows) => {
            const sum = (/** @type {When} */ when) => /** @type {[number, number]} */ ([0, 1].map((i) => rows.reduce((all, row) => all + row[when][i], 0)));
            return { label: 'all', class: ALL, held: sum('held'), asked: sum('asked') };
        },
    });
    #tables = {
        /** @type {Table<Row>} */
        owners: new Table('Blocks by size and owner', { limit: 12, onClick: (row) => this.#narrow('owners', row), isChosen: (row) => this.#isOf('owners', row) }),
        /** @type {Table<Row>} */
        lines: new Table('Blocks by size and line', { limit: 12, onClick: (row) => this.#narrow('lines', row), isChosen: (row) => this.#isOf('lines', row) }),
    };
    /** @type {Table<Row>} */
    #often = new Table('Lines that allocate most often', { limit: 12, onClick: (row) => this.#narrow('lines', row), isChosen: (row) => this.#isOf('lines', row) });

    get #sizes() {
        return /** @type {NonNullable<import('../runs/data.js').RunHead['sizes']>} */ (this.run.head.sizes);
    }

    content() {
        const words = /** @type {[When, string][]} */ ([
            ['asked', 'in the whole run'],
            ['held', `at ${this.#sizes.when}`],
        ]);
        const when = choice('By owner and line', words, this.#when, (value) => {
            this.#when = value;
            this.#show();
        });
        const { owners, lines } = this.#tables;
        return [this.#exact, this.#narrowed, this.#histogram.element, h('div', { class: 'above' }, when), owners.element, lines.element, this.#often.element];
    }

    /** These are figures of the run, whatever moment is chosen. */
    update() {
        this.#show();
    }

    /** @param {'owners'|'lines'} by @param {Row} row */
    #isOf(by, row) {
        return this.#of?.by === by && this.#of.name === row.name;
    }

    /** Again what it is narrowed to already: no longer. @param {'owners'|'lines'} by @param {Row} row */
    #narrow(by, row) {
        this.#of = this.#isOf(by, row) ? null : { by, name: row.name };
        this.#show();
    }

    #show() {
        const { all, when, has_all_records } = this.#sizes;
        const of = this.#of;
        const shown = (of && this.#sizes[of.by].find(({ name }) => name === of.name)) || all;
        const leave = h('button', { type: 'button', class: 'chip', onclick: () => ((this.#of = null), this.#show()) }, of ? `only ${SELECTED[of.by]} ${of.name} ✕` : '');
        replace(this.#narrowed, of && leave);
        replace(this.#exact, this.#howExact(has_all_records));
        this.#drawHistogram(shown, when);
        this.#drawTables();
    }

    /** @param {boolean} isAll blocks have records */
    #howExact(isAll) {
        const { held, asked } = this.#sizes.all;
        if (!held.by_mean && !asked.by_mean) return 'The size of each block is on record. Click an owner or a line to see the sizes of its blocks.';
        const text = `${percent(held.by_mean, blocksOf(held))} of the sizes at the peak and ${percent(asked.by_mean, blocksOf(asked))} in the whole run are averages of a call stack`;
        return `${text}${isAll ? '' : '; record with --large=0 for exact ones'}. Click an owner or a line to see the sizes of its blocks.`;
    }

    /** @param {Row} row @param {string} when */
    #drawHistogram(row, when) {
        const rows = classesOf(row);
        const most = { held: Math.max(1, ...rows.map((each) => each.held[0])), asked: Math.max(1, ...rows.map((each) => each.asked[0])) };
        /** @type {import('../charts/table.js').Column<Class>[]} */
        const columns = [{ head: 'size of a block', value: (each) => each.label }];
        for (const [key, text] of /** @type {[When, string][]} */ ([['held', 'at the peak'], ['asked', 'in all']])) {
            columns.push(
                { head: `blocks ${text}`, isFigure: true, value: (each) => each[key][0], show: (each) => (each.class === ALL ? whole(each[key][0]) : withBar(each[key][0], most[key])) },
                { head: `bytes ${text}`, isFigure: true, value: (each) => each[key][1], show: (each) => (each[key][1] ? size(each[key][1]) : '–') },
            );
        }
        this.#histogram.show(columns, rows, `at ${when}, and in the whole run`);
    }

    #drawTables() {
        const { owners, lines } = this.#sizes;
        const key = this.#when;
        /** @param {string} head @returns {import('../charts/table.js').Column<Row>[]} */
        const columns = (head) => [
            { head, value: (row) => row.name, isLong: head === 'line' },
            ...STEPS.map(([name, most], i) => {
                const least = i ? STEPS[i - 1][1] : -1;
                const value = (/** @type {Row} */ row) => row[key].classes.reduce((sum, [bits, blocks]) => (bits > least && bits <= most ? sum + blocks : sum), 0);
                return { head: name, isFigure: true, value, show: (/** @type {Row} */ row) => (value(row) ? whole(value(row)) : '–') };
            }),
            { head: 'blocks', isFigure: true, value: (row) => blocksOf(row[key]), show: (row) => whole(blocksOf(row[key])) },
            { head: 'bytes', isFigure: true, value: (row) => bytesOf(row[key]), show: (row) => size(bytesOf(row[key])) },
            { head: 'mean', isFigure: true, value: (row) => meanOf(row[key]), show: (row) => size(meanOf(row[key])) },
        ];
        const ranked = (/** @type {Row[]} */ rows) => rows.filter((row) => row[key].classes.length).sort((a, b) => blocksOf(b[key]) - blocksOf(a[key]));
        const note = key === 'held' ? `at ${this.#sizes.when}` : 'in the whole run';
        this.#tables.owners.show(columns('owner'), ranked(owners), note);
        this.#tables.lines.show(columns('line'), ranked(lines), note);
        const all = blocksOf(this.#sizes.all.asked);
        this.#often.show(
            [
                { head: 'line', value: (row) => row.name, isLong: true },
                { head: 'blocks', isFigure: true, value: (row) => blocksOf(row.asked), show: (row) => whole(blocksOf(row.asked)) },
                { head: 'share', isFigure: true, value: (row) => (100 * blocksOf(row.asked)) / all, show: (row) => percent(blocksOf(row.asked), all), title: () => '' },
                { head: 'bytes', isFigure: true, value: (row) => bytesOf(row.asked), show: (row) => size(bytesOf(row.asked)) },
                { head: 'mean', isFigure: true, value: (row) => meanOf(row.asked), show: (row) => size(meanOf(row.asked)) },
                { head: 'at once', isFigure: true, value: (row) => row.at_once, show: (row) => whole(row.at_once) },
            ],
            lines,
            'in the whole run; at once: freed before their thread had allocated anything else',
        );
    }
}
