// SPDX-License-Identifier: GPL-2.0-or-later
//
// Memory over time: stacked areas with their names, the peak, snapshots, regions, marks and start-up calls (marks.ts). The line on
// top is the highest total since the sample before.

import uPlot from 'uplot';
import { render } from 'preact';
import { moment as time, size } from '../base/units.js';
import { type Area, areas, edges, exact, nearestMoment, type Side, times } from '../runs/areas.js';
import type { Page } from '../runs/page.js';
import type { Dimension } from '../runs/run.js';
import { drawMarks, LANE, lanesOf, NAMES } from './marks.js';
import { theme, TimePlot } from './plot.js';

const HEIGHT = 300;
const NARROW_HEIGHT = 220;
const NARROW = 600; // pixels, below which a plot is on a phone

/** A fill for memory that an allocator keeps and that holds nothing. */
function hatched(colour: string): CanvasPattern | string {
    const ratio = devicePixelRatio;
    const step = Math.round(8 * ratio);
    const tile = Object.assign(document.createElement('canvas'), { width: step, height: step });
    const context = tile.getContext('2d');
    if (!context) return colour;
    context.fillStyle = colour;
    context.fillRect(0, 0, step, step);
    context.strokeStyle = 'rgb(255 255 255 / 0.45)';
    context.lineWidth = 1.5 * ratio;
    for (const at of [-step, 0, step]) {
        context.beginPath();
        context.moveTo(at - 1, step + 1);
        context.lineTo(at + step + 1, -1);
        context.stroke();
    }
    return context.createPattern(tile, 'repeat') ?? colour;
}

/** One plot: of all memory, or of one pool. */
export class MemoryPlot extends TimePlot {
    now: Float64Array;
    exact: Float64Array;
    lanes: number;
    areas: Area[] = [];
    /** Upper edges of the areas, the lowest first. */
    #stacked: (Area & { sums: Float64Array })[] = [];
    #tip = Object.assign(document.createElement('div'), { className: 'tip', hidden: true });

