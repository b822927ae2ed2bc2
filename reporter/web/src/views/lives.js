// SPDX-License-Identifier: GPL-2.0-or-later
//
// The largest blocks over time, each as a band from its allocation to its free. On a canvas, because there may be
// thousands; what is thinner than a pixel is left out of the drawing, not of the heights.

import { coloursOf, themed } from '../colours.js';
import { choice, h, replace } from '../dom.js';
import { floorAt, livesOf } from '../lives.js';
import { stackBox } from '../stack.js';
import { count, moment as time, size } from '../units.js';
import { sidesOf } from './sums.js';

/** @typedef {import('../lives.js').Life} Life */

const HEIGHT = 360;
const LEFT = 74;
const BOTTOM = 24;

/** @type {View} @typedef {import('../page.js').View} View */
export const lives = {
    id: 'lives',
    title: 'Blocks over time',
    fits: (run) => run.blocks.begin.length > 0,
    mount(place, page) {
        const { run } = page;
        const unit = run.head.unit;
        const hasDevice = run.blocks.cell.some((cell) => run.side[cell] === 1);
        /** @type {'host'|'device'} */
        let side = hasDevice ? 'device' : 'host';
        let most = 300;
        /** @type {'owner'|'role'} */
        const dimension = run.head.roles.some((role) => role) ? 'role' : 'owner';
        let found = livesOf(run, side, most);
        /** Times on the left and right edge. */
        let view = [0, 1];
        /** @type {Life|null} */
        let chosen = null;
        /** @type {number|null} */
        let dragFrom = null;

        const canvas = h('canvas', { role: 'img', tabIndex: 0 });
        const note = h('p', { class: 'quiet' });
        const detail = h('output', { class: 'readout', 'aria-live': 'polite' });
        const stack = stackBox();
        const reset = h('button', { type: 'button', onclick: () => (whole(), draw()) }, 'whole run');
        const legend = h('ul', { class: 'legend' });
        const sides = sidesOf(run);
        place.append(
            h(
                'div',
                { class: 'above' },
                sides.length > 1 && choice('Memory', /** @type {['host'|'device', string][]} */ (sides.map((name) => [name, name])), side, (value) => ((side = value), load())),
                choice('Show', [['100', '100 largest'], ['300', '300 largest'], ['1000', '1,000 largest'], ['4000', '4,000 largest']], '300', (value) => ((most = Number(value)), load())),
                h('span', { class: 'tools buttons' }, reset),
            ),
            note,
            canvas,
            legend,
            detail,
            stack.element,
        );

        const whole = () => (view = [0, Math.max(1, found.end)]);
        /** From shortly before the first block: a program may import for minutes before it has one. */
        function blocksOnly() {
            const first = found.lives[0]?.begin ?? 0;
            view = [Math.max(0, first - (found.end - first) / 40), Math.max(1, found.end)];
        }
        function load() {
            found = livesOf(run, side, most);
            chosen = null;
            blocksOnly();
            draw();
        }

        let width = 0;
        const x = (/** @type {number} */ t) => LEFT + ((t - view[0]) / (view[1] - view[0])) * (width - LEFT);
        const y = (/** @type {number} */ bytes) => (HEIGHT - BOTTOM) * (1 - bytes / (found.top || 1));
        const timeAt = (/** @type {number} */ pixel) => view[0] + ((pixel - LEFT) / (width - LEFT)) * (view[1] - view[0]);

        /** @param {CanvasRenderingContext2D} context @param {Life} life */
        function trace(context, { at, floor, end, bytes }) {
            context.beginPath();
            for (let i = 0; i < at.length; i++) {
                const right = x(i + 1 < at.length ? at[i + 1] : end);
                const top = y(floor[i] + bytes);
                context.rect(x(at[i]), top, Math.max(0.7, right - x(at[i])), y(floor[i]) - top);
            }
        }

        function draw() {
            width = place.clientWidth;
            if (!width) return;
            const scale = window.devicePixelRatio || 1;
            canvas.width = width * scale;
            canvas.height = HEIGHT * scale;
            canvas.style.width = `${width}px`;
            canvas.style.height = `${HEIGHT}px`;
            const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
            const [quiet, grid, accent, text, back] = ['--quiet', '--grid', '--accent', '--text', '--back'].map(themed);
            context.scale(scale, scale);
            context.font = `12px ${getComputedStyle(place).fontFamily}`;
            axes(context, quiet, grid);
            context.save();
            context.beginPath();
            context.rect(LEFT, 0, width - LEFT, HEIGHT - BOTTOM);
            context.clip();
            const colours = coloursOf(run, dimension);
            const pixel = found.top / (HEIGHT - BOTTOM);
            const used = new Set();
            for (const life of found.lives) {
                if (life.end < view[0] || life.begin > view[1] || life.bytes < pixel / 2) continue;
                const name = run.cells[dimension][run.blocks.cell[life.block]];
                used.add(name);
                trace(context, life);
                context.fillStyle = colours[name];
                context.fill();
                if (life.bytes > 3 * pixel) {
                    context.strokeStyle = back;
                    context.lineWidth = 0.5;
                    context.stroke();
                }
            }
            if (chosen) {
                trace(context, chosen);
                context.strokeStyle = text;
                context.lineWidth = 1.5;
                context.stroke();
            }
            const now = run.moments[page.moment];
            if (now) {
                context.fillStyle = accent;
                context.fillRect(x(now.time) - 0.75, 0, 1.5, HEIGHT - BOTTOM);
            }
            context.restore();
            const names = run.dimension(dimension).names;
            replace(legend, ...[...used].map((i) => h('li', { class: 'key' }, h('i', { style: { background: colours[i] } }), names[i])));
            reset.disabled = view[0] === 0 && view[1] === Math.max(1, found.end);
            const others = found.nLeftOut ? `; ${count(found.nLeftOut, 'block')} of up to ${size(found.least)} left out` : '';
            replace(note, `${count(found.lives.length, 'block')} of ${side} memory, ${size(found.top)} at most together${others}. Drag to enlarge, click for the stack.`);
            canvas.setAttribute('aria-label', `Blocks over time: ${note.textContent} The table of the largest live blocks has the same figures.`);
        }

        /** @param {CanvasRenderingContext2D} context @param {string} quiet @param {string} grid */
        function axes(context, quiet, grid) {
            context.lineWidth = 1;
            context.fillStyle = quiet;
            context.strokeStyle = grid;
            const step = 2 ** Math.ceil(Math.log2((found.top || 1) / 6));
            context.textAlign = 'right';
            for (let bytes = 0; bytes <= found.top; bytes += step) {
                const at = y(bytes);
                context.beginPath();
                context.moveTo(LEFT, at);
                context.lineTo(width, at);
                context.stroke();
                context.fillText(size(bytes), LEFT - 6, Math.max(10, at + 4));
            }
            const ticks = Math.max(2, Math.floor((width - LEFT) / 130));
            for (let i = 0; i <= ticks; i++) {
                const t = view[0] + ((view[1] - view[0]) * i) / ticks;
                context.textAlign = i === ticks ? 'right' : i ? 'center' : 'left';
                context.fillText(time(t, unit), x(t), HEIGHT - 7);
            }
        }

        /** @param {number} px @param {number} py @returns {Life|null} */
        function hit(px, py) {
            const t = timeAt(px);
            const height = found.top * (1 - py / (HEIGHT - BOTTOM));
            return found.lives.find((life) => life.begin <= t && t <= life.end && floorAt(life, t) <= height && height < floorAt(life, t) + life.bytes) ?? null;
        }

        /** @param {Life} life */
        function about(life) {
            const cell = run.blocks.cell[life.block];
            const role = run.head.roles[run.cells.role[cell]];
            const owner = run.head.owners[run.cells.owner[cell]].name;
            const freed = run.blocks.end[life.block] ? `freed at ${time(life.end, unit)}` : 'never freed';
            const line = run.head.lines.path[run.cells.line[cell]] ? ` by ${run.head.lines.label[run.cells.line[cell]]}` : '';
            return `${size(life.bytes)}, ${owner}${role ? ` (${role})` : ''}, allocated at ${time(life.begin, unit)}${line}, ${freed}`;
        }

        /** @param {Life|null} life */
        function choose(life) {
            chosen = life;
            stack.show(run, life?.block ?? -1);
            replace(detail, life ? about(life) : '');
            draw();
        }

        canvas.addEventListener('pointerdown', (event) => (dragFrom = event.offsetX));
        canvas.addEventListener('pointermove', (event) => {
            const life = hit(event.offsetX, event.offsetY);
            if (life || !chosen) replace(detail, life ? about(life) : '');
        });
        canvas.addEventListener('pointerup', (event) => {
            const from = dragFrom;
            dragFrom = null;
            if (from !== null && Math.abs(event.offsetX - from) > 5) {
                const [a, b] = [timeAt(Math.max(LEFT, Math.min(from, event.offsetX))), timeAt(Math.max(from, event.offsetX))];
                if (b > a) view = [a, b];
                draw();
            } else choose(hit(event.offsetX, event.offsetY));
        });
        canvas.addEventListener('keydown', (event) => {
            const at = chosen ? found.lives.indexOf(chosen) : -1;
            const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
            if (step) choose(found.lives[Math.max(0, Math.min(found.lives.length - 1, at + step))] ?? null);
            else if (event.key === 'Escape') (whole(), choose(null));
            else return;
            event.preventDefault();
        });
        new ResizeObserver(() => place.isConnected && place.clientWidth !== width && draw()).observe(place);
        window.addEventListener('themechange', () => place.isConnected && draw());
        matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => place.isConnected && draw());
        blocksOnly();
        return draw;
    },
};
