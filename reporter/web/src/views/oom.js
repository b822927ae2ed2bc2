// SPDX-License-Identifier: GPL-2.0-or-later
//
// Allocations that failed for lack of memory: verdict, arithmetic, remedies, device map and call stack of each. Those that a retry
// recovered are a line each.

import { h } from '../base/dom.js';
import { count, moment as time, percent, size, whole } from '../base/units.js';
import { coloursOf } from '../runs/colours.js';
import { View } from './view.js';

/** @typedef {import('../runs/data.js').Incident} Incident */
/** @typedef {import('../runs/data.js').DrawnSegment} DrawnSegment */
/** @typedef {import('../runs/run.js').Run} Run */

/** @param {Incident} incident */
function what({ call, asked, tries, error }) {
    const of = asked === null ? 'an unknown size' : size(asked);
    if (!error) return `The framework gave up on ${of}.`;
    const times = tries.length > 1 ? ` ${tries.length} times` : '';
    return `${call} of ${of} failed${times} (error ${error}).`;
}

/** @param {Incident} incident */
function whatCame({ outcome, freed }) {
    if (outcome === 'retried') return freed ? `Retry succeeded after ${size(freed)} was freed.` : 'Retry succeeded.';
    const given = freed ? `${size(freed)} was freed in between, too little. ` : '';
    return outcome === 'raised' ? `${given}The framework raised an out-of-memory error.` : given;
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
    return h('div', { class: 'map' }, h('h4', {}, 'Device memory at that moment'), ...rows, leftOut > 0 && h('p', { class: 'quiet' }, `and ${count(leftOut, 'smaller one')}`), legend);
}

/** @param {Incident} incident */
function arithmetic(incident) {
    const rows = incident.arithmetic.map(([label, bytes, remark]) => {
        const depth = (label.length - label.trimStart().length) / 2;
        return h('tr', {}, h('th', { scope: 'row', style: { 'padding-left': `${1.2 * depth}rem` } }, label.trim()), h('td', { class: 'figure', title: `${whole(bytes)} bytes` }, size(bytes)), h('td', { class: 'quiet' }, remark));
    });
    return h('table', { class: 'arithmetic' }, h('tbody', {}, ...rows));
}

export class OutOfMemory extends View {
    static id = 'out-of-memory';
    static title = 'Failed allocations';
    static isWhole = true;

    /** @param {Run} run */
    static fits(run) {
        return run.head.oom.incidents.length > 0;
    }

    content() {
        const { unit, oom } = this.run.head;
        const { incidents, not_shown } = oom;
        const resolved = incidents.filter(({ outcome }) => outcome === 'retried');
        const lines = resolved.map((incident) => h('li', {}, `(${incident.number}) at ${time(incident.time, unit)}: ${what(incident)} ${whatCame(incident)}`));
        return [
            ...incidents.filter(({ outcome }) => outcome !== 'retried').reverse().map((incident) => this.#article(incident)),
            ...(lines.length ? [h('h3', {}, 'Earlier failed allocations (recovered)'), h('ul', { class: 'resolved' }, ...lines)] : []),
            not_shown > 0 && h('p', { class: 'quiet not-shown' }, `${count(not_shown, 'more failed call')} not on this page`),
        ];
    }

    /** @param {Incident} incident */
    #article(incident) {
        const { page, run } = this;
        const index = run.moments.findIndex(({ id }) => id !== 0 && id === incident.snapshot);
        return h(
            'article',
            { class: 'incident', 'data-number': incident.number },
            h('h3', {}, `(${incident.number}) at ${time(incident.time, run.head.unit)}: `, h('span', { class: 'problem' }, incident.verdict)),
            h('p', {}, `${what(incident)} ${incident.reason} ${whatCame(incident)}`.trim()),
            arithmetic(incident),
            incident.helps.length > 0 && h('div', {}, h('h4', {}, 'Remedies'), h('ul', { class: 'helps' }, ...incident.helps.map((text) => h('li', {}, text)))),
            incident.map.length > 0 && map(run, incident),
            h('details', {}, h('summary', {}, incident.line ? `Call stack, at ${incident.line}` : 'Call stack'), h('ol', { class: 'stack' }, ...incident.stack.map((frame) => h('li', {}, frame)))),
            index >= 0 && h('button', { type: 'button', onclick: () => page.select(index) }, 'Show this moment'),
        );
    }
}
