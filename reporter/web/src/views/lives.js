// SPDX-License-Identifier: GPL-2.0-or-later
//
// The largest blocks over time, each as a band; a click shows who allocated one.

import { append, choice, h, replace } from '../base/dom.js';
import { onTheme } from '../base/theme.js';
import { count, moment as time, size } from '../base/units.js';
import { Bands } from '../charts/bands.js';
import { stackBox } from '../charts/stack.js';
import { lineOf } from '../runs/blocks.js';
import { coloursOf } from '../runs/colours.js';
import { livesOf } from '../runs/lives.js';
import { sidesOf } from '../runs/sums.js';
import { View } from './view.js';

/** @typedef {import('../runs/run.js').Run} Run */
/** @typedef {import('../runs/lives.js').Life} Life */

const AT_FIRST = 300;
const NUMBERS = /** @type {[string, string][]} */ ([
    ['100', '100 largest'],
    ['300', '300 largest'],
    ['1000', '1,000 largest'],
    ['4000', '4,000 largest'],
]);
const LEAST_DRAG = 5; // pixels, below which it was a click

/** @param {Run} run @param {Life} life */
function about(run, life) {
    const cell = run.blocks.cell[life.block];
    const { unit, roles, owners } = run.head;
    const role = roles[run.cells.role[cell]];
    const freed = run.blocks.end[life.block] ? `freed at ${time(life.end, unit)}` : 'never freed';
    const line = lineOf(run, cell);
    return `${size(life.bytes)}, ${owners[run.cells.owner[cell]].name}${role ? ` (${role})` : ''}, allocated at ${time(life.begin, unit)}${line ? ` by ${line}` : ''}, ${freed}`;
}

export class BlocksOverTime extends View {
    static id = 'lives';
    static title = 'Blocks over time';

    /** @param {Run} run */
    static fits(run) {
        return run.blocks.begin.length > 0;
    }

    /** @type {'host'|'device'} */
    #side = this.run.blocks.cell.some((cell) => this.run.side[cell] === 1) ? 'device' : 'host';
    #most = AT_FIRST;
    #bands = new Bands(this.run, this.run.head.roles.some((role) => role) ? 'role' : 'owner', livesOf(this.run, this.#side, this.#most));
    #note = h('p', { class: 'quiet' });
    #detail = h('output', { class: 'readout', 'aria-live': 'polite' });
    #stack = stackBox();
    #reset = h('button', { type: 'button', onclick: () => (this.#bands.showWhole(), this.update()) }, 'whole run');
    #legend = h('ul', { class: 'legend' });
    /** @type {HTMLElement|null} */
    #place = null;
    /** Pixel at which the pointer went down. @type {number|null} */
    #dragFrom = null;

    /** @param {HTMLElement} place */
    mount(place) {
        const { hold } = this;
        const canvas = this.#bands.element;
        this.#place = place;
        append(place, this.#choices(), this.#note, canvas, this.#legend, this.#detail, this.#stack.element);
        canvas.addEventListener('pointerdown', (event) => (this.#dragFrom = event.offsetX));
        canvas.addEventListener('pointermove', (event) => this.#point(event));
        canvas.addEventListener('pointerup', (event) => this.#drop(event));
        canvas.addEventListener('keydown', (event) => this.#key(event));
        hold.onResize(place, () => place.clientWidth !== this.#bands.width && this.update());
        hold.onPrint((width) => this.#draw(width ?? place.clientWidth));
        onTheme(hold, () => this.update());
    }

    #choices() {
        const sides = sidesOf(this.run);
        const load = () => {
            this.#bands.show(livesOf(this.run, this.#side, this.#most));
            this.update();
        };
        return h(
            'div',
            { class: 'above' },
            sides.length > 1 && choice('Memory', /** @type {['host'|'device', string][]} */ (sides.map((name) => [name, name])), this.#side, (value) => ((this.#side = value), load())),
            choice('Show', NUMBERS, String(AT_FIRST), (value) => ((this.#most = Number(value)), load())),
            h('span', { class: 'tools buttons' }, this.#reset),
        );
    }

    update() {
        this.#draw(this.#place?.clientWidth ?? 0);
    }

    /** @param {number} width */
    #draw(width) {
        const { page, run } = this;
        const bands = this.#bands;
        const used = this.#place && bands.draw(this.#place, run.moments[page.moment]?.time, width);
        if (!used) return;
        const { dimension, lives } = bands;
        const { names } = run.dimension(dimension);
        const colours = coloursOf(run, dimension);
        replace(this.#legend, ...[...used].map((i) => h('li', { class: 'key' }, h('i', { style: { background: colours[i] } }), names[i])));
        this.#reset.disabled = bands.isWhole;
        const others = lives.nLeftOut ? `; ${count(lives.nLeftOut, 'block')} of up to ${size(lives.least)} left out` : '';
        replace(this.#note, `${count(lives.lives.length, 'block')} of ${this.#side} memory, ${size(lives.top)} at most together${others}. Drag to enlarge, click for the stack.`);
        bands.element.setAttribute('aria-label', `Blocks over time: ${this.#note.textContent} The table of the largest live blocks has the same figures.`);
    }

    /** @param {Life|null} life */
    #choose(life) {
        this.#bands.chosen = life;
        this.#stack.show(this.run, life?.block ?? -1);
        replace(this.#detail, life ? about(this.run, life) : '');
        this.update();
    }

    /** @param {PointerEvent} event */
    #point(event) {
        const life = this.#bands.hit(event.offsetX, event.offsetY);
        if (life || !this.#bands.chosen) replace(this.#detail, life ? about(this.run, life) : '');
    }

    /** @param {PointerEvent} event */
    #drop(event) {
        const from = this.#dragFrom;
        this.#dragFrom = null;
        if (from !== null && Math.abs(event.offsetX - from) > LEAST_DRAG) {
            this.#bands.zoom(from, event.offsetX);
            this.update();
        } else if (from !== null) this.#choose(this.#bands.hit(event.offsetX, event.offsetY));
    }

    /** @param {KeyboardEvent} event */
    #key(event) {
        const { lives } = this.#bands.lives;
        const at = this.#bands.chosen ? lives.indexOf(this.#bands.chosen) : -1;
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (step) this.#choose(lives[Math.max(0, Math.min(lives.length - 1, at + step))] ?? null);
        else if (event.key === 'Escape') {
            this.#bands.showWhole();
            this.#choose(null);
        } else return;
        event.preventDefault();
    }
}
