// SPDX-License-Identifier: GPL-2.0-or-later
//
// The largest blocks over time, each as a band; a click shows who allocated one.

import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { count, moment as time, size, whole } from '../base/units.js';
import { Bands, openingSpan, type Span, wholeSpan } from '../charts/bands.js';
import { useRoom } from '../charts/room.js';
import { Choice, Legend, useKept } from '../charts/section.js';
import { StackBox } from '../charts/stack.js';
import { coloursOf } from '../runs/colours.js';
import { type Life, livesOf } from '../runs/lives.js';
import type { Page } from '../runs/page.js';
import type { Run, Side } from '../runs/run.js';
import { sidesOf } from '../runs/sums.js';

const NUMBERS = ['100', '300', '1000', '4000'];
const LEAST_DRAG = 5; // pixels, below which it was a click

function about(run: Run, life: Life | null) {
    if (!life) return '';
    const cell = run.blocks.cell[life.block];
    const { unit, roles, owners } = run.head;
    const role = roles[run.cells.role[cell]];
    const freed = run.blocks.end[life.block] ? `freed at ${time(life.end, unit)}` : 'never freed';
    const line = run.line(cell);
    const owner = `${owners[run.cells.owner[cell]].name}${role ? ` (${role})` : ''}`;
    return `${size(life.bytes)}, ${owner}, allocated at ${time(life.begin, unit)}${line ? ` by ${line}` : ''}, ${freed}`;
}

const STEPS: Record<string, number> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

function View({ page }: { page: Page }) {
    const { run, moment } = page;
    const place = useRef<HTMLDivElement>(null);
    const canvas = useRef<HTMLCanvasElement>(null);
    const pressed = useRef<number | null>(null);
    const width = useRoom(place);
    const [side, setSide] = useKept<Side>('memory', run.blocks.cell.some((cell) => run.side[cell] === 1) ? 'device' : 'host');
    const [most, setMost] = useKept('show', '300', NUMBERS);
    const [chosen, choose] = useState<Life | null>(null);
    const [pointed, point] = useState<Life | null>(null);
    const [zoomed, zoom] = useState<Span | null>(null);
    const [used, use] = useState<number[]>([]);
    const lives = useMemo(() => livesOf(run, side, Number(most)), [run, side, most]);
    const dimension = run.head.roles.some((role) => role) ? 'role' : 'owner';
    const span = zoomed ?? openingSpan(lives);
    const bands = new Bands(run, dimension, lives, span, width);
    const isWhole = span.join() === wholeSpan(lives).join();
    useLayoutEffect(() => {
        if (!canvas.current || !width) return;
        const now = [...bands.draw(canvas.current, run.moments[moment]?.time, chosen)];
        if (now.join() !== used.join()) use(now);
    });
    const another = () => {
        choose(null);
        point(null);
        zoom(null);
    };
    const drop = (event: PointerEvent) => {
        const from = pressed.current;
        pressed.current = null;
        if (from === null) return;
        if (Math.abs(event.offsetX - from) > LEAST_DRAG) zoom(bands.between(from, event.offsetX) ?? zoomed);
        else choose(bands.hit(event.offsetX, event.offsetY));
    };
    const key = (event: KeyboardEvent) => {
        const at = chosen ? lives.lives.indexOf(chosen) : -1;
        const step = STEPS[event.key];
        if (step) choose(lives.lives[Math.max(0, Math.min(lives.lives.length - 1, at + step))] ?? null);
        else if (event.key === 'Escape') {
            zoom(wholeSpan(lives));
            choose(null);
        } else return;
        event.preventDefault();
    };
    const others = lives.nLeftOut ? `; ${count(lives.nLeftOut, 'block')} of up to ${size(lives.least)} left out` : '';
    const note = `${count(lives.lives.length, 'block')} of ${side} memory, ${size(lives.top)} at most together${others}. Drag to enlarge, click for the stack.`;
    const { names } = run.dimension(dimension);
    const colours = coloursOf(run, dimension);
    const sides = sidesOf(run);
    return (
        <div ref={place}>
            <div class="above">
                {sides.length > 1 && (
                    <Choice
                        label="Memory"
                        options={sides.map((name): [Side, string] => [name, name])}
                        value={side}
                        onChange={(to) => (another(), setSide(to))}
                    />
                )}
                <Choice
                    label="Show"
                    options={NUMBERS.map((n) => [n, `${whole(Number(n))} largest`])}
                    value={most}
                    onChange={(to) => (another(), setMost(to))}
                />
                <span class="tools buttons">
                    <button type="button" disabled={isWhole} onClick={() => zoom(wholeSpan(lives))}>
                        whole run
                    </button>
                </span>
            </div>
            <p class="quiet">{note}</p>
            <canvas
                ref={canvas}
                role="img"
                tabIndex={0}
                aria-label={`Blocks over time: ${note} The table of the largest live blocks has the same figures.`}
                onPointerDown={(event) => (pressed.current = event.offsetX)}
                onPointerMove={(event) => point(bands.hit(event.offsetX, event.offsetY))}
                onPointerUp={drop}
                onKeyDown={key}
            />
            <Legend keys={used.map((i) => ({ name: names[i], colour: colours[i] }))} />
            <output class="readout" aria-live="polite">
                {about(run, pointed ?? chosen)}
            </output>
            <StackBox run={run} block={chosen?.block ?? -1} />
        </div>
    );
}

export const BlocksOverTime = { id: 'lives', title: 'Blocks over time', fits: (run: Run) => run.blocks.begin.length > 0, View };
