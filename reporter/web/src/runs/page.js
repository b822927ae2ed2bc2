// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the reader looks at: a run (a process, or the sum of all), a moment of it, and another moment to compare with.
// Views ask for changes here and are told of them; they know nothing of each other.

/** @typedef {import('./run.js').Run} Run */
/** @typedef {import('./data.js').PageData} PageData */

export class Page {
    /** @type {(() => void)[]} */
    #listeners = [];

    /** @param {PageData} data @param {Run[]} runs */
    constructor(data, runs) {
        this.data = data;
        this.runs = runs;
        this.run = runs[0];
        /** Index of the moment that all views show. */
        this.moment = this.run.mainMoment;
        /** Index of the moment it is compared with. @type {number|null} */
        this.other = data.difference && this.moment > 0 ? 0 : null;
    }

    /** @param {() => void} listener */
    onChange(listener) {
        this.#listeners.push(listener);
    }

    #tell() {
        for (const listener of this.#listeners) listener();
    }

    /** @param {number} moment */
    select(moment) {
        const last = this.run.moments.length - 1;
        const chosen = Math.max(0, Math.min(last, moment));
        if (chosen === this.moment || last < 0) return;
        this.moment = chosen;
        if (this.other === chosen) this.other = null;
        this.#tell();
    }

    /** @param {number|null} moment */
    compare(moment) {
        const chosen = moment === this.moment ? null : moment;
        if (chosen === this.other) return;
        this.other = chosen;
        this.#tell();
    }

    /** @param {Run} run */
    show(run) {
        if (run === this.run) return;
        this.run = run;
        this.moment = run.mainMoment;
        this.other = null;
        this.#tell();
    }
}