    constructor(
        page: Page,
        public side: Side,
        canvas: HTMLElement,
        key: string,
    ) {
        const lanes = lanesOf(page.run);
        const height = canvas.clientWidth < NARROW ? NARROW_HEIGHT : HEIGHT;
        super(page, key, canvas, NAMES + lanes * LANE, height + NAMES + lanes * LANE, (u) => this.#mark(u));
        this.lanes = lanes;
        this.x = times(this.run);
        const { now, most } = exact(this.run, this.x, side);
        this.now = now;
        this.exact = most;
        canvas.append(this.#tip);
        canvas.onmouseleave = () => (this.#tip.hidden = true);
    }

    /** `focus`: the area that alone is in full colour; '' for all. */
    draw(dimension: Dimension, focus: string) {
        const { run, x } = this;
        this.areas = areas(run, dimension, this.side);
        this.theme = theme();
        this.#stacked = edges(run, this.areas, x, this.now);
        const isCache = (name: string) =>
            name === 'cached' || (dimension === 'owner' && run.head.owners.some((owner) => owner.name === name && owner.group === 'cached'));
        const [back, text] = ['--back', '--text'].map((name) => this.theme[name]);
        const fill = ({ name, colour }: Area) =>
            focus && name !== focus ? `color-mix(in srgb, ${colour} 25%, ${back})` : isCache(name) ? hatched(colour) : colour;
        this.make(
            [
                // The topmost is drawn first.
                ...[...this.#stacked].reverse().map((area) => ({ label: area.name, fill: () => fill(area), stroke: back, width: 1 })),
                { label: 'exact total', stroke: text, width: 1 },
            ],
            [...[...this.#stacked].reverse().map((area) => area.sums), this.exact],
            { setCursor: [(u) => this.#hover(u)] },
        );
    }

    destroy() {
        super.destroy();
        this.#tip.remove();
        this.canvas.onmouseleave = null;
    }

    #mark(u: uPlot) {
        this.#name(u);
        drawMarks(u, this);
    }

    /** Writes the names of areas on them, where they are thickest and there is room. */
    #name(u: uPlot) {
        const { ctx, bbox } = u;
        const ratio = devicePixelRatio;
        const step = 8 * ratio;
        const columns = Array.from({ length: Math.max(0, Math.floor(bbox.width / step)) }, (_, i) => u.posToIdx((i * step) / ratio));
        ctx.save();
        ctx.font = `600 ${12 * ratio}px system-ui, sans-serif`;
        ctx.textAlign = 'center';
        ctx.textBaseline = 'middle';
        this.#stacked.forEach((area, i) => {
            const edge = (at: number, sums: Float64Array | undefined) => u.valToPos(sums ? sums[at] : 0, 'y', true);
            const half = Math.ceil((ctx.measureText(area.name).width / 2 + 6 * ratio) / step);
            let best = { room: 17 * ratio, x: 0, y: 0 };
            for (let column = half; column + half < columns.length; column++) {
                let [top, bottom] = [0, Infinity];
                for (let at = column - half; at <= column + half; at++) {
                    top = Math.max(top, edge(columns[at], area.sums));
                    bottom = Math.min(bottom, edge(columns[at], this.#stacked[i - 1]?.sums));
                }
                if (bottom - top > best.room) best = { room: bottom - top, x: bbox.left + column * step, y: (top + bottom) / 2 };
            }
            if (!best.x) return;
            ctx.lineWidth = 3 * ratio;
            ctx.lineJoin = 'round';
            ctx.strokeStyle = 'rgb(20 23 26 / 0.75)';
            ctx.strokeText(area.name, best.x, best.y);
            ctx.fillStyle = '#fff';
            ctx.fillText(area.name, best.x, best.y);
        });
        ctx.restore();
    }

    /** Describes the moment at the pointer, beside it. */
    #hover(u: uPlot) {
        const { left = -1, top = 0, idx } = u.cursor;
        const { run } = this;
        const { unit } = run.head;
        const at = left < 0 || idx === null || idx === undefined ? null : this.x[idx];
        const moment = at === null ? undefined : run.moments[nearestMoment(run, u.posToVal(left, 'x'))];
        // The other pool's plot has the pointer too.
        this.#tip.hidden = !moment || !this.canvas.matches(':hover');
        if (this.#tip.hidden || at === null || !moment) return;
        const parts = this.areas.map((area) => ({ ...area, held: area.bytes[moment.index] })).filter((part) => part.held > 0);
        parts.sort((a, b) => b.held - a.held);
        render(
            <>
                <b>
                    {time(at, unit)}: {size(this.exact[idx as number])}
                </b>
                <div class="quiet">
                    nearest: {moment.name} at {time(moment.time, unit)}
                </div>
                <table>
                    <tbody>
                        {parts.slice(0, 6).map(({ name, held, colour }) => (
                            <tr key={name}>
                                <th>
                                    <i style={{ background: colour }} />
                                    {name}
                                </th>
                                <td>{size(held)}</td>
                            </tr>
                        ))}
                    </tbody>
                </table>
                {this.#eventsAt(u, at, left).map((text) => (
                    <div key={text} class="quiet">
                        {text}
                    </div>
                ))}
            </>,
            this.#tip,
        );
        const { clientWidth: width } = this.canvas;
        const x = left + u.bbox.left / devicePixelRatio;
        const isLeft = x + this.#tip.offsetWidth + 24 > width;
        this.#tip.style.left = `${Math.max(0, isLeft ? x - this.#tip.offsetWidth - 12 : x + 12)}px`;
        this.#tip.style.top = `${Math.max(0, top - 20)}px`;
    }

    /** `left`: the time in pixels. */
    #eventsAt(u: uPlot, at: number, left: number): string[] {
        const { regions, marks, oom, scopes } = this.run.head;
        const isNear = (time: number) => Math.abs(u.valToPos(time, 'x') - left) < 5;
        const inside = regions.filter((region) => region.begin <= at && (region.end ?? Infinity) >= at).map((region) => region.text);
        const near = marks.filter((mark) => isNear(mark.time)).map((mark) => mark.text);
        const failed = oom.incidents.filter((incident) => isNear(incident.time)).map((incident) => incident.verdict);
        // Most calls are narrower than a pointer.
        const [from, to] = [u.posToVal(left - 3, 'x'), u.posToVal(left + 3, 'x')];
        const calls = scopes.filter((scope) => scope.begin <= to && scope.end >= from).map((scope) => scope.name);
        return [
            inside.length ? `in ${inside.join(' › ')}` : '',
            near.length ? `mark: ${near.join(', ')}` : '',
            failed.length ? `out of memory: ${failed.join(', ')}` : '',
            calls.length ? `during ${calls.slice(0, 3).join(', ')}` : '',
        ].filter((text) => text);
    }
}
