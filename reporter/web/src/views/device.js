// SPDX-License-Identifier: GPL-2.0-or-later
//
// The map of device memory at the chosen moment: a row a segment, its blocks in their owners' colours, holes hatched; and
// fragmentation of segments over time: the share of their free memory that is not in the largest hole.

import { choice, h, replace } from '../base/dom.js';
import { count, moment as time, percent, size, whole } from '../base/units.js';
import { stackBox } from '../charts/stack.js';
import { coloursOf } from '../runs/colours.js';
import { StepList } from '../charts/steps.js';
import { fragmentation, segmentsAfter, segmentsAt } from '../runs/segments.js';
import { View } from './view.js';
import { Table } from '../charts/table.js';

/** @typedef {import('../runs/run.js').Run} Run */
/** @typedef {import('../runs/segments.js').Segment} Segment */
/** @typedef {import('../runs/segments.js').Part} Part */

/** @typedef {{time: number, reserved: number, free: number, hole: number, share: number}} Row */

export class Fragmentation extends View {
    static id = 'fragmentation';
    static title = 'Fragmentation over time';
    static isWhole = true;

    /** @param {Run} run */
    static fits(run) {
        return run.head.oom.over_time.time.length > 0;
    }

    content() {
        const { unit, oom } = this.run.head;
        const { time: times, reserved, free, largest_hole: holes } = oom.over_time;
        const rows = times.map((at, i) => ({ time: at, reserved: reserved[i], free: free[i], hole: holes[i], share: free[i] ? 1 - holes[i] / free[i] : 0 }));
        const bars = rows.map((row) => h('span', { title: `${time(row.time, unit)}: ${percent(row.share, 1)}; ${size(row.free)} free, the largest hole ${size(row.hole)}`, style: { height: `${100 * row.share}%` } }));
        /** @type {Table<Row>} */
        const grid = new Table('Segments at snapshots', { limit: 8, note: 'fragmentation: share of the free memory that is not in the largest hole' });
        grid.show(
            [
                { head: 'at', isFigure: true, value: (row) => row.time, show: (row) => time(row.time, unit), title: () => '' },
                { head: 'reserved', isFigure: true, value: (row) => row.reserved, show: (row) => size(row.reserved) },
                { head: 'free', isFigure: true, value: (row) => row.free, show: (row) => size(row.free) },
                { head: 'largest hole', isFigure: true, value: (row) => row.hole, show: (row) => size(row.hole) },
                { head: 'fragmentation', isFigure: true, value: (row) => row.share, show: (row) => percent(row.share, 1), title: () => '' },
            ],
            rows,
        );
        const ends = [times[0], times[times.length - 1]].map((at) => h('span', {}, time(at, unit)));
        return [
            h('figure', { class: 'fragmentation' }, h('figcaption', {}, h('b', {}, 'Fragmentation at each snapshot')), h('div', { class: 'scale quiet', 'aria-hidden': 'true' }, h('span', {}, '100 %'), h('span', {}, '0 %')), h('div', { class: 'bars', role: 'img', 'aria-label': 'fragmentation at each snapshot, from 0 to 100 percent' }, ...bars), h('div', { class: 'ends quiet' }, ...ends)),
            grid.element,
        ];
    }
}

const MOST_ROWS = 60;
const MOST_PARTS = 3000; // on the page
const NARROWEST = 0.0008; // of the row: below that neighbours are drawn as one

/** @type {['owner'|'role', string][]} */
const COLOURS = [
    ['owner', 'owner'],
    ['role', 'role'],
];

/** Neighbours too narrow to be seen become one. @param {Part[]} parts @param {number} whole */
function drawn(parts, whole) {
    /** @type {(Part & {n: number})[]} */
    const result = [];
    for (const part of parts) {
        const last = result.at(-1);
        const isNarrow = part.bytes < whole * NARROWEST;
        if (last && isNarrow && last.bytes < whole * NARROWEST && (last.block < 0) === (part.block < 0)) {
            last.bytes = part.offset + part.bytes - last.offset;
            last.n++;
        } else result.push({ ...part, n: 1 });
    }
    return result;
}

/** @param {Run} run @param {Segment} segment @param {Part & {n: number}} part */
function describe(run, segment, part) {
    const at = `at 0x${(segment.address + BigInt(part.offset)).toString(16)}`;
    if (part.block < 0) return `${part.n > 1 ? count(part.n, 'hole') : 'hole'}: ${size(part.bytes)} ${at}`;
    const cell = run.blocks.cell[part.block];
    const owner = run.head.owners[run.cells.owner[cell]].name;
    const role = run.head.roles[run.cells.role[cell]];
    const many = part.n > 1 ? `${count(part.n, 'block')}, the first of ` : '';
    return `${many}${role ? `${owner} (${role})` : owner}: ${size(part.bytes)} ${at}`;
}

/** @param {Segment[]} segments */
function summaryOf(segments) {
    const reserving = segments.filter((segment) => segment.isSegment);
    if (!reserving.length) return `${count(segments.length, 'block')}, none of them in a segment`;
    const { free, largest, holes, fragmentation: share } = fragmentation(segments);
    return `${count(reserving.length, 'segment')} with ${size(free)} free in ${count(holes, 'hole')}, the largest ${size(largest)}; fragmentation ${percent(share, 1)}`;
}

export class DeviceMap extends View {
    static id = 'device';
    static title = 'Device memory map';
    static isWhole = true;

    /** @param {Run} run */
    static fits(run) {
        return run.blocks.cell.some((cell) => run.side[cell] === 1);
    }

