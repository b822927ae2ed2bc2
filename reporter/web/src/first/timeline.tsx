// SPDX-License-Identifier: GPL-2.0-or-later
//
// Memory over time, of all of it or a plot a pool, each with a table that is its legend, its values and a filter; and a strip with
// the whole run, on which the span that the plots show can be moved.

import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { growth, moment as time, size, whole, wholePercent } from '../base/units.js';
import { signsOf } from '../charts/marks.js';
import { MemoryPlot } from '../charts/memory.js';
import { openingSpan, spanOf, theme, wholeSpan, zoomBy } from '../charts/plot.js';
import { useRoom } from '../charts/room.js';
import { type Area, areas, exact, type Side, times } from '../runs/areas.js';
import { nameOf } from './seen.js';
import { type Page, settingOf } from '../runs/page.js';
import type { Dimension, Run } from '../runs/run.js';
import { sidesOf } from '../runs/sums.js';

const DIMENSIONS: Dimension[] = ['owner', 'group', 'kind', 'library', 'line', 'role', 'thread', 'process'];

/** Dimensions that this run has more than one name of. */
const dimensionsOf = (run: Run) =>
    DIMENSIONS.filter(
        (dimension) =>
            dimension === 'owner' || (dimension === 'role' ? run.head.roles.some((role) => role) : run.dimension(dimension).names.length > 1),
    );

const titleOf = (side: Side) => (side === 'both' ? 'Memory over time' : side === 'host' ? 'Host memory over time' : 'Device memory over time');

/** Of an area's name in the table: "(no Python line)" is none to narrow to. */
function narrowedTo(run: Run, dimension: Dimension, name: string) {
    const index = run.dimension(dimension).names.indexOf(name);
    if (index < 0 || (dimension !== 'owner' && dimension !== 'line') || (dimension === 'line' && !run.head.lines.path[index])) return null;
    return { dimension, index, name } as const;
}

type TableProps = { page: Page; side: Side; dimension: Dimension; list: Area[]; focus: string; setFocus: (name: string) => void };

/** Legend, values and filter in one: a click shows one area alone and, of owners and lines, narrows the call tree to it. */
function Values({ page, side, dimension, list, focus, setFocus }: TableProps) {
    const { run, moment, other } = page;
    const rows = list.map((area) => ({ ...area, held: area.bytes[moment] ?? 0, before: other === null ? 0 : area.bytes[other] }));
    const all = rows.reduce((sum, { held }) => sum + held, 0);
    const before = rows.reduce((sum, row) => sum + row.before, 0);
    const choose = (name: string) => {
        const only = narrowedTo(run, dimension, name);
        if (only) page.narrow(only);
        else setFocus(focus === name ? '' : name);
    };
    const { host, device } = run.moments[moment];
    const shared = { both: host + device, host, device }[side] - all;
    return (
        <table class="values">
            <caption>
                At {run.label(moment).split(', ').at(-1)}, by {dimension === 'line' ? 'Python line' : dimension}
            </caption>
            <tbody>
                {rows.map(({ name, colour, held, before }) => (
                    <tr key={name} class={focus && focus !== name ? 'faded' : ''} data-name={name} data-bytes={held}>
                        <th scope="row">
                            <button
                                type="button"
                                class="pick"
                                aria-pressed={focus === name}
                                title={aboutOf(run, dimension, name)}
                                onClick={() => choose(name)}
                            >
                                <i class={isCache(run, dimension, name) ? 'hatched' : ''} style={{ backgroundColor: colour }} />
                                {name}
                            </button>
                            {dimension === 'owner' && <span class="quiet"> {partOf(run, name)}</span>}
                        </th>
                        <td class="figure" title={`${whole(held)} bytes`}>
                            {size(held)}
                        </td>
                        <td class="figure">{other === null ? wholePercent(held, all) : growth(held - before)}</td>
                    </tr>
                ))}
            </tbody>
            <tfoot>
                <tr>
                    <th scope="row">total</th>
                    <td class="figure" title={`${whole(all)} bytes`}>
                        {size(all)}
                    </td>
                    <td class="figure">{other === null ? '' : growth(all - before)}</td>
                </tr>
                {run.parts.together && shared !== 0 && (
                    <tr
                        class="shared"
                        title="Ledgers count memory that was allocated, once for each process; a share (PSS) is of the pages in memory"
                    >
                        <th scope="row">shared, or never written (about)</th>
                        <td class="figure">{growth(shared)}</td>
                        <td />
                    </tr>
                )}
            </tfoot>
        </table>
    );
}

