// SPDX-License-Identifier: GPL-2.0-or-later
//
// Figures of other tools at the chosen moment, computed or from their logs, and what each does not include.

import { h, replace } from '../base/dom.js';
import { moment as time, size } from '../base/units.js';
import { Table } from '../charts/table.js';
import { View } from './view.js';

/** @typedef {import('../runs/data.js').OtherFigure} OtherFigure */
/** @typedef {import('../runs/run.js').Run} Run */
/** @typedef {{figure: OtherFigure, bytes: number, at: number|null, most: number}} Row `at`: when it was sampled; null: then */

/** The place of the time that is nearest. @param {number[]} times @param {number} at */
function nearest(times, at) {
    return times.reduce((best, value, place) => (Math.abs(value - at) < Math.abs(times[best] - at) ? place : best), 0);
}

export class Others extends View {
    static id = 'others';
    static title = 'Compared with other tools';
    static isWhole = true;

    /** @param {Run} run */
    static fits(run) {
        return run.head.others.length > 0 && run.moments.length > 0;
    }

    /** @type {Table<Row>} */
    #table = new Table('Compared with other tools');
    #overlay = h('p', {});

    content() {
        replace(this.#overlay, this.run.head.overlay && `At the peak ${this.run.head.overlay}`);
        return [this.#table.element, this.#overlay];
    }

    update() {
        const { run, page } = this;
        const { unit } = run.head;
        const now = run.moments[page.moment];
        const rows = run.head.others.map((figure) => {
            const place = figure.times ? nearest(figure.times, now.time) : page.moment;
            const at = figure.times && figure.times[place] !== now.time ? figure.times[place] : null;
            return { figure, bytes: figure.values[place], at, most: figure.values.reduce((most, value) => Math.max(most, value), 0) };
        });
        this.#table.show(
            [
                { head: 'tool', value: (row) => `${row.figure.tool}: ${row.figure.figure}` },
                { head: `at ${now.name}`, isFigure: true, value: (row) => row.bytes, show: (row) => size(row.bytes) },
                { head: 'sampled at', isFigure: true, value: (row) => row.at ?? now.time, show: (row) => (row.at === null ? '' : time(row.at, unit)), title: () => '' },
                { head: 'max', isFigure: true, value: (row) => row.most, show: (row) => size(row.most) },
                { head: 'does not include', value: (row) => row.figure.leaves_out },
            ],
            rows,
        );
    }
}
