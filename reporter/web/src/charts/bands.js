// SPDX-License-Identifier: GPL-2.0-or-later
//
// Blocks over time, each as a band from its allocation to its free. On a canvas, because there may be thousands; what is
// thinner than a pixel is left out of the drawing, not of the heights.

import { h } from '../base/dom.js';
import { themed } from '../base/theme.js';
import { labels, ticksOf } from '../base/ticks.js';
import { coloursOf } from '../runs/colours.js';
import { floorAt } from '../runs/lives.js';

/** @typedef {import('../runs/run.js').Run} Run */
/** @typedef {import('../runs/lives.js').Life} Life */
/** @typedef {import('../runs/lives.js').Lives} Lives */

const HEIGHT = 360;
const LEFT = 74;
const BOTTOM = 24;

export class Bands {
    element = h('canvas', { role: 'img', tabIndex: 0 });
    /** @type {Life|null} */
    chosen = null;
    /** Of the place that it lies in, when it was last drawn. */
    width = 0;
    /** Times on the left and right edge. */
    #view = [0, 1];

    /** @param {Run} run @param {'owner'|'role'} dimension that has the colours @param {Lives} lives */
    constructor(run, dimension, lives) {
        this.run = run;
        this.dimension = dimension;
        this.lives = lives;
        this.show(lives);
    }

    /** Others, from shortly before the first: a program may import for minutes before it has one. @param {Lives} lives */
    show(lives) {
        this.lives = lives;
        this.chosen = null;
        const first = lives.lives[0]?.begin ?? 0;
        this.#view = [Math.max(0, first - (lives.end - first) / 40), Math.max(1, lives.end)];
    }

    showWhole() {
        this.#view = [0, Math.max(1, this.lives.end)];
    }

    get isWhole() {
        return this.#view[0] === 0 && this.#view[1] === Math.max(1, this.lives.end);
    }

    /** @param {number} from pixel @param {number} to pixel */
    zoom(from, to) {
        const [a, b] = [this.#timeAt(Math.max(LEFT, Math.min(from, to))), this.#timeAt(Math.max(from, to))];
        if (b > a) this.#view = [a, b];
    }

    /** The block at a pixel. @param {number} px @param {number} py */
    hit(px, py) {
        const t = this.#timeAt(px);
        const height = this.lives.top * (1 - py / (HEIGHT - BOTTOM));
        return this.lives.lives.find((life) => life.begin <= t && t <= life.end && floorAt(life, t) <= height && height < floorAt(life, t) + life.bytes) ?? null;
    }

    /** @param {number} t */
    #x(t) {
        return LEFT + ((t - this.#view[0]) / (this.#view[1] - this.#view[0])) * (this.width - LEFT);
    }

    /** @param {number} bytes */
    #y(bytes) {
        return (HEIGHT - BOTTOM) * (1 - bytes / (this.lives.top || 1));
    }

    /** @param {number} pixel */
    #timeAt(pixel) {
        return this.#view[0] + ((pixel - LEFT) / (this.width - LEFT)) * (this.#view[1] - this.#view[0]);
    }

    /** @param {HTMLElement} place that it lies in @param {number|undefined} now @param {number} [width] of the drawing @returns {Set<number>|null} the names whose colours were used; null: there is no room */
    draw(place, now, width = place.clientWidth) {
        const { element: canvas } = this;
        this.width = width;
        if (!this.width) return null;
        const scale = window.devicePixelRatio || 1;
        canvas.width = this.width * scale;
        canvas.height = HEIGHT * scale;
        canvas.style.width = `${this.width}px`;
        canvas.style.height = `${HEIGHT}px`;
        const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
        context.scale(scale, scale);
        context.font = `12px ${getComputedStyle(place).fontFamily}`;
        this.#drawAxes(context);
        context.save();
        context.beginPath();
        context.rect(LEFT, 0, this.width - LEFT, HEIGHT - BOTTOM);
        context.clip();
        const used = this.#drawBands(context);
        if (now !== undefined) {
            context.fillStyle = themed('--accent');
            context.fillRect(this.#x(now) - 0.75, 0, 1.5, HEIGHT - BOTTOM);
        }
        context.restore();
        return used;
    }

    /** @param {CanvasRenderingContext2D} context */
    #drawBands(context) {
        const { run, lives, chosen } = this;
        const [text, back] = ['--text', '--back'].map(themed);
        const [from, to] = this.#view;
        const colours = coloursOf(run, this.dimension);
        const pixel = lives.top / (HEIGHT - BOTTOM);
        /** @type {Set<number>} */
        const used = new Set();
        for (const life of lives.lives) {
            if (life.end < from || life.begin > to || life.bytes < pixel / 2) continue;
            const name = run.cells[this.dimension][run.blocks.cell[life.block]];
            used.add(name);
            this.#trace(context, life);
            context.fillStyle = colours[name];
            context.fill();
            if (life.bytes > 3 * pixel) {
                context.strokeStyle = back;
                context.lineWidth = 0.5;
                context.stroke();
            }
        }
        if (chosen) {
            this.#trace(context, chosen);
            context.strokeStyle = text;
            context.lineWidth = 1.5;
            context.stroke();
        }
        return used;
    }

    /** @param {CanvasRenderingContext2D} context @param {Life} life */
    #trace(context, { at, floor, end, bytes }) {
        context.beginPath();
        for (let i = 0; i < at.length; i++) {
            const left = this.#x(at[i]);
            const right = this.#x(i + 1 < at.length ? at[i + 1] : end);
            const top = this.#y(floor[i] + bytes);
            context.rect(left, top, Math.max(0.7, right - left), this.#y(floor[i]) - top);
        }
    }

    /** @param {CanvasRenderingContext2D} context */
    #drawAxes(context) {
        const { width, lives, run } = this;
        context.lineWidth = 1;
        context.fillStyle = themed('--quiet');
        context.strokeStyle = themed('--grid');
        context.textAlign = 'right';
        const sizes = ticksOf('B', 0, lives.top, 6);
        const texts = labels('B', sizes, 0, lives.top);
        sizes.forEach((bytes, i) => {
            const at = this.#y(bytes);
            context.beginPath();
            context.moveTo(LEFT, at);
            context.lineTo(width, at);
            context.stroke();
            context.fillText(texts[i], LEFT - 6, Math.max(10, at + 4));
        });
        const [from, to] = this.#view;
        const times = ticksOf(run.head.unit, from, to, Math.max(2, Math.floor((width - LEFT) / 110)));
        labels(run.head.unit, times, from, to).forEach((text, i) => {
            const at = this.#x(times[i]);
            const half = context.measureText(text).width / 2;
            context.textAlign = at - half < LEFT ? 'left' : at + half > width ? 'right' : 'center';
            context.fillText(text, at, HEIGHT - 7);
        });
    }
}
