// SPDX-License-Identifier: GPL-2.0-or-later
//
// The map of device memory at the chosen moment: a row a segment, its blocks in their owners' colours, holes hatched.

import { momentName } from '../bar.js';
import { coloursOf } from '../colours.js';
import { choice, h, replace } from '../dom.js';
import { fragmentation, segmentsAt } from '../segments.js';
import { stackBox } from '../stack.js';
import { count, percent, size } from '../units.js';

/** @typedef {import('../run.js').Run} Run */
/** @typedef {import('../segments.js').Segment} Segment */
/** @typedef {import('../segments.js').Part} Part */

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

/** @type {import('../page.js').View} */
export const device = {
    id: 'device',
    title: 'Device memory map',
    fits: (run) => run.blocks.cell.some((cell) => run.side[cell] === 1),
    mount(place, page) {
        const { run } = page;
        /** @type {'owner'|'role'} */
        let dimension = 'owner';
        const summary = h('p', {});
        const map = h('div', { class: 'map', role: 'group', 'aria-label': 'Device memory: arrow keys go from block to block and from segment to segment; Enter shows who allocated one' });
        /** What is drawn, in order. There may be thousands: they share the map's listeners, and one stop of the Tab key. */
        /** @type {Map<EventTarget|null, {text: string, block: number}>} */
        const shown = new Map();
        const legend = h('ul', { class: 'legend' });
        const detail = h('output', { class: 'readout', 'aria-live': 'polite' });
        const stack = stackBox();
        place.append(
            h('div', { class: 'above' }, run.head.roles.some((role) => role) && choice('Colours by', COLOURS, dimension, (value) => ((dimension = value), show()))),
            summary,
            map,
            legend,
            detail,
            stack.element,
        );
        const owner = (/** @type {number} */ block) => run.head.owners[run.cells.owner[run.blocks.cell[block]]].name;
        const role = (/** @type {number} */ block) => run.head.roles[run.cells.role[run.blocks.cell[block]]];

        /** @param {Segment} segment @param {Part & {n: number}} part */
        function describe(segment, part) {
            const at = `at 0x${(segment.address + BigInt(part.offset)).toString(16)}`;
            if (part.block < 0) return `${part.n > 1 ? count(part.n, 'hole') : 'hole'}: ${size(part.bytes)} ${at}`;
            const many = part.n > 1 ? `${count(part.n, 'block')}, the first of ` : '';
            const of = role(part.block) ? `${owner(part.block)} (${role(part.block)})` : owner(part.block);
            return `${many}${of}: ${size(part.bytes)} ${at}`;
        }

        const tell = (/** @type {Event} */ event) => {
            const about = shown.get(event.target);
            if (about) replace(detail, about.text);
            return about;
        };
        map.addEventListener('mouseover', tell);
        map.addEventListener('focusin', tell);
        map.addEventListener('click', (event) => stack.show(run, tell(event)?.block ?? -1));
        map.addEventListener('keydown', (event) => {
            const at = event.target instanceof HTMLElement && shown.has(event.target) ? event.target : null;
            const rows = [...map.querySelectorAll('.segment')];
            const row = (/** @type {number} */ by) => rows[rows.findIndex((each) => each === at?.parentElement) + by]?.firstElementChild;
            /** @type {Record<string, () => Element|null|undefined>} */
            const steps = { ArrowLeft: () => at?.previousElementSibling, ArrowRight: () => at?.nextElementSibling, ArrowUp: () => row(-1), ArrowDown: () => row(1), Home: () => rows[0]?.firstElementChild };
            const to = at && steps[event.key]?.();
            if (!at || !(to instanceof HTMLElement)) return;
            at.tabIndex = -1;
            to.tabIndex = 0;
            to.focus();
            event.preventDefault();
        });

        /** @param {string} text @param {number} block -1: a hole @param {string} width @param {string} background */
        function button(text, block, width, background) {
            const element = document.createElement('button');
            element.type = 'button';
            element.className = block < 0 ? 'hole' : 'block';
            element.tabIndex = shown.size ? -1 : 0;
            element.setAttribute('aria-label', text);
            element.style.width = width;
            if (block >= 0) element.style.background = background;
            shown.set(element, { text, block });
            return element;
        }

        function show() {
            const now = run.moments[page.moment]?.time ?? 0;
            const segments = segmentsAt(run, now);
            const colours = coloursOf(run, dimension);
            const place = (/** @type {number} */ block) => run.cells[dimension][run.blocks.cell[block]];
            const widest = segments[0]?.bytes ?? 1;
            const { free, largest, holes, fragmentation: share } = fragmentation(segments);
            const reserving = segments.filter((segment) => segment.isSegment);
            replace(
                summary,
                h('span', { class: 'quiet' }, `at ${run.moments.length ? momentName(run, page.moment) : 'no moment'}: `),
                reserving.length
                    ? `${count(reserving.length, 'segment')} with ${size(free)} free in ${count(holes, 'hole')}, the largest ${size(largest)}; fragmentation ${percent(share, 1)}`
                    : `${count(segments.length, 'block')}, none of them in a segment`,
            );
            replace(map);
            shown.clear();
            replace(detail);
            stack.show(run, -1);
            const used = new Set();
            let left = MOST_PARTS;
            for (const segment of segments.slice(0, MOST_ROWS)) {
                const parts = drawn(segment.parts, segment.bytes).slice(0, Math.max(1, left));
                left -= parts.length;
                const row = h('span', { class: 'segment', style: { width: `${Math.max(0.4, (100 * segment.bytes) / widest)}%` } });
                for (const part of parts) {
                    if (part.block >= 0) used.add(place(part.block));
                    row.append(button(describe(segment, part), part.block, `${(100 * part.bytes) / segment.bytes}%`, colours[place(part.block)]));
                }
                const use = segment.isSegment ? `, ${percent(segment.used, segment.bytes)} used` : '';
                map.append(h('div', { class: 'map-row' }, h('span', { class: 'map-label' }, `${size(segment.bytes)}${use}`), h('span', { class: 'map-track' }, row)));
            }
            if (segments.length > MOST_ROWS) {
                const rest = segments.slice(MOST_ROWS);
                map.append(h('p', { class: 'quiet' }, `and ${count(rest.length, 'smaller one')}, ${size(rest.reduce((all, { bytes }) => all + bytes, 0))} in all`));
            }
            const names = run.dimension(dimension).names;
            replace(legend, ...[...used].map((i) => h('li', { class: 'key' }, h('i', { style: { background: colours[i] } }), names[i])), holes > 0 && h('li', { class: 'key' }, h('i', { class: 'hole' }), 'free'));
        }
        return show;
    },
};
