// SPDX-License-Identifier: GPL-2.0-or-later
//
// The machine around the program over time, on the timeline's axis: how much memory was left, and whether it ran short.

import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { moment, size } from '../base/units.js';
import { theme, TimePlot } from '../charts/plot.js';
import { useRoom } from '../charts/room.js';
import { Key, Legend } from '../charts/section.js';
import { Table } from '../charts/table.js';
import { times, valueAt } from '../runs/areas.js';
import { listColour } from '../runs/colours.js';
import type { Page } from '../runs/page.js';
import type { Figure } from '../runs/parts.js';
import type { Run } from '../runs/run.js';

const HEIGHT = 180;

class MachinePlot extends TimePlot {
    constructor(page: Page, canvas: HTMLElement) {
        super(page, `time-${page.whole.head.pid}`, canvas, 10, HEIGHT, (u) => this.#mark(u));
        this.run = page.whole;
        const all = times(this.run);
        const within = this.run.parts.machine.flatMap((figure) => Array.from(figure.time)).filter((at) => at > all[0] && at < all[all.length - 1]);
        this.x = Float64Array.from(new Set([...all, ...within])).sort();
    }

    draw() {
        const figures = this.run.parts.machine;
        this.theme = theme();
        this.make(
            figures.map(({ label }, i) => ({ label, stroke: listColour(i), width: 1.5, paths: uPlot.paths.stepped?.({ align: 1 }) })),
            figures.map((figure) => Array.from(this.x, (at) => valueAt(figure, at))),
        );
    }

    #mark({ ctx, bbox, valToPos }: uPlot) {
        const rule = (at: number, colour: string) => {
            const x = valToPos(at, 'x', true);
            if (x < bbox.left - 1 || x > bbox.left + bbox.width + 1) return;
            ctx.fillStyle = colour;
            ctx.fillRect(x - 0.75 * devicePixelRatio, bbox.top, 1.5 * devicePixelRatio, bbox.height);
        };
        const { run, page } = this;
        ctx.save();
        if (run.head.short_at !== null) rule(run.head.short_at, this.theme['--problem']);
        if (page.other !== null) rule(run.moments[page.other].time, this.theme['--other']);
        const chosen = run.moments[page.moment];
        if (chosen) rule(chosen.time, this.theme['--accent']);
        ctx.restore();
    }
}

function rowOf(figure: Figure, i: number, now: number) {
    const { label, time: at, bytes: values, worst } = figure;
    const last = values[values.length - 1];
    const worstAt = at[values.indexOf(worst)];
    return { name: label, colour: listColour(i), first: values[0], now: valueAt(figure, now) ?? '', last, worst, worstAt };
}

function View({ page }: { page: Page }) {
    const { whole: run, moment: index } = page;
    const { short_at, board_bytes, unit } = run.head;
    const canvas = useRef<HTMLDivElement>(null);
    const plot = useRef<MachinePlot | null>(null);
    const width = useRoom(canvas);
    useLayoutEffect(() => {
        const made = new MachinePlot(page, canvas.current as HTMLElement);
        plot.current = made;
        return () => made.destroy();
    }, []);
    const dark = theme()['--back'];
    useLayoutEffect(() => {
        if (!plot.current) return;
        plot.current.width = width;
        plot.current.draw();
    }, [width, dark]);
    useLayoutEffect(() => plot.current?.update());
    const now = run.moments[index];
    const rows = useMemo(() => run.parts.machine.map((figure, i) => rowOf(figure, i, now?.time ?? 0)), [run, index]);
    const notes = [
        board_bytes ? `with ${size(board_bytes)} of memory` : '',
        short_at === null ? '' : `memory ran short at ${moment(short_at, unit)}`,
    ];
    return (
        <>
            <figure>
                <div class="machine" ref={canvas} role="img" aria-label="System memory over time; the table below has the figures" />
                <Legend keys={rows} />
            </figure>
            <Table
                caption="System"
                note={notes.filter((note) => note).join('; ')}
                columns={[
                    { head: 'figure', value: ({ name }) => name, show: Key },
                    { head: 'start', as: 'bytes', value: (row) => row.first },
                    { head: now ? `at ${now.name}` : 'now', as: 'bytes', value: (row) => row.now },
                    { head: 'end', as: 'bytes', value: (row) => row.last },
                    { head: 'min or max', as: 'bytes', value: (row) => row.worst },
                    { head: 'when', as: 'time', value: (row) => row.worstAt },
                ]}
                rows={rows}
            />
        </>
    );
}

export const Machine = {
    id: 'machine',
    title: 'System memory over time',
    isWhole: true,
    fits: (run: Run) => run.parts.machine.length > 0 && run.moments.length > 0,
    View,
};
