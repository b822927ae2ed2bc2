// SPDX-License-Identifier: GPL-2.0-or-later
//
// Allocations that failed for lack of memory: the verdict, its arithmetic, what would have helped, the device's map at that
// moment, and who asked. Those that succeeded at a further try are a line each.

import { coloursOf } from '../colours.js';
import { h } from '../dom.js';
import { count, moment as time, percent, size, whole } from '../units.js';

/** @typedef {import('../data.js').Incident} Incident */
/** @typedef {import('../data.js').DrawnSegment} DrawnSegment */
/** @typedef {import('../run.js').Run} Run */

/** @param {Incident} incident */
function what({ call, asked, tries, error }) {
    const of = asked === null ? 'an unknown size' : size(asked);
    if (!error) return `The framework gave up on ${of}.`;
    const times = tries.length > 1 ? ` ${tries.length} times` : '';
    return `${call} of ${of} failed${times} (error ${error}).`;
}

/** @param {Incident} incident */
function whatCame({ outcome, freed }) {
    if (outcome === 'retried') return freed ? `After ${size(freed)} was given back it succeeded.` : 'The next try succeeded.';
    const given = freed ? `${size(freed)} was given back in between; that was not enough. ` : '';
    return outcome === 'raised' ? `${given}The framework told the program that it is out of memory.` : given;
}

/** A row a segment, all to one scale. @param {Run} run @param {Incident} incident */
function map(run, { map: segments, segments_left_out: leftOut }) {
    const colours = coloursOf(run, 'owner');
    const place = new Map(run.head.owners.map(({ name }, index) => [name, index]));
    const colourOf = (/** @type {string} */ owner) => colours[place.get(owner) ?? -1] ?? 'var(--quiet)';
    const widest = segments[0].bytes;
    const used = new Set();
    const rows = segments.map(({ address, bytes, free, parts }) => {
        let at = 0;
        const row = parts.map(([length, owner]) => {
            const text = `${owner || 'hole'}: ${size(length)} at 0x${(BigInt(`0x${address}`) + BigInt(at)).toString(16)}`;
            at += length;
            if (owner) used.add(owner);
            return h('span', { class: owner ? 'block' : 'hole', title: text, style: { flex: `0 0 ${(100 * length) / bytes}%`, ...(owner ? { background: colourOf(owner) } : {}) } });
        });
        return h(
            'div',
            { class: 'map-row', role: 'img', 'aria-label': `segment of ${size(bytes)}, ${percent(bytes - free, bytes)} used` },
            h('span', { class: 'map-label' }, `${size(bytes)}, ${percent(bytes - free, bytes)} used`),
            h('span', { class: 'map-track' }, h('span', { class: 'segment', style: { width: `${Math.max(0.4, (100 * bytes) / widest)}%` } }, ...row)),
        );
    });
    const legend = h('ul', { class: 'legend' }, ...[...used].map((owner) => h('li', { class: 'key' }, h('i', { style: { background: colourOf(owner) } }), owner)), h('li', { class: 'key' }, h('i', { class: 'hole' }), 'free'));
    return h('div', { class: 'map' }, h('h4', {}, "The device's memory then"), ...rows, leftOut > 0 && h('p', { class: 'quiet' }, `and ${count(leftOut, 'smaller one')}`), legend);
}

/** @param {Incident} incident */
function arithmetic(incident) {
    const rows = incident.arithmetic.map(([label, bytes, remark]) => {
        const depth = (label.length - label.trimStart().length) / 2;
        return h('tr', {}, h('th', { scope: 'row', style: { 'padding-left': `${1.2 * depth}rem` } }, label.trim()), h('td', { class: 'figure', title: `${whole(bytes)} bytes` }, size(bytes)), h('td', { class: 'quiet' }, remark));
    });
    return h('table', { class: 'arithmetic' }, h('tbody', {}, ...rows));
}

/** @type {import('../page.js').View} */
export const exhaustion = {
    id: 'out-of-memory',
    title: 'Out of memory',
    fits: (run) => run.head.exhaustion.incidents.length > 0,
    mount(place, page) {
        const { run } = page;
        const { unit } = run.head;
        const { incidents, untold } = run.head.exhaustion;
        const goTo = (/** @type {Incident} */ incident) => {
            const index = run.moments.findIndex(({ id }) => id !== 0 && id === incident.snapshot);
            return index >= 0 && h('button', { type: 'button', onclick: () => page.select(index) }, 'show this moment in all sections');
        };
        for (const incident of incidents.filter(({ outcome }) => outcome !== 'retried').reverse()) {
            place.append(
                h(
                    'article',
                    { class: 'incident', 'data-number': incident.number },
                    h('h3', {}, `(${incident.number}) at ${time(incident.time, unit)}: `, h('span', { class: 'problem' }, incident.verdict)),
                    h('p', {}, `${what(incident)} ${incident.reason} ${whatCame(incident)}`.trim()),
                    arithmetic(incident),
                    incident.helps.length > 0 && h('div', {}, h('h4', {}, 'Would have helped, by these numbers'), h('ul', { class: 'helps' }, ...incident.helps.map((text) => h('li', {}, text)))),
                    incident.map.length > 0 && map(run, incident),
                    h('details', {}, h('summary', {}, incident.line ? `Asked for by ${incident.line}` : 'Asked for by'), h('ol', { class: 'stack' }, ...incident.stack.map((frame) => h('li', {}, frame)))),
                    goTo(incident),
                ),
            );
        }
        const resolved = incidents.filter(({ outcome }) => outcome === 'retried');
        if (resolved.length) {
            place.append(h('h3', {}, 'Failed, and succeeded at the next try'), h('ul', { class: 'resolved' }, ...resolved.map((incident) => h('li', {}, `(${incident.number}) at ${time(incident.time, unit)}: ${what(incident)} ${whatCame(incident)}`))));
        }
        if (untold) place.append(h('p', { class: 'quiet untold' }, `${count(untold, 'more failed call')} not on this page`));
        return () => {};
    },
};
