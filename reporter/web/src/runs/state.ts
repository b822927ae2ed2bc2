// SPDX-License-Identifier: GPL-2.0-or-later
//
// The reader's choices as words of an address: "at=12&with=start&owner=tensor&tab=by-owner". The words are names and numbers that
// stay the same when the page is made anew; what is as the page has it anyway is left out. An address may come from anybody and be
// of another page: what it names and is not here is passed over.

import { NO_FILTER, problemOf } from './filter.js';
import type { Choices, Only, Page } from './page.js';
import { FAILED, type Run } from './run.js';

export type State = Map<string, string>;

const LONGEST = 8000;
const LONGEST_VALUE = 400;
const LAST = 'last';
const NONE = 'none';

const escaped = (text: string) =>
    encodeURIComponent(text.replace(/\p{Surrogate}/gu, ''))
        .replace(/%(3A|2F|2C|40|3F)/g, decodeURIComponent)
        .replaceAll('%20', '+');

/** null: it is none. */
function unescaped(text: string): string | null {
    try {
        return decodeURIComponent(text.replaceAll('+', ' '));
    } catch {
        return null;
    }
}

/** As the part of an address behind its "#"; `anchor`: the view to begin with, '' for the page's top. */
export const written = (state: State, anchor: string) =>
    [...(anchor ? [anchor] : []), ...[...state].map(([key, value]) => `${key}=${escaped(value)}`)].join('&');

/** The counterpart, of any text without "#". */
export function read(fragment: string): { anchor: string; state: State } {
    const state: State = new Map();
    let anchor = '';
    if (fragment.length > LONGEST) return { anchor, state };
    for (const part of fragment.split('&')) {
        const [name, ...rest] = part.split('=');
        const value = unescaped(rest.length ? rest.join('=') : name);
        if (value === null || value.length > LONGEST_VALUE) continue;
        if (!rest.length) anchor ||= value;
        else if (/^[a-z][a-z.-]*$/.test(name) && !state.has(name)) state.set(name, value);
    }
    return { anchor, state };
}

const isOnce = (list: string[], value: string) => list.indexOf(value) === list.lastIndexOf(value);

/** Name of a moment in addresses. */
function keyOf({ data }: Page, run: Run, index: number): string {
    if (data.difference) {
        const label = data.difference[index];
        return isOnce(data.difference, label) ? label : String(index + 1);
    }
    const { name, id } = run.moments[index];
    const key = name.replace(FAILED, String(id)).replace(/^snapshot /, '');
    return index === run.moments.length - 1 && index !== run.mainMoment ? LAST : key.replaceAll(' ', '-');
}

function momentOf(page: Page, run: Run, key: string | undefined): number | null {
    if (key === undefined) return null;
    if (key === LAST && run.moments.length) return run.moments.length - 1;
    const isOf = ({ index, id }: Run['moments'][number]) => keyOf(page, run, index) === key || (!page.data.difference && String(id || '') === key);
    const index = run.moments.findIndex(isOf);
    return index < 0 ? null : index;
}

/** A line's own name; of those that share one, its path too. */
function lineKey(run: Run, index: number): string {
    const { label, path } = run.head.lines;
    return isOnce(label, label[index]) ? label[index] : `${path[index]}${label[index].slice(label[index].lastIndexOf(':'))}`;
}

function onlyOf(run: Run, state: State): Only | null {
    const { owners, lines } = run.head;
    const [owner, line, place] = ['owner', 'line', 'place'].map((key) => state.get(key) ?? '');
    const atOwner = owners.findIndex(({ name }) => name === owner);
    if (atOwner >= 0) return { dimension: 'owner', index: atOwner, name: owner };
    const atLine = line ? lines.label.findIndex((_, index) => lineKey(run, index) === line) : -1;
    if (atLine >= 0) return { dimension: 'line', index: atLine, name: lines.label[atLine] };
    // Cells have numbers that are this page's alone: of another page's it would be another place.
    const [, cell, name] = /^(\d{1,9}):(.+)$/s.exec(place) ?? [];
    if (cell !== undefined && Number(cell) < run.nCells && run.site(Number(cell)) === name) return { dimension: 'cell', index: Number(cell), name };
    return null;
}

function processKey({ runs }: Page, run: Run): string {
    const isOne = runs.filter(({ head }) => head.pid === run.head.pid).length < 2;
    return isOne ? run.head.pid : `${run.head.pid}.${runs.indexOf(run)}`;
}

/** Choices that differ from those with which the page opens. */
export function stateOf(page: Page): State {
    const state: State = new Map();
    const { whole: run, chosen, against, only, filter } = page;
    const set = (key: string, value: string, isShown: boolean) => isShown && state.set(key, value);
    set('process', processKey(page, run), run !== page.runs[0]);
    if (run.moments.length) {
        const first = page.opening(run);
        set('at', keyOf(page, run, chosen), chosen !== first.chosen);
        set('with', against === null ? NONE : keyOf(page, run, against), against !== first.against);
    }
    if (only?.dimension === 'owner') state.set('owner', only.name);
    if (only?.dimension === 'line') state.set('line', lineKey(run, only.index));
    if (only?.dimension === 'cell') state.set('place', `${only.index}:${run.site(only.index)}`);
    set('only', filter.only, !!filter.only);
    set('except', filter.except, !!filter.except);
    set('given', 'no', !!run.head.filter && !filter.isGiven);
    set('tab', page.tab, !!page.tab);
    if (page.span) state.set('span', page.span.map(Math.round).join('-'));
    return state;
}

/** The choices in an address. */
export function choicesOf(page: Page, state: State): Choices {
    const run = page.runs.find((each) => processKey(page, each) === state.get('process')) ?? page.runs[0];
    const first = page.opening(run);
    const chosen = momentOf(page, run, state.get('at')) ?? first.chosen;
    const against = momentOf(page, run, state.get('with')) ?? (state.get('with') === NONE ? null : first.against);
    const filter = { only: state.get('only') ?? '', except: state.get('except') ?? '', isGiven: state.get('given') !== 'no' };
    const [, from, to] = (/^(\d{1,15})-(\d{1,15})$/.exec(state.get('span') ?? '') ?? []).map(Number);
    return {
        run,
        chosen,
        against: against === chosen ? null : against,
        only: onlyOf(run, state),
        filter: problemOf(filter) || page.data.difference ? NO_FILTER : filter,
        tab: state.get('tab') ?? '',
        span: from < to ? [from, to] : null,
    };
}
