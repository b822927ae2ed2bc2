// SPDX-License-Identifier: GPL-2.0-or-later
//
// The reader's choices: a run (a process, or the sum of all), a moment of it, and another moment to compare with.
// Views ask for changes here and are notified; they know nothing of each other. Of two moments the later one is shown as
// compared with the earlier one, whichever was chosen first: what has grown is more. Columns of a comparison have no such
// order, and are shown as they were asked for.

import { NO_FILTER, partOf, problemOf } from './filter.js';

/** @typedef {import('./filter.js').Filter} Filter */
/** @typedef {import('./run.js').Run} Run */
/** @typedef {import('./data.js').PageData} PageData */
/** The call tree is narrowed to this: an owner, a line, or a cell, by its place in the run. @typedef {{dimension: 'owner'|'line'|'cell', index: number, name: string}} Only */

/** A frame that a section is to show, with the names of its callers and its own, the outermost first. @typedef {{section: string, name: string, path: string[]}} Look */
/** All that is chosen, at once. @typedef {{run: Run, chosen: number, against: number|null, only: Only|null, filter: Filter}} Choices */

/** @param {Filter} one @param {Filter} other */
const isSame = (one, other) => one.only === other.only && one.except === other.except && one.isGiven === other.isGiven;

export class Page {
    /** @type {(() => void)[]} */
    #listeners = [];

    /** @param {PageData} data @param {Run[]} runs */
    constructor(data, runs) {
        this.data = data;
        this.runs = runs;
        /** The run that the reader has chosen, in full. */
        this.whole = runs[0];
        /** The part of it that the filter leaves. */
        this.run = partOf(this.whole, NO_FILTER);
        this.filter = NO_FILTER;
        const { chosen, against } = this.opening(this.run);
        /** Index of the moment that the reader has chosen. */
        this.chosen = chosen;
        /** Index of the one to compare with. @type {number|null} */
        this.against = against;
        /** @type {Only|null} */
        this.only = null;
        /** A request to a section, not taken yet. @type {Look|null} */
        this.look = null;
    }

    /** Has a section show a frame. @param {Look} look */
    lookAt(look) {
        this.look = look;
        this.#notify();
    }

    /** Taken once: what the section is to show. @param {string} section */
    taken(section) {
        const { look } = this;
        if (look?.section !== section) return null;
        this.look = null;
        return look;
    }

    /** Index of the moment that all views show. */
    get moment() {
        return this.against === null || this.data.difference ? this.chosen : Math.max(this.chosen, this.against);
    }

    /** Index of the moment it is compared with. @returns {number|null} */
    get other() {
        return this.against === null || this.data.difference ? this.against : Math.min(this.chosen, this.against);
    }

    /** Choices before the reader's. @param {Run} run @returns {{chosen: number, against: number|null}} */
    opening(run) {
        const chosen = run.mainMoment;
        return { chosen, against: this.data.difference && chosen > 0 ? 0 : null };
    }

    /** @param {() => void} listener */
    onChange(listener) {
        this.#listeners.push(listener);
    }

    #notify() {
        for (const listener of this.#listeners) listener();
    }

    /** all at once, as an address has it. @param {Choices} choices */
    choose({ run, chosen, against, only, filter }) {
        const isFilterSame = isSame(filter, this.filter);
        if (run === this.whole && isFilterSame && chosen === this.chosen && against === this.against && only?.index === this.only?.index && only?.dimension === this.only?.dimension) return;
        if (run !== this.whole || !isFilterSame) this.#part(run, filter);
        Object.assign(this, { chosen, against, only });
        this.#notify();
    }

    /** @param {Run} whole @param {Filter} filter */
    #part(whole, filter) {
        this.filter = problemOf(filter) ? NO_FILTER : filter;
        this.whole = whole;
        this.run = partOf(whole, this.filter);
    }

    /** Shows what a filter leaves; nothing is done about one that has a problem. @param {Filter} filter */
    sift(filter) {
        if (problemOf(filter) || isSame(filter, this.filter)) return;
        this.#part(this.whole, filter);
        this.#notify();
    }

    get isPart() {
        return this.run !== this.whole;
    }

    /** @param {number} moment */
    select(moment) {
        const last = this.run.moments.length - 1;
        const chosen = Math.max(0, Math.min(last, moment));
        if (chosen === this.chosen || last < 0) return;
        this.chosen = chosen;
        if (this.against === chosen) this.against = null;
        this.#notify();
    }

    /** @param {number|null} moment */
    compare(moment) {
        const against = moment === this.chosen ? null : moment;
        if (against === this.against) return;
        this.against = against;
        this.#notify();
    }

    /** Again what it is narrowed to already: no longer. @param {Only|null} only */
    narrow(only) {
        const isAgain = only && this.isOnly(only.dimension, only.index);
        if (!only && !this.only) return;
        this.only = isAgain ? null : only;
        this.#notify();
    }

    /** @param {Only['dimension']} dimension @param {number} index */
    isOnly(dimension, index) {
        return this.only?.dimension === dimension && this.only.index === index;
    }

    /**
     * Other data of the same runs, which have gone on. The reader stays with the process, with the moments, unless that was the
     * last or the peak, which may be others now, and with what the call tree is narrowed to.
     * @param {PageData} data @param {Run[]} runs @param {() => void} before called before listeners are notified
     */
    renew(data, runs, before) {
        const { whole: run, chosen, against, only } = this;
        const isSum = (/** @type {Run} */ each) => !!each.parts.together;
        const next = runs.find((each) => each.head.key === run.head.key && isSum(each) === isSum(run)) ?? runs[0];
        const again = (/** @type {number|null} */ index) => {
            const was = index === null ? undefined : run.moments[index];
            const found = was ? next.moments.findIndex((each) => each.id === was.id && each.reason === was.reason && (each.id > 0 || each.isPeak)) : -1;
            return found < 0 ? null : found;
        };
        const isLast = run.moments.length > 0 && chosen === run.moments.length - 1;
        const main = isLast ? next.moments.length - 1 : next.mainMoment;
        this.data = data;
        this.runs = runs;
        this.#part(next, this.filter);
        this.chosen = isLast || chosen === run.mainMoment ? main : (again(chosen) ?? next.mainMoment);
        this.against = again(against);
        const names = { owner: next.head.owners.map(({ name }) => name), line: next.head.lines.label, cell: /** @type {string[]} */ ([]) };
        const index = only ? names[only.dimension].indexOf(only.name) : -1;
        this.only = only && index >= 0 ? { ...only, index } : null;
        before();
        this.#notify();
    }

    /** @param {Run} run */
    show(run) {
        if (run === this.whole) return;
        this.#part(run, this.filter);
        this.chosen = run.mainMoment;
        this.against = null;
        this.only = null;
        this.#notify();
    }
}
