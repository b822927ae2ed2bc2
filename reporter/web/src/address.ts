// SPDX-License-Identifier: GPL-2.0-or-later
//
// The page's own address, behind its "#": always what the reader looks at (runs/state.ts), so that it can be copied, kept and sent,
// and so that the browser's back and forward lead from choice to choice. What is typed or zoomed makes no new step.

import type { Page } from './runs/page.js';
import { choicesOf, read, stateOf, written } from './runs/state.js';
import { openTab, tabsOf } from './tabs.js';

// Parts of a state whose change is no step.
const isPassing = (key: string) => key === 'span' || /\.(filter|search)/.test(key);

const changed = (one: Map<string, string>, other: Map<string, string>) =>
    [...new Set([...one.keys(), ...other.keys()])].filter((key) => one.get(key) !== other.get(key));

/** The tab that an anchor leads to; '' for none. */
const tabOf = (page: Page, anchor: string) =>
    tabsOf(page).find(({ id, views }) => id === anchor || views.some((view) => view.id === anchor))?.id ?? '';

export class Address {
    /** The state in the address. */
    #state = new Map<string, string>();
    #timer = 0;
    #isQuiet = false;
    /** A view that is to be scrolled to when it is drawn. */
    #goal = '';

    constructor(public page: Page) {}

    /** Has the page show what the address asks for; before anything is shown, so that it is shown once. */
    choose() {
        const { page } = this;
        const { anchor, state } = read(location.hash.slice(1));
        const views = new Set(['timeline', ...tabsOf(page).flatMap(({ views }) => views.map(({ id }) => id))]);
        page.restore(new Map([...state].filter(([key]) => key.includes('.') && views.has(key.split('.')[0]))));
        page.choose(choicesOf(page, state));
        const tabs = tabsOf(page);
        if (!tabs.some(({ id }) => id === page.tab)) page.open('');
        const tab = tabOf(page, anchor);
        if (tab) page.open(tab);
        this.#goal = anchor;
    }

    /** Keeps the address up to date from now on. */
    follow() {
        this.#state = this.#now();
        this.page.onChange(() => this.#later());
        window.addEventListener('popstate', () => this.#arrive());
    }

    /** The next change of the page is no choice of the reader's. */
    quietly() {
        this.#isQuiet = true;
    }

    /** When all is drawn. */
    arrived() {
        if (this.#goal) document.getElementById(this.#goal)?.scrollIntoView();
        this.#goal = '';
    }

    /** By back or forward, or by another address of this page. */
    #arrive() {
        const { anchor, state } = read(location.hash.slice(1));
        const isOurs = (history.state as { isView?: boolean } | null)?.isView === true;
        if (anchor && !isOurs && !state.size) {
            // A link to a view is no other state.
            const tab = tabOf(this.page, anchor);
            this.#goal = anchor;
            if (tab && tab !== openTab(this.page)) this.page.open(tab);
            else this.arrived();
        } else {
            this.quietly();
            this.choose();
            this.#state = this.#now();
        }
        this.#later();
    }

    #now(): Map<string, string> {
        return new Map([...stateOf(this.page), ...this.page.settings]);
    }

    #later() {
        clearTimeout(this.#timer);
        this.#timer = setTimeout(() => this.#write());
    }

    #write() {
        const state = this.#now();
        const isStep = !this.#isQuiet && changed(state, this.#state).some((key) => !isPassing(key));
        this.#isQuiet = false;
        this.#state = state;
        const address = this.current;
        if (address === location.href) return;
        try {
            if (isStep) history.pushState({ isView: true }, '', address);
            else history.replaceState({ isView: true }, '', address);
        } catch {
            // A page inside another one may have no address of its own.
        }
    }

    /** The address of what is shown now. */
    get current(): string {
        const fragment = written(this.#now(), '');
        const [base] = location.href.split('#');
        return fragment ? `${base}#${fragment}` : base;
    }
}
