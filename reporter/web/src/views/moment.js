// SPDX-License-Identifier: GPL-2.0-or-later
//
// Summary of the chosen moment: groups in a sentence and a bar, owners as a waterfall; and the peaks to choose from.

import { h, replace } from '../base/dom.js';
import { moment as time, percent, size, whole } from '../base/units.js';
import { waterfall } from '../charts/waterfall.js';
import { coloursOf, groupColour } from '../runs/colours.js';
import { rowsOf, sidesOf, sumOf, total } from '../runs/sums.js';
import { View } from './view.js';

/** @typedef {import('../runs/page.js').Page} Page */
/** @typedef {import('../runs/run.js').Run} Run */
/** @typedef {import('../runs/sums.js').Row} Row */
/** @typedef {import('../runs/run.js').Sum} Sum */

const GROUPS = /** @type {Record<string, string>} */ ({ yours: 'your code', cached: 'allocator cache (reserved, unused)', other: 'owners without a group' });

/** @param {Page} page */
function tiles(page) {
    const { run } = page;
    const { together } = run.parts;
    const { peaks, is_discrete } = run.head;
    const figures = /** @type {[string, number, string][]} */ ([
        ['total', peaks.total ? peaks.total.host + peaks.total.device : 0, 'Peak memory'],
        ['host', peaks.host?.host ?? 0, 'Peak host memory'],
        ['device', peaks.device?.device ?? 0, 'Peak device memory'],
    ]);
    const shown = figures.filter(([which, bytes]) => bytes && !(which === 'total' && (is_discrete || !run.uses('device'))));
    return shown.map(([which, ofMoment, name]) => {
        const peak = peaks[which];
        // Of several processes it is the sum of their shares, which the moment's cells do not have.
        const { bytes, time: at } = together?.peaks[which] ?? { bytes: ofMoment, time: peak.time };
        return h(
            'button',
            { type: 'button', class: 'tile', title: `${whole(bytes)} bytes: show this moment`, 'data-bytes': bytes, 'data-which': which, onclick: () => page.select(peak.moment) },
            h('span', { class: 'quiet' }, name),
            h('span', { class: 'large' }, size(bytes)),
            h('span', { class: 'quiet' }, `at ${time(at, run.head.unit)}`),
        );
    });
}

/** @param {Run} run @param {Row[]} owners @param {(sum: Sum) => number} of */
function groupsOf(run, owners, of) {
    return run.head.groups
        .map((name) => {
            const members = owners.filter((row) => run.head.owners[row.index].group === name && of(row.sum) > 0).sort((a, b) => of(b.sum) - of(a.sum));
            return { name, members, bytes: members.reduce((all, row) => all + of(row.sum), 0) };
        })
        .filter((group) => group.bytes > 0);
}

/** "62.1 % your code (tensor 1.20 GiB, app 3.00 MiB); …" @param {Run} run @param {Row[]} owners @param {(sum: Sum) => number} of */
function shares(run, owners, of) {
    const groups = groupsOf(run, owners, of).sort((a, b) => b.bytes - a.bytes);
    const all = groups.reduce((bytes, group) => bytes + group.bytes, 0);
    return groups
        .map(({ name, members, bytes }) => {
            const named = members.slice(0, 3).map((row) => `${row.name} ${size(of(row.sum))}`);
            const list = name === 'cached' ? '' : ` (${named.join(', ')}${members.length > 3 ? ', …' : ''})`;
            return `${percent(bytes, all)} ${GROUPS[name] ?? name}${list}`;
        })
        .join('; ');
}

/** Size and groups at a moment. @param {Run} run @param {Row[]} owners */
function sentence(run, owners) {
    const all = sumOf(owners).sum;
    if (!total(all)) return 'No memory is on record here.';
    const sides = sidesOf(run).filter((side) => all[side] > 0);
    if (run.head.is_discrete || sides.length === 1) {
        return sides.map((side) => `${size(all[side])} of ${side} memory: ${shares(run, owners, (sum) => sum[side])}.`).join(' ');
    }
    return `${size(total(all))} (${size(all.host)} host + ${size(all.device)} device): ${shares(run, owners, total)}.`;
}

/** @param {Run} run @param {Row[]} owners @param {(sum: Sum) => number} of @param {string} name of the pool, "" for all */
function groupBar(run, owners, of, name) {
    const groups = groupsOf(run, owners, of);
    const all = groups.reduce((bytes, group) => bytes + group.bytes, 0);
    const description = groups.map((group) => `${group.name} ${size(group.bytes)}, ${percent(group.bytes, all)}`).join('; ');
    return h(
        'figure',
        { class: 'groups' },
        h('div', { class: 'stack-bar', role: 'img', 'aria-label': `${name || 'memory'} by group: ${description}` }, ...groups.map((group) => h('span', { style: { 'flex-grow': group.bytes / all, background: groupColour(group.name) }, title: `${group.name}: ${whole(group.bytes)} bytes` }))),
        h(
            'figcaption',
            {},
            name && h('b', {}, `${name}: `),
            ...groups.map((group) => h('span', { class: 'key', 'data-group': group.name, 'data-bytes': group.bytes }, h('i', { style: { background: groupColour(group.name) } }), `${group.name} `, h('b', {}, size(group.bytes)), ` ${percent(group.bytes, all)}`)),
        ),
    );
}

/** @param {Run} run @param {Row[]} owners @param {(sum: Sum) => number} of @returns {import('../charts/waterfall.js').Step[]} */
function steps(run, owners, of) {
    const colours = coloursOf(run, 'owner');
    return groupsOf(run, owners, of).flatMap(({ name, members }) => members.map((row) => ({ name: row.name, group: name, bytes: of(row.sum), colour: colours[row.index] })));
}

export class Moment extends View {
    static id = 'moment';
    static title = 'Summary';

    #when = h('h3', {});
    #answer = h('p', { class: 'answer', 'aria-live': 'polite' });
    #picture = h('div', {});

    content() {
        return [h('div', { class: 'tiles' }, ...tiles(this.page)), this.#when, this.#answer, this.#picture];
    }

    update() {
        const { page, run } = this;
        if (!run.moments.length) return replace(this.#answer, 'This trace has no complete snapshot.');
        const owners = rowsOf(page, 'owner', (sum) => total(sum) > 0);
        replace(this.#when, `Summary at ${run.label(page.moment)}`);
        replace(this.#answer, sentence(run, owners));
        const sides = sidesOf(run);
        const isApart = run.head.is_discrete && sides.length > 1;
        const pools = /** @type {[string, (sum: Sum) => number][]} */ (isApart ? sides.map((side) => [side, (/** @type {Sum} */ sum) => sum[side]]) : [['', total]]);
        const held = pools.filter(([, of]) => of(sumOf(owners).sum) > 0);
        replace(this.#picture, ...held.flatMap(([name, of]) => [groupBar(run, owners, of, name), waterfall(steps(run, owners, of), name ? `${name} memory by owner` : 'Memory by owner')]));
    }
}
