// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the reader looks at: a run (a process, or the sum of all), a moment of it, and another moment to compare with.
// Views ask for changes here and are told of them; they know nothing of each other.

/** @typedef {import('./run.js').Run} Run */
/** @typedef {import('./data.js').PageData} PageData */

/**
 * A view is a section of the page. `mount` fills `place` once for each run and returns what brings it up to date after the
 * reader has chosen another moment; it is called once right after mounting.
 * @typedef {object} View
 * @property {string} id letters and hyphens: the section's anchor
 * @property {string} title
 * @property {(run: Run) => boolean} [fits] whether the run has anything to show in it (always, if left out)
 * @property {(place: HTMLElement, page: Page) => () => void} mount
 */

export class Page {
    /** @type {((what: 'run'|'moment') => void)[]} */
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

    /** @param {(what: 'run'|'moment') => void} listener */
    onChange(listener) {
        this.#listeners.push(listener);
    }

    /** @param {'run'|'moment'} what */
    #tell(what) {
        for (const listener of this.#listeners) listener(what);
    }

    /** @param {number} moment */
    select(moment) {
        const last = this.run.moments.length - 1;
        const chosen = Math.max(0, Math.min(last, moment));
        if (chosen === this.moment || last < 0) return;
        this.moment = chosen;
        if (this.other === chosen) this.other = null;
        this.#tell('moment');
    }

    /** @param {number|null} moment */
    compare(moment) {
        const chosen = moment === this.moment ? null : moment;
        if (chosen === this.other) return;
        this.other = chosen;
        this.#tell('moment');
    }

    /** @param {Run} run */
    show(run) {
        if (run === this.run) return;
        this.run = run;
        this.moment = run.mainMoment;
        this.other = null;
        this.#tell('run');
    }
}
