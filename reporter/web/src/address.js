// SPDX-License-Identifier: GPL-2.0-or-later
//
// The page's own address, behind its "#": always what the reader looks at (runs/state.js), so that it can be copied, kept and sent,
// and so that the browser's back and forward lead from choice to choice. What is only opened, closed or typed makes no new step.

import { h, replace } from './base/dom.js';
import { copy } from './charts/csv.js';
import { choicesOf, read, stateOf, written } from './runs/state.js';

/** @typedef {import('./runs/page.js').Page} Page */
/** @typedef {import('./sections.js').Sections} Sections */

const OPEN = 'open';
const ALL = 'all';
// Parts of a state whose change is no step.
const isPassing = (/** @type {string} */ key) => key === OPEN || /\.(filter|search)/.test(key);

/** @param {Map<string, string>} one @param {Map<string, string>} other */
const changed = (one, other) => [...new Set([...one.keys(), ...other.keys()])].filter((key) => one.get(key) !== other.get(key));

export class Address {
    #anchor = '';
    /** The state in the address. @type {Map<string, string>} */
    #state = new Map();
    #timer = 0;
    #isQuiet = false;
    #said = h('span', { role: 'status', class: 'quiet' });
    element = h('span', { class: 'buttons' }, h('button', { type: 'button', id: 'copy-link', title: 'To what is shown now', onclick: () => void this.#copy() }, 'Copy link'), this.#said);

    /** @param {Page} page @param {Sections} sections */
    constructor(page, sections) {
        this.page = page;
        this.sections = sections;
    }

    /** Has the page show what the address asks for; before anything is shown, so that it is shown once. */
    choose() {
        const { state } = read(location.hash.slice(1));
        const { kept } = this.sections;
        kept.values.clear();
        for (const [key, value] of state) if (key.includes('.')) kept.values.set(key, value);
        this.page.choose(choicesOf(this.page, state));
    }

    /** Once the sections stand: opens those that the address asks for, goes where it leads, and is kept up to date from now on. */
    follow() {
        this.#apply();
        const { anchor } = read(location.hash.slice(1));
        if (this.sections.goTo(anchor)) this.#anchor = anchor;
        this.#state = this.#now();
        // The page may have been too short for it, as long as the rest was not drawn.
        let isThere = !this.#anchor;
        this.sections.onChange(() => {
            if (!isThere) this.sections.goTo(anchor);
            isThere = true;
            this.#later();
        });
        window.addEventListener('popstate', () => this.#arrive());
    }

    /** The next change of the page is no choice of the reader's. */
    quietly() {
        this.#isQuiet = true;
    }

    #apply() {
        this.#anchor = '';
        this.choose();
        const open = read(location.hash.slice(1)).state.get(OPEN)?.split(',') ?? [];
        this.sections.open(open[0] === ALL ? this.sections.all.map(({ id }) => id) : open);
        this.sections.restore();
    }

    /** By back or forward, or by another address of this page. */
    #arrive() {
        const { anchor, state } = read(location.hash.slice(1));
        const isOurs = history.state?.isView === true;
        // A link to a section is no other view.
        if (isOurs || state.size || !anchor) {
            this.#isQuiet = true;
            this.#apply();
            this.#state = this.#now();
        }
        if (!isOurs && this.sections.goTo(anchor)) this.#anchor = anchor;
        this.#later();
    }

    /** @returns {Map<string, string>} */
    #now() {
        const { page, sections } = this;
        const state = stateOf(page);
        const { opened } = sections;
        const foldable = sections.all.filter((section) => section.canFold);
        const others = opened.filter((id) => id !== this.#anchor);
        if (others.length) state.set(OPEN, opened.length === foldable.length ? ALL : others.join(','));
        const known = new Set(sections.all.map(({ id }) => id));
        for (const [key, value] of sections.kept.values) if (known.has(key.split('.')[0])) state.set(key, value);
        return state;
    }

    #later() {
        clearTimeout(this.#timer);
        this.#timer = setTimeout(() => this.#write());
    }

    #write() {
        const { sections } = this;
        if (this.#anchor && sections.all.some((section) => section.id === this.#anchor && !section.isOpen)) this.#anchor = '';
        const state = this.#now();
        const different = changed(state, this.#state);
        const isStep = !this.#isQuiet && different.some((key) => !isPassing(key));
        this.#isQuiet = false;
        this.#state = state;
        const address = this.#of(this.#anchor);
        if (address === location.href) return;
        try {
            if (isStep) history.pushState({ isView: true }, '', address);
            else history.replaceState({ isView: true }, '', address);
        } catch {
            // A page inside another one may have no address of its own.
        }
    }

    /** @param {string} anchor */
    #of(anchor) {
        const fragment = written(this.#now(), anchor);
        const [base] = location.href.split('#');
        return fragment ? `${base}#${fragment}` : base;
    }

    async #copy() {
        await copy(this.#of(this.sections.inView));
        replace(this.#said, 'copied');
        setTimeout(() => replace(this.#said), 2000);
    }
}