/** The part of the bar that an owner is in; '' where that has its name. */
function partOf(run: Run, name: string) {
    const owner = run.head.owners.find((each) => each.name === name);
    const part = owner ? nameOf(owner.is_tensors && run.uses('device') ? 'allocated' : owner.group) : '';
    return [name, `${name}s`].includes(part.split(' ').at(-1) ?? '') ? '' : part;
}

/** Description of an owner, as a tooltip. */
const aboutOf = (run: Run, dimension: Dimension, name: string) =>
    (dimension === 'owner' && run.head.owners.find((owner) => owner.name === name)?.about) || undefined;

const isCache = (run: Run, dimension: Dimension, name: string) =>
    (dimension === 'group' ? name : dimension === 'owner' ? run.head.owners.find((owner) => owner.name === name)?.group : '') === 'cached';

type Drag = { kind: 'from' | 'to' | 'both'; at: number; span: [number, number] };

/** The whole run, 24 pixels high, with the span that is shown. */
function Overview({ page }: { page: Page }) {
    const { run } = page;
    const place = useRef<HTMLDivElement>(null);
    const canvas = useRef<HTMLCanvasElement>(null);
    const drag = useRef<Drag | null>(null);
    const [first, last] = wholeSpan(run);
    const [from, to] = spanOf(page);
    const share = (at: number) => (at - first) / (last - first);
    const room = useRoom(canvas);
    const back = theme()['--back'];
    useLayoutEffect(() => {
        const [element, context] = [canvas.current, canvas.current?.getContext('2d')];
        if (!element?.clientWidth || !context) return;
        const x = times(run);
        const { most } = exact(run, x, 'both');
        [element.width, element.height] = [element.clientWidth, element.clientHeight].map((size) => size * devicePixelRatio);
        const top = most.reduce((a, b) => Math.max(a, b), 1);
        context.fillStyle = getComputedStyle(element).color;
        context.beginPath();
        context.moveTo(0, element.height);
        x.forEach((at, i) => context.lineTo(share(at) * element.width, element.height * (1 - most[i] / top)));
        context.lineTo(element.width, element.height);
        context.fill();
    }, [run, room, back]);
    const timeAt = (event: PointerEvent) => {
        const { left, width } = (place.current as HTMLElement).getBoundingClientRect();
        return first + Math.max(0, Math.min(1, (event.clientX - left) / width)) * (last - first);
    };
    const down = (event: PointerEvent) => {
        const at = timeAt(event);
        const near = (last - first) / 60;
        const kind = Math.abs(at - from) < near ? 'from' : Math.abs(at - to) < near ? 'to' : 'both';
        const isInside = at > from && at < to;
        const width = to - from;
        const span: [number, number] = isInside || kind !== 'both' ? [from, to] : [Math.max(first, Math.min(last - width, at - width / 2)), 0];
        if (!span[1]) span[1] = span[0] + width;
        drag.current = { kind, at, span };
        page.zoom(span);
        (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    };
    const move = (event: PointerEvent) => {
        if (!drag.current) return;
        const { kind, at, span } = drag.current;
        const by = timeAt(event) - at;
        const least = (last - first) / 500;
        if (kind === 'from') page.zoom([Math.max(first, Math.min(span[1] - least, span[0] + by)), span[1]]);
        else if (kind === 'to') page.zoom([span[0], Math.min(last, Math.max(span[0] + least, span[1] + by))]);
        else {
            const kept = Math.max(first - span[0], Math.min(last - span[1], by));
            page.zoom([span[0] + kept, span[1] + kept]);
        }
    };
    return (
        <div
            class="overview"
            ref={place}
            onPointerDown={down}
            onPointerMove={move}
            onPointerUp={() => (drag.current = null)}
            onDblClick={() => page.zoom(wholeSpan(run))}
            title="The whole run; drag to move what is shown above"
        >
            <canvas ref={canvas} aria-hidden="true" />
            <div class="brush" style={{ left: `${100 * share(from)}%`, width: `${100 * (share(to) - share(from))}%` }} />
        </div>
    );
}

/** Chooses moments by keys on a plot. */
function chooseByKey(page: Page, event: KeyboardEvent) {
    const { run } = page;
    const last = run.moments.length - 1;
    const from = event.shiftKey ? (page.against ?? page.chosen) : page.chosen;
    const steps: Record<string, number> = {
        ArrowLeft: from - 1,
        ArrowRight: from + 1,
        PageUp: from - 10,
        PageDown: from + 10,
        Home: 0,
        End: last,
        p: run.head.at.peak,
    };
    if (event.key === 'Escape') {
        if (page.span) page.zoom(null);
        else page.compare(null);
    } else if (event.key in steps && !event.ctrlKey && !event.altKey && !event.metaKey) {
        const chosen = Math.max(0, Math.min(last, steps[event.key]));
        if (event.shiftKey) page.compare(chosen);
        else page.select(chosen);
    } else return;
    event.preventDefault();
    event.stopPropagation();
}

type PlotProps = { page: Page; side: Side; dimension: Dimension; focus: string };

function Plot({ page, side, dimension, focus }: PlotProps) {
    const { run, moment } = page;
    const canvas = useRef<HTMLDivElement>(null);
    const plot = useRef<MemoryPlot | null>(null);
    const width = useRoom(canvas);
    const back = theme()['--back'];
    useLayoutEffect(() => {
        const made = (plot.current = new MemoryPlot(page, side, canvas.current as HTMLDivElement, `time-${run.head.pid}`));
        return () => made.destroy();
    }, [run, side]);
    useLayoutEffect(() => {
        if (!plot.current) return;
        plot.current.width = width;
        plot.current.draw(dimension, focus);
    }, [run, side, dimension, focus, width, back]);
    useLayoutEffect(() => plot.current?.update());
    const at = run.moments[moment];
    const held = side === 'both' ? at.host + at.device : at[side];
    return (
        <div
            class="plot"
            ref={canvas}
            tabIndex={0}
            role="slider"
            aria-label={`${titleOf(side)}: arrow keys choose a moment, with shift another one to compare with`}
            aria-valuemin={0}
            aria-valuemax={Math.max(0, run.moments.length - 1)}
            aria-valuenow={moment}
            aria-valuetext={`${at.name} at ${time(at.time, run.head.unit)}: ${size(held)}`}
            onKeyDown={(event) => chooseByKey(page, event)}
        />
    );
}

function Chart({ page, side, dimension }: { page: Page; side: Side; dimension: Dimension }) {
    const { run, only } = page;
    const list = useMemo(() => areas(run, dimension, side), [run, dimension, side]);
    const [chosen, setFocus] = useState('');
    const narrowed = only?.dimension === dimension ? only.name : '';
    const focus = [narrowed, chosen].find((name) => name && list.some((area) => area.name === name)) ?? '';
    return (
        <div class="chart">
            <figure>
                <figcaption class={side === 'both' ? 'unseen' : ''}>{titleOf(side)}</figcaption>
                <Plot page={page} side={side} dimension={dimension} focus={focus} />
            </figure>
            <Values page={page} side={side} dimension={dimension} list={list} focus={focus} setFocus={setFocus} />
        </div>
    );
}

export function Timeline({ page }: { page: Page }) {
    const { run } = page;
    const [by, setBy] = settingOf<Dimension>(page, 'timeline.group-by', 'owner');
    const names = dimensionsOf(run);
    const dimension = names.includes(by) ? by : 'owner';
    const spaces = sidesOf(run);
    const sides: Side[] = run.head.is_discrete && spaces.length > 1 ? spaces : ['both'];
    const [first, last] = wholeSpan(run);
    const [from, to] = spanOf(page);
    const isAll = from <= first && to >= last;
    const [opening] = openingSpan(run);
    return (
        <section id="timeline" aria-labelledby="timeline-title">
            <div class="above">
                <h2 id="timeline-title">Memory over time</h2>
                <label class="choice">
                    group by{' '}
                    <select data-keep="group-by" value={dimension} onChange={(event) => setBy(event.currentTarget.value as Dimension)}>
                        {names.map((name) => (
                            <option key={name} value={name}>
                                {name === 'line' ? 'Python line' : name}
                            </option>
                        ))}
                    </select>
                </label>
                <span class="buttons zoom">
                    <button type="button" aria-label="Zoom in" title="Zoom in (+)" onClick={() => zoomBy(page, 0.6)}>
                        +
                    </button>
                    <button type="button" aria-label="Zoom out" title="Zoom out (-)" disabled={isAll} onClick={() => zoomBy(page, 1.6)}>
                        −
                    </button>
                    <button type="button" disabled={isAll} onClick={() => page.zoom(wholeSpan(run))}>
                        Whole run
                    </button>
                    {opening > first && isAll && (
                        <button type="button" onClick={() => page.zoom(null)}>
                            From {time(opening, run.head.unit)}
                        </button>
                    )}
                </span>
                <span class="signs quiet">
                    {signsOf(run).map(([name, text]) => (
                        <span key={name} class="key">
                            <i class={`sign-${name}`} />
                            {text}
                        </span>
                    ))}
                </span>
            </div>
            {sides.map((side) => (
                <Chart key={side} page={page} side={side} dimension={dimension} />
            ))}
            <Overview page={page} />
        </section>
    );
}
