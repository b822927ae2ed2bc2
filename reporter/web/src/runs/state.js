// SPDX-License-Identifier: GPL-2.0-or-later
//
// The reader's choices as words of an address: "at=12&with=start&owner=tensor&tab=by-owner". The words
// are names and numbers that stay the same when the page is made anew; what is as the page has it anyway is left out. An address may
// come from anybody and be of another page: what it names and is not here is passed over.

import { allocatorOf, lineOf } from './blocks.js';
import { NO_FILTER, problemOf } from './filter.js';

/** @typedef {import('./page.js').Page} Page */
/** @typedef {import('./page.js').Only} Only */
/** @typedef {import('./run.js').Run} Run */
/** @typedef {Map<string, string>} State */

const LONGEST = 8000;
const LONGEST_VALUE = 400;
const LAST = 'last';
const NONE = 'none';

/** @param {string} text */
const escaped = (text) => encodeURIComponent(text.replace(/\p{Surrogate}/gu, '')).replace(/%(3A|2F|2C|40|3F)/g, decodeURIComponent).replaceAll('%20', '+');

/** @param {string} text @returns {string|null} null: it is none */
function unescaped(text) {
    try {
        return decodeURIComponent(text.replaceAll('+', ' '));
    } catch {
        return null;
    }
}

/** As the part of an address behind its "#". @param {State} state @param {string} anchor the section to begin with; '' for the page's top */
export function written(state, anchor) {
    const parts = [...state].map(([key, value]) => `${key}=${escaped(value)}`);
    return (anchor ? [anchor, ...parts] : parts).join('&');
}

/** The counterpart, of any text. @param {string} fragment without "#" @returns {{anchor: string, state: State}} */
export function read(fragment) {
    /** @type {State} */
    const state = new Map();
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

/** Name of a moment in addresses. @param {Page} page @param {Run} run @param {number} index */
function keyOf({ data }, run, index) {
    if (data.difference) {
        const labels = data.difference.columns.map(({ label }) => label);
        return labels.indexOf(labels[index]) === labels.lastIndexOf(labels[index]) ? labels[index] : String(index + 1);
    }
    const { name } = run.moments[index];
    return index === run.moments.length - 1 && index !== run.mainMoment ? LAST : name.replace(/^snapshot /, '').replaceAll(' ', '-');
}

/** @param {Page} page @param {Run} run @param {string|undefined} key @returns {number|null} */
function momentOf(page, run, key) {
    if (key === LAST && run.moments.length) return run.moments.length - 1;
    const index = key === undefined ? -1 : run.moments.findIndex((moment) => keyOf(page, run, moment.index) === key || (!page.data.difference && String(moment.id || '') === key));
    return index < 0 ? null : index;
}

/** A line's own name; of those that share one, its path too. @param {Run} run @param {number} index */
function lineKey(run, index) {
    const { label, path } = run.head.lines;
    return label.indexOf(label[index]) === label.lastIndexOf(label[index]) ? label[index] : `${path[index]}${label[index].slice(label[index].lastIndexOf(':'))}`;
}

/** @param {Run} run @param {State} state @returns {Only|null} */
function onlyOf(run, state) {
    const { owners, lines } = run.head;
    const [owner, line, place] = ['owner', 'line', 'place'].map((key) => state.get(key) ?? '');
    const atOwner = owners.findIndex(({ name }) => name === owner);
    if (atOwner >= 0) return { dimension: 'owner', index: atOwner, name: owner };
    const atLine = line ? lines.label.findIndex((_, index) => lineKey(run, index) === line) : -1;
    if (atLine >= 0) return { dimension: 'line', index: atLine, name: lines.label[atLine] };
    // Cells have numbers that are this page's alone: of another page's it would be another place.
    const [, cell, name] = /^(\d{1,9}):(.+)$/s.exec(place) ?? [];
    if (cell !== undefined && Number(cell) < run.nCells && siteOf(run, Number(cell)) === name) return { dimension: 'cell', index: Number(cell), name };
    return null;
}

/** Name of a cell in the table of blocks. @param {Run} run @param {number} cell */
const siteOf = (run, cell) => lineOf(run, cell) || allocatorOf(run, cell);

/** @param {Page} page @param {Run} run */
function processKey({ runs }, run) {
    const isOne = runs.filter(({ head }) => head.pid === run.head.pid).length < 2;
    return isOne ? run.head.pid : `${run.head.pid}.${runs.indexOf(run)}`;
}

/** Choices that differ from those with which the page opens. @param {Page} page @returns {State} */
export function stateOf(page) {
    /** @type {State} */
    const state = new Map();
    const { whole: run, chosen, against, only, filter } = page;
    if (run !== page.runs[0]) state.set('process', processKey(page, run));
    if (run.moments.length) {
        const first = page.opening(run);
        if (chosen !== first.chosen) state.set('at', keyOf(page, run, chosen));
        if (against !== first.against) state.set('with', against === null ? NONE : keyOf(page, run, against));
    }
    if (only?.dimension === 'owner') state.set('owner', only.name);
    if (only?.dimension === 'line') state.set('line', lineKey(run, only.index));
    if (only?.dimension === 'cell') state.set('place', `${only.index}:${siteOf(run, only.index)}`);
    if (filter.only) state.set('only', filter.only);
    if (filter.except) state.set('except', filter.except);
    if (run.head.filter && !filter.isGiven) state.set('given', 'no');
    if (page.tab) state.set('tab', page.tab);
    if (page.span) state.set('span', page.span.map(Math.round).join('-'));
    return state;
}

/** The choices in an address. @param {Page} page @param {State} state @returns {import('./page.js').Choices} */
export function choicesOf(page, state) {
    const run = page.runs.find((each) => processKey(page, each) === state.get('process')) ?? page.runs[0];
    const first = page.opening(run);
    const chosen = momentOf(page, run, state.get('at')) ?? first.chosen;
    const named = momentOf(page, run, state.get('with'));
    const against = named ?? (state.get('with') === NONE ? null : first.against);
    const filter = { only: state.get('only') ?? '', except: state.get('except') ?? '', isGiven: state.get('given') !== 'no' };
    const [, from, to] = /^(\d{1,15})-(\d{1,15})$/.exec(state.get('span') ?? '') ?? [];
    const span = from !== undefined && Number(from) < Number(to) ? /** @type {[number, number]} */ ([Number(from), Number(to)]) : null;
    return { run, chosen, tab: state.get('tab') ?? '', span, against: against === chosen ? null : against, only: onlyOf(run, state), filter: problemOf(filter) || page.data.difference ? NO_FILTER : filter };
}
