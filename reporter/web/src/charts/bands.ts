// SPDX-License-Identifier: GPL-2.0-or-later
//
// Blocks over time, each as a band from its allocation to its free. On a canvas, because there may be thousands; what is
// thinner than a pixel is left out of the drawing, not of the heights.

import { themed } from '../base/theme.js';
import { labels, ticksOf } from '../base/ticks.js';
import { coloursOf } from '../runs/colours.js';
import { floorAt, type Life, type Lives } from '../runs/lives.js';
import type { Run } from '../runs/run.js';

const HEIGHT = 360;
const LEFT = 74;
const BOTTOM = 24;

/** Times on the left and right edge. */
export type Span = [number, number];

export const wholeSpan = (lives: Lives): Span => [0, Math.max(1, lives.end)];

/** From shortly before the first block: a program may import for minutes before it has one. */
export function openingSpan(lives: Lives): Span {
    const first = lives.lives[0]?.begin ?? 0;
    return [Math.max(0, first - (lives.end - first) / 40), Math.max(1, lives.end)];
}

export class Bands {
    /** `dimension`: has the colours; `width`: pixels. */
    constructor(
        readonly run: Run,
        readonly dimension: 'owner' | 'role',
        readonly lives: Lives,
        readonly span: Span,
        readonly width: number,
    ) {}

    /** What two pixels lie apart; null for nothing. */
    between(from: number, to: number): Span | null {
        const [a, b] = [this.#timeAt(Math.max(LEFT, Math.min(from, to))), this.#timeAt(Math.max(from, to))];
        return b > a ? [a, b] : null;
    }

    /** The block at a pixel. */
    hit(px: number, py: number) {
        const t = this.#timeAt(px);
        const height = this.lives.top * (1 - py / (HEIGHT - BOTTOM));
        return (
            this.lives.lives.find(
                (life) => life.begin <= t && t <= life.end && floorAt(life, t) <= height && height < floorAt(life, t) + life.bytes,
            ) ?? null
        );
    }

    #x(t: number) {
        return LEFT + ((t - this.span[0]) / (this.span[1] - this.span[0])) * (this.width - LEFT);
    }

    #y(bytes: number) {
        return (HEIGHT - BOTTOM) * (1 - bytes / (this.lives.top || 1));
    }

    #timeAt(pixel: number) {
        return this.span[0] + ((pixel - LEFT) / (this.width - LEFT)) * (this.span[1] - this.span[0]);
    }

    /** Returns the names whose colours were used. `now`: the chosen moment. */
    draw(canvas: HTMLCanvasElement, now: number | undefined, chosen: Life | null) {
        const scale = window.devicePixelRatio || 1;
        canvas.width = this.width * scale;
        canvas.height = HEIGHT * scale;
        canvas.style.width = `${this.width}px`;
        canvas.style.height = `${HEIGHT}px`;
        const context = canvas.getContext('2d') as CanvasRenderingContext2D;
        context.scale(scale, scale);
        context.font = `12px ${getComputedStyle(canvas).fontFamily}`;
        this.#drawAxes(context);
        context.save();
        context.beginPath();
        context.rect(LEFT, 0, this.width - LEFT, HEIGHT - BOTTOM);
        context.clip();
        const used = this.#drawBands(context, chosen);
        if (now !== undefined) {
            context.fillStyle = themed('--accent');
            context.fillRect(this.#x(now) - 0.75, 0, 1.5, HEIGHT - BOTTOM);
        }
        context.restore();
        return used;
    }

    #drawBands(context: CanvasRenderingContext2D, chosen: Life | null) {
        const { run, lives } = this;
        const [text, back] = ['--text', '--back'].map(themed);
        const [from, to] = this.span;
        const colours = coloursOf(run, this.dimension);
        const pixel = lives.top / (HEIGHT - BOTTOM);
        const used = new Set<number>();
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

    #trace(context: CanvasRenderingContext2D, { at, floor, end, bytes }: Life) {
        context.beginPath();
        for (let i = 0; i < at.length; i++) {
            const left = this.#x(at[i]);
            const right = this.#x(i + 1 < at.length ? at[i + 1] : end);
            const top = this.#y(floor[i] + bytes);
            context.rect(left, top, Math.max(0.7, right - left), this.#y(floor[i]) - top);
        }
    }

    #drawAxes(context: CanvasRenderingContext2D) {
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
        const [from, to] = this.span;
        const times = ticksOf(run.head.unit, from, to, Math.max(2, Math.floor((width - LEFT) / 110)));
        labels(run.head.unit, times, from, to).forEach((text, i) => {
            const at = this.#x(times[i]);
            const half = context.measureText(text).width / 2;
            context.textAlign = at - half < LEFT ? 'left' : at + half > width ? 'right' : 'center';
            context.fillText(text, at, HEIGHT - 7);
        });
    }
}
