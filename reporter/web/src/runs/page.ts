// SPDX-License-Identifier: GPL-2.0-or-later
//
// The page's state, which is all that the reader chose: a run (a process, or the sum of all), a moment of it, another moment to
// compare with, a filter, a tab, and the settings of controls. Views ask for changes here and are notified; they know nothing of
// each other. Of two moments the later one is shown as compared with the earlier one, whichever was chosen first: what has grown
// is more. Columns of a comparison have no such order, and are shown as they were asked for.

import { useLayoutEffect, useReducer } from 'preact/hooks';
import type { PageData } from './data.js';
import { type Filter, NO_FILTER, partOf, problemOf } from './filter.js';
import type { Run } from './run.js';

/** The call tree is narrowed to this: an owner, a line, or a cell, by its place in the run. */
export type Only = { dimension: 'owner' | 'line' | 'cell'; index: number; name: string };
/** A frame that a view is to show. */
export type Look = { section: string; name: string };
/** All that is chosen, at once. `span`: of the timeline, in its unit; null: as it opens. */
export type Choices = {
    run: Run;
    chosen: number;
    against: number | null;
    only: Only | null;
    filter: Filter;
    tab: string;
    span: [number, number] | null;
};

const isSame = (one: Filter, other: Filter) => one.only === other.only && one.except === other.except && one.isGiven === other.isGiven;
const isAt = (one: Only | null, other: Only | null) => one?.index === other?.index && one?.dimension === other?.dimension;

export class Page {
    #listeners = new Set<() => void>();
    /** Counts changes of what views show: of anything but tab, span and settings. */
    version = 0;
    /** The run that the reader has chosen, in full. */
    whole: Run;
    /** The part of it that the filter leaves. */
    run: Run;
    filter = NO_FILTER;
    /** Index of the moment that the reader has chosen. */
    chosen: number;
    /** Index of the one to compare with. */
    against: number | null;
    only: Only | null = null;
    /** Id of the open tab; '' for the first. */
    tab = '';
    span: [number, number] | null = null;
    /** What the reader has set: "calls.order". Controls that are as they were made have none. */
    settings = new Map<string, string>();
    #look: Look | null = null;

    constructor(
        public data: PageData,
        public runs: Run[],
    ) {
        this.whole = runs[0];
        this.run = partOf(this.whole, NO_FILTER);
        const { chosen, against } = this.opening(this.run);
        this.chosen = chosen;
        this.against = against;
    }

    /** Returns the way to stop listening. */
    onChange(listener: () => void): () => void {
        this.#listeners.add(listener);
        return () => void this.#listeners.delete(listener);
    }

    #notify() {
        for (const listener of this.#listeners) listener();
    }

