// SPDX-License-Identifier: GPL-2.0-or-later
//
// A waterfall: a sum whose parts stand one after the other, a bar each that begins where the one before has ended.

import { h } from '../base/dom.js';
import { percent, size, whole } from '../base/units.js';

/**
 * A part, added to those before it; a negative one is taken away.
 * @typedef {{name: string, group: string, bytes: number, colour: string, text?: string}} Step `group`: what is said of it, quietly; `text`: instead of its size
 */

/** @param {Step[]} list their sum is positive @param {string} caption @param {string} [sumName] */
export function waterfall(list, caption, sumName = 'total') {
    const all = list.reduce((bytes, step) => bytes + step.bytes, 0);
    // A part that is taken away may have been added beyond the sum.
    let reached = 0;
    const width = list.reduce((most, step) => Math.max(most, (reached += step.bytes)), all);
    // Changes have no share of a sum.
    const share = (/** @type {number} */ bytes) => list.every((step) => step.text === undefined) && h('td', { class: 'figure' }, percent(bytes, all));
    let at = 0;
    const rows = list.map((step) => {
        const begin = Math.max(0, Math.min(at, at + step.bytes));
        const bar = h('span', { class: step.bytes < 0 ? 'step negative' : 'step', style: { left: `${(100 * begin) / width}%`, width: `${(100 * Math.abs(step.bytes)) / width}%`, background: step.colour } });
        at += step.bytes;
        return h(
            'tr',
            { 'data-owner': step.name, 'data-bytes': step.bytes },
            h('th', { scope: 'row' }, step.name, h('span', { class: 'quiet' }, ` ${step.group}`)),
            h('td', { class: 'steps', 'aria-hidden': 'true' }, bar),
            h('td', { class: 'figure', title: `${whole(step.bytes)} bytes` }, step.text ?? size(step.bytes)),
            share(step.bytes),
        );
    });
    const sum = h('tr', {}, h('th', { scope: 'row' }, sumName), h('td', { class: 'steps', 'aria-hidden': 'true' }, h('span', { class: 'step total', style: { left: '0', width: `${(100 * all) / width}%` } })), h('td', { class: 'figure', title: `${whole(all)} bytes` }, size(all)), share(all));
    return h('div', { class: 'scroll', tabIndex: 0, role: 'region', 'aria-label': caption }, h('table', { class: 'waterfall' }, h('caption', {}, caption), h('tbody', {}, ...rows), h('tfoot', {}, sum)));
}
