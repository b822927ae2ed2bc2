// SPDX-License-Identifier: GPL-2.0-or-later
//
// The bar that stays in sight: which process, which moment, and what it is compared with; in a comparison, which columns.
// A bar lives as long as the page.

import { choice, h, replace } from './base/dom.js';
import { announceTheme } from './base/theme.js';
import { count, growth, size } from './base/units.js';
import { chip } from './charts/chip.js';
import { comparisonOf } from './runs/comparison.js';
import { expressionOf } from './runs/filter.js';

/** @typedef {import('./runs/page.js').Page} Page */
/** @typedef {{element: HTMLElement, update: () => void}} Bar `update`: after each choice */

/** Memory at a moment; of two pools that do not add up, both. @param {import('./runs/run.js').Run} run @param {number} index */
function momentSize(run, index) {
    const { host, device } = run.moments[index];
    if (!run.uses('device')) return size(host);
    const both = `${size(host)} host, ${size(device)} device`;
    return run.head.is_discrete ? both : `${size(host + device)} (${both})`;
}

const THEMES = /** @type {[string, string][]} */ ([
    ['', 'System'],
    ['light', 'Light'],
    ['dark', 'Dark'],
]);

const themes = () =>
    choice('Theme', THEMES, document.documentElement.dataset.theme ?? '', (value) => {
        document.documentElement.dataset.theme = value;
        announceTheme();
    });

/** @param {Page} page */
function processes(page) {
    if (page.runs.length < 2) return null;
    const options = page.runs.map((run, i) => /** @type {[string, string]} */ ([String(i), i ? `${run.head.pid} ${run.head.command}` : run.head.command]));
    return choice('Process', options, String(page.runs.indexOf(page.whole)), (value) => page.show(page.runs[Number(value)]));
}

/** @param {Page} page */
function adjacent(page) {
    const button = (/** @type {number} */ by, /** @type {string} */ name, /** @type {string} */ arrow) =>
        h('button', { type: 'button', onclick: () => page.select(page.chosen + by), 'aria-label': name, title: name }, arrow);
    return h('span', { class: 'buttons' }, button(-1, 'Previous snapshot', '◂'), button(1, 'Next snapshot', '▸'));
}

/** Nothing, or the earlier moment, by how much the later one has grown, and the way out. @param {Page} page */
function comparedWith(page) {
    const { run, moment, other } = page;
    if (other === null) return [];
    const total = (/** @type {number} */ i) => run.moments[i].host + run.moments[i].device;
    const change = run.head.is_discrete && run.uses('device') ? '' : `: ${growth(total(moment) - total(other))}`;
    return [`vs. ${run.label(other)}${change} `, h('button', { type: 'button', onclick: () => page.compare(null) }, 'Stop comparing')];
}

/** A button for each moment that has a name of its own. @param {Page} page */
function namedMoments(page) {
    const { run, moment } = page;
    const { at, peaks } = run.head;
    /** @type {[string, number][]} */
    const moments = [
        ['peak', at.peak],
        ['host peak', peaks.host?.moment ?? -1],
        ['device peak', run.uses('device') ? (peaks.device?.moment ?? -1) : -1],
        ['end', at.end],
    ];
    const first = moments.filter(([, index], i) => index >= 0 && moments.findIndex((each) => each[1] === index) === i);
    return first.map(([name, index]) => h('button', { type: 'button', onclick: () => page.select(index), 'aria-pressed': String(index === moment) }, name));
}

/** The filter: expressions for stacks to include and exclude. @param {Page} page @returns {Bar} */
function filters(page) {
    const said = h('span', { role: 'status', class: 'quiet' });
    const field = (/** @type {'only'|'except'} */ which) => {
        const input = h('input', { type: 'search', class: 'sift', placeholder: 'regular expression', 'aria-label': `Show ${which === 'only' ? 'only' : 'all except'} stacks with this function, file, owner or thread`, title: 'of functions, files, owners and threads; function:, file:, owner: or thread: before it looks there alone', spellcheck: false });
        const ask = () => {
            const { pattern, problem } = expressionOf(input.value);
            input.toggleAttribute('aria-invalid', !!problem);
            replace(said, problem);
            if (pattern || !input.value) page.sift({ ...page.filter, [which]: input.value });
        };
        input.onchange = ask;
        return input;
    };
    const [only, except] = [field('only'), field('except')];
    const given = h('input', { type: 'checkbox', onchange: () => page.sift({ ...page.filter, isGiven: given.checked }) });
    const asked = h('label', { class: 'choice' }, given, h('span', {}));
    const open = h('details', { class: 'sifting' }, h('summary', {}, 'Filter'), h('span', { class: 'buttons' }, h('label', { class: 'choice' }, 'only', only), h('label', { class: 'choice' }, 'except', except), asked, said));
    return {
        element: open,
        update() {
            const { filter, whole } = page;
            if (!only.hasAttribute('aria-invalid')) only.value = filter.only;
            if (!except.hasAttribute('aria-invalid')) except.value = filter.except;
            given.checked = filter.isGiven;
            asked.hidden = !whole.head.filter;
            replace(/** @type {Element} */ (asked.lastElementChild), whole.head.filter);
            if (page.isPart) open.open = true;
        },
    };
}

/** Of a report. @param {Page} page @returns {Bar} */
export function bar(page) {
    const text = h('output', { id: 'chosen' });
    const comparison = h('span', { class: 'comparison' });
    const named = h('span', { class: 'buttons' });
    const narrowed = chip(page, true);
    const filter = filters(page);
    const element = h('div', { class: 'bar', role: 'toolbar', 'aria-label': 'What the page shows' }, processes(page), adjacent(page), text, comparison, named, narrowed.element, filter.element, themes());
    const update = () => {
        const { run, whole, moment } = page;
        filter.update();
        if (!run.moments.length) return replace(text, 'no complete snapshot');
        replace(text, h('b', {}, run.label(moment)), `: ${momentSize(run, moment)}${page.isPart ? ` of ${momentSize(whole, moment)} shown` : ''}`);
        replace(comparison, ...comparedWith(page));
        replace(named, ...namedMoments(page));
        narrowed.update();
        text.title = `${count(run.moments.length, 'moment')}; moment ${moment + 1}`;
    };
    return { element, update };
}

/** Of a comparison: a choice of columns. @param {Page} page @returns {Bar} */
export function columnsBar(page) {
    const { columns } = comparisonOf(page).difference;
    const options = columns.map(({ label }, i) => /** @type {[string, string]} */ ([String(i), label]));
    const shown = choice('Show', options, String(page.moment), (value) => page.select(Number(value)));
    const base = choice('vs.', [['', 'nothing'], ...options], String(page.other ?? ''), (value) => page.compare(value === '' ? null : Number(value)));
    const update = () => {
        for (const [label, value] of /** @type {[HTMLElement, number|null][]} */ ([
            [shown, page.moment],
            [base, page.other],
        ])) {
            const select = label.querySelector('select');
            if (select) select.value = String(value ?? '');
        }
    };
    return { element: h('div', { class: 'bar', role: 'toolbar', 'aria-label': 'What the page shows' }, shown, base, themes()), update };
}