    #changed() {
        this.version++;
        this.#notify();
    }

    /** Has a view show a frame. */
    lookAt(look: Look) {
        this.#look = look;
        this.#changed();
    }

    /** Taken once: what the view is to show. */
    taken(section: string): Look | null {
        const look = this.#look;
        if (look?.section !== section) return null;
        this.#look = null;
        return look;
    }

    /** Index of the moment that all views show. */
    get moment(): number {
        return this.against === null || this.data.difference ? this.chosen : Math.max(this.chosen, this.against);
    }

    /** Index of the moment it is compared with. */
    get other(): number | null {
        return this.against === null || this.data.difference ? this.against : Math.min(this.chosen, this.against);
    }

    /** Choices before the reader's. */
    opening(run: Run): { chosen: number; against: number | null } {
        const chosen = run.mainMoment;
        return { chosen, against: this.data.difference && chosen > 0 ? 0 : null };
    }

    /** All at once, as an address has it. */
    choose({ run, chosen, against, only, filter, tab, span }: Choices) {
        const isFilterSame = isSame(filter, this.filter);
        const isSpanSame = span?.join() === this.span?.join();
        const isShown = run === this.whole && isFilterSame && chosen === this.chosen && against === this.against && isAt(only, this.only);
        if (isShown && isSpanSame && tab === this.tab) return;
        if (run !== this.whole || !isFilterSame) this.#part(run, filter);
        Object.assign(this, { chosen, against, only, tab, span });
        if (isShown) this.#notify();
        else this.#changed();
    }

    #part(whole: Run, filter: Filter) {
        this.filter = problemOf(filter) ? NO_FILTER : filter;
        this.whole = whole;
        this.run = partOf(whole, this.filter);
    }

    /** Shows what a filter leaves; nothing is done about one that has a problem. */
    sift(filter: Filter) {
        if (problemOf(filter) || isSame(filter, this.filter)) return;
        this.#part(this.whole, filter);
        this.#changed();
    }

    get isPart(): boolean {
        return this.run !== this.whole;
    }

    select(moment: number) {
        const last = this.run.moments.length - 1;
        const chosen = Math.max(0, Math.min(last, moment));
        if (chosen === this.chosen || last < 0) return;
        this.chosen = chosen;
        if (this.against === chosen) this.against = null;
        this.#changed();
    }

    compare(moment: number | null) {
        const against = moment === this.chosen ? null : moment;
        if (against === this.against) return;
        this.against = against;
        this.#changed();
    }

    /** Again what it is narrowed to already: no longer. */
    narrow(only: Only | null) {
        const isAgain = only && this.isOnly(only.dimension, only.index);
        if (!only && !this.only) return;
        this.only = isAgain ? null : only;
        this.#changed();
    }

    isOnly(dimension: Only['dimension'], index: number): boolean {
        return this.only?.dimension === dimension && this.only.index === index;
    }

    open(tab: string) {
        if (tab === this.tab) return;
        this.tab = tab;
        this.#notify();
    }

    zoom(span: [number, number] | null) {
        if (span?.join() === this.span?.join()) return;
        this.span = span;
        this.#notify();
    }

    /** All settings, as an address has them. */
    restore(settings: Map<string, string>) {
        if (JSON.stringify([...settings]) === JSON.stringify([...this.settings])) return;
        this.settings = settings;
        this.#notify();
    }

    /** `value`: null for a control that is as it was made. */
    set(setting: string, value: string | null) {
        if ((this.settings.get(setting) ?? null) === value) return;
        if (value === null) this.settings.delete(setting);
        else this.settings.set(setting, value);
        this.#notify();
    }

    /**
     * Other data of the same runs, which have gone on. The reader stays with the process, with the moments, unless that was the
     * last or the peak, which may be others now, and with what the call tree is narrowed to.
     */
    renew(data: PageData, runs: Run[]) {
        const { whole: run, chosen, against, only } = this;
        const isSum = (each: Run) => !!each.parts.together;
        const next = runs.find((each) => each.head.key === run.head.key && isSum(each) === isSum(run)) ?? runs[0];
        const again = (index: number | null) => {
            const was = index === null ? undefined : run.moments[index];
            const found = was
                ? next.moments.findIndex((each) => each.id === was.id && each.reason === was.reason && (each.id > 0 || each.isPeak))
                : -1;
            return found < 0 ? null : found;
        };
        const isLast = run.moments.length > 0 && chosen === run.moments.length - 1;
        const main = isLast ? next.moments.length - 1 : next.mainMoment;
        this.data = data;
        this.runs = runs;
        this.#part(next, this.filter);
        this.chosen = isLast || chosen === run.mainMoment ? main : (again(chosen) ?? next.mainMoment);
        this.against = again(against);
        const names: Record<Only['dimension'], string[]> = { owner: next.head.owners.map(({ name }) => name), line: next.head.lines.label, cell: [] };
        const index = only ? names[only.dimension].indexOf(only.name) : -1;
        this.only = only && index >= 0 ? { ...only, index } : null;
        this.#changed();
    }

    show(run: Run) {
        if (run === this.whole) return;
        this.#part(run, this.filter);
        this.chosen = run.mainMoment;
        this.against = null;
        this.only = null;
        this.span = null;
        this.#changed();
    }
}

/** Draws the component again after each change of the page. Returns how many there were. */
export function usePage(page: Page): number {
    const [n, again] = useReducer<number, void>((before) => before + 1, 0);
    useLayoutEffect(() => page.onChange(() => again()), [page]);
    return n;
}

/** A setting of a component, and the way to change it; what it is at first is in no address. */
export function settingOf<T extends string>(page: Page, name: string, first: T): [T, (value: T) => void] {
    return [(page.settings.get(name) as T | undefined) ?? first, (value) => page.set(name, value === first ? null : value)];
}
