// SPDX-License-Identifier: GPL-2.0-or-later
//
// The bar that stays in sight: which process, which moment, and what it is compared with.

import { choice, h, replace } from './dom.js';
import { count, growth, size } from './units.js';

/** @typedef {import('./page.js').Page} Page */

/** "peak, 2.61 s" @param {import('./run.js').Run} run @param {number} index */
export const momentName = (run, index) => run.label(index);

/** What is held at a moment; of two pools that do not add up, both. @param {import('./run.js').Run} run @param {number} index */
export function momentSize(run, index) {
    const { host, device } = run.moments[index];
    if (!run.uses('device')) return size(host);
    const both = `${size(host)} host, ${size(device)} device`;
    return run.head.is_discrete ? both : `${size(host + device)} (${both})`;
}

const THEMES = /** @type {[string, string][]} */ ([
    ['', 'as the system has it'],
    ['light', 'light'],
    ['dark', 'dark'],
]);

/** @param {Page} page */
function processes(page) {
    if (page.runs.length < 2) return null;
    const options = page.runs.map((run, i) => /** @type {[string, string]} */ ([String(i), i ? `${run.head.pid} ${run.head.command}` : run.head.command]));
    return choice('Process', options, '0', (value) => page.show(page.runs[Number(value)]));
}

export const themes = () =>
    choice('Colours', THEMES, '', (value) => {
        document.documentElement.dataset.theme = value;
        window.dispatchEvent(new Event('themechange'));
    });

/** @param {Page} page */
export function bar(page) {
    const text = h('output', { id: 'chosen' });
    const comparison = h('span', { class: 'comparison' });
    const step = (/** @type {number} */ by) => () => page.select(page.moment + by);
    const named = h('span', { class: 'buttons' });
    const element = h(
        'div',
        { class: 'bar', role: 'toolbar', 'aria-label': 'What the page shows' },
        processes(page),
        h('span', { class: 'buttons' }, h('button', { type: 'button', onclick: step(-1), 'aria-label': 'The moment before', title: 'The moment before' }, '◂'), h('button', { type: 'button', onclick: step(1), 'aria-label': 'The next moment', title: 'The next moment' }, '▸')),
        text,
        comparison,
        named,
        themes(),
    );

    const update = () => {
        const { run, moment, other } = page;
        if (!run.moments.length) return replace(text, 'no complete snapshot');
        replace(text, h('b', {}, momentName(run, moment)), `: ${momentSize(run, moment)}`);
        replace(comparison);
        if (other !== null) {
            const total = (/** @type {number} */ i) => run.moments[i].host + run.moments[i].device;
            const change = run.head.is_discrete && run.uses('device') ? '' : `: ${growth(total(moment) - total(other))}`;
            replace(
                comparison,
                `compared with ${momentName(run, other)}${change} `,
                h('button', { type: 'button', onclick: () => page.compare(null) }, 'end comparison'),
            );
        }
        const { at, peaks } = run.head;
        /** @type {[string, number][]} */
        const moments = [
            ['peak', at.peak],
            ['host peak', peaks.host?.moment ?? -1],
            ['device peak', run.uses('device') ? (peaks.device?.moment ?? -1) : -1],
            ['end', at.end],
        ];
        const seen = new Set([-1]);
        replace(named);
        for (const [name, index] of moments) {
            if (seen.has(index)) continue;
            seen.add(index);
            named.append(h('button', { type: 'button', onclick: () => page.select(index), 'aria-pressed': String(index === moment) }, name));
        }
        text.title = `${count(run.moments.length, 'moment')}; moment ${moment + 1}`;
    };
    page.onChange(update);
    update();
    return element;
}