    /** @type {'owner'|'role'} */
    #dimension = 'owner';
    /** The parts drawn, in order. There may be thousands: they share the map's listeners, and one stop of the Tab key. */
    /** @type {Map<EventTarget|null, {text: string, block: number}>} */
    #shown = new Map();
    #summary = h('p', { class: 'map-summary' });
    #map = h('div', { class: 'map', role: 'group', 'aria-label': 'Device memory: arrow keys go from block to block and from segment to segment; Enter shows its call stack' });
    #legend = h('ul', { class: 'legend' });
    #detail = h('output', { class: 'readout', 'aria-live': 'polite' });
    #stack = stackBox();
    #steps = new StepList(this.run, (step, number, of) => {
        if (!step) return;
        this.#show(segmentsAfter(this.run, step.place), `after step ${whole(number)} of ${whole(of)}`);
        this.#stack.show(this.run, step.block);
    });

    content() {
        const { run } = this;
        const map = this.#map;
        map.addEventListener('mouseover', (event) => this.#describe(event));
        map.addEventListener('focusin', (event) => this.#describe(event));
        map.addEventListener('click', (event) => this.#stack.show(run, this.#describe(event)?.block ?? -1));
        map.addEventListener('keydown', (event) => this.#key(event));
        const choose = choice('Colour by', COLOURS, this.#dimension, (value) => {
            this.#dimension = value;
            this.update();
        });
        return [h('div', { class: 'above' }, run.head.roles.some((role) => role) && choose), this.#summary, map, this.#legend, this.#detail, run.blocks.came && this.#steps.element, this.#stack.element];
    }

    /** @param {Event} event */
    #describe(event) {
        const about = this.#shown.get(event.target);
        if (about) replace(this.#detail, about.text);
        return about;
    }

    /** @param {KeyboardEvent} event */
    #key(event) {
        const at = event.target instanceof HTMLElement && this.#shown.has(event.target) ? event.target : null;
        const rows = [...this.#map.querySelectorAll('.segment')];
        const row = (/** @type {number} */ by) => rows[rows.findIndex((each) => each === at?.parentElement) + by]?.firstElementChild;
        /** @type {Record<string, () => Element|null|undefined>} */
        const steps = { ArrowLeft: () => at?.previousElementSibling, ArrowRight: () => at?.nextElementSibling, ArrowUp: () => row(-1), ArrowDown: () => row(1), Home: () => rows[0]?.firstElementChild };
        const to = at && steps[event.key]?.();
        if (!at || !(to instanceof HTMLElement)) return;
        at.tabIndex = -1;
        to.tabIndex = 0;
        to.focus();
        event.preventDefault();
    }

    update() {
        const { page, run } = this;
        const now = run.moments[page.moment]?.time ?? 0;
        this.#show(segmentsAt(run, now), `at ${run.moments.length ? run.label(page.moment) : 'no moment'}`);
        this.#steps.reset(now);
    }

    /** @param {Segment[]} segments @param {string} when */
    #show(segments, when) {
        const { run } = this;
        const { holes } = fragmentation(segments);
        replace(this.#summary, h('span', { class: 'quiet' }, `${when}: `), summaryOf(segments));
        replace(this.#map);
        this.#shown.clear();
        replace(this.#detail);
        this.#stack.show(run, -1);
        const used = this.#draw(segments);
        if (segments.length > MOST_ROWS) {
            const rest = segments.slice(MOST_ROWS);
            this.#map.append(h('p', { class: 'quiet' }, `and ${count(rest.length, 'smaller one')}, ${size(rest.reduce((all, { bytes }) => all + bytes, 0))} in all`));
        }
        const { names } = run.dimension(this.#dimension);
        const colours = coloursOf(run, this.#dimension);
        replace(this.#legend, ...[...used].map((i) => h('li', { class: 'key' }, h('i', { style: { background: colours[i] } }), names[i])), holes > 0 && h('li', { class: 'key' }, h('i', { class: 'hole' }), 'free'));
    }

    /** A row a segment. @param {Segment[]} segments @returns {Set<number>} the names whose colours were used */
    #draw(segments) {
        const { run } = this;
        const colours = coloursOf(run, this.#dimension);
        const nameOf = (/** @type {number} */ block) => run.cells[this.#dimension][run.blocks.cell[block]];
        const widest = segments[0]?.bytes ?? 1;
        const used = new Set();
        let left = MOST_PARTS;
        for (const segment of segments.slice(0, MOST_ROWS)) {
            const parts = drawn(segment.parts, segment.bytes).slice(0, Math.max(1, left));
            left -= parts.length;
            const row = h('span', { class: 'segment', style: { width: `${Math.max(0.4, (100 * segment.bytes) / widest)}%` } });
            for (const part of parts) {
                if (part.block >= 0) used.add(nameOf(part.block));
                row.append(this.#button(describe(run, segment, part), part.block, `${(100 * part.bytes) / segment.bytes}%`, colours[nameOf(part.block)]));
            }
            const use = segment.isSegment ? `, ${percent(segment.used, segment.bytes)} used` : '';
            this.#map.append(h('div', { class: 'map-row' }, h('span', { class: 'map-label' }, `${size(segment.bytes)}${use}`), h('span', { class: 'map-track' }, row)));
        }
        return used;
    }

    /** @param {string} text @param {number} block -1: a hole @param {string} width @param {string} background */
    #button(text, block, width, background) {
        const element = document.createElement('button');
        element.type = 'button';
        element.className = block < 0 ? 'hole' : 'block';
        element.tabIndex = this.#shown.size ? -1 : 0;
        element.setAttribute('aria-label', text);
        element.style.width = width;
        if (block >= 0) element.style.background = background;
        this.#shown.set(element, { text, block });
        return element;
    }
}
