// SPDX-License-Identifier: GPL-2.0-or-later
//
// The map of device memory at the chosen moment: a row a segment, its blocks in their owners' colours, holes hatched.

import type { ComponentChildren } from 'preact';
import { useMemo, useRef, useState } from 'preact/hooks';
import { count, percent, size } from '../base/units.js';
import { Choice, Legend, useKept } from '../charts/section.js';
import { StackBox } from '../charts/stack.js';
import { coloursOf } from '../runs/colours.js';
import type { Page } from '../runs/page.js';
import type { Run } from '../runs/run.js';
import { fragmentation, type Part, type Segment, segmentsAt } from '../runs/segments.js';

const MOST_ROWS = 60;
const MOST_PARTS = 3000; // on the page
const NARROWEST = 0.0008; // of the row: below that neighbours are drawn as one

const BY = ['owner', 'role'] as const;
type By = (typeof BY)[number];

/** `n` neighbours. */
type Drawn = Part & { n: number };

/** Neighbours too narrow to be seen become one. */
function drawn(parts: Part[], whole: number) {
    const result: Drawn[] = [];
    for (const part of parts) {
        const last = result.at(-1);
        const isNarrow = part.bytes < whole * NARROWEST;
        if (last && isNarrow && last.bytes < whole * NARROWEST && last.block < 0 === part.block < 0) {
            last.bytes = part.offset + part.bytes - last.offset;
            last.n++;
        } else result.push({ ...part, n: 1 });
    }
    return result;
}

function describe(run: Run, segment: Segment, part: Drawn) {
    const at = `at 0x${(segment.address + BigInt(part.offset)).toString(16)}`;
    if (part.block < 0) return `${part.n > 1 ? count(part.n, 'hole') : 'hole'}: ${size(part.bytes)} ${at}`;
    const cell = run.blocks.cell[part.block];
    const owner = run.head.owners[run.cells.owner[cell]].name;
    const role = run.head.roles[run.cells.role[cell]];
    const many = part.n > 1 ? `${count(part.n, 'block')}, the first of ` : '';
    return `${many}${role ? `${owner} (${role})` : owner}: ${size(part.bytes)} ${at}`;
}

function summaryOf(segments: Segment[]) {
    const reserving = segments.filter((segment) => segment.isSegment);
    if (!reserving.length) return `${count(segments.length, 'block')}, none of them in a segment`;
    const { free, largest, holes, fragmentation: share } = fragmentation(segments);
    return `${count(reserving.length, 'segment')} with ${size(free)} free in ${count(holes, 'hole')}, the largest ${size(largest)}; fragmentation ${percent(share, 1)}`;
}

/** The parts of each segment that are drawn: there may be thousands. */
function rowsOf(segments: Segment[]) {
    let left = MOST_PARTS;
    return segments.slice(0, MOST_ROWS).map((segment) => {
        const parts = drawn(segment.parts, segment.bytes).slice(0, Math.max(1, left));
        left -= parts.length;
        return { segment, parts };
    });
}

type MapRowProps = { bytes: number; used: number | null; widest: number; children: ComponentChildren };

/** A segment or a block, to the scale of the widest. `used`: null of a block. */
export const MapRow = ({ bytes, used, widest, children }: MapRowProps) => (
    <div class="map-row">
        <span class="map-label">
            {size(bytes)}
            {used !== null && `, ${percent(used, bytes)} used`}
        </span>
        <span class="map-track">
            <span class="segment" style={{ width: `${Math.max(0.4, (100 * bytes) / widest)}%` }}>
                {children}
            </span>
        </span>
    </div>
);

/** Key of memory that is in no block. */
export const HoleKey = () => (
    <li class="key">
        <i class="hole" />
        free
    </li>
);

type MapProps = { run: Run; segments: Segment[]; by: By; say: (text: string) => void; choose: (block: number) => void };

/** The parts share the map's listeners, and one stop of the Tab key. */
function DeviceRows({ run, segments, by, say, choose }: MapProps) {
    const map = useRef<HTMLDivElement>(null);
    const [stop, setStop] = useState('0.0');
    const colours = coloursOf(run, by);
    const rows = useMemo(() => rowsOf(segments), [segments]);
    const nameOf = (block: number) => run.cells[by][run.blocks.cell[block]];
    const widest = segments[0]?.bytes ?? 1;
    /** The part of an element. */
    const partOf = (target: EventTarget | null) => {
        const place = target instanceof HTMLElement ? target.dataset.part : undefined;
        if (!place) return null;
        const [row, part] = place.split('.').map(Number);
        return { row, part, ...rows[row] };
    };
    const point = ({ target }: Event) => {
        const at = partOf(target);
        if (at) say(describe(run, at.segment, at.parts[at.part]));
    };
    const key = (event: KeyboardEvent) => {
        const at = partOf(event.target);
        if (!at) return;
        const to: Record<string, [number, number]> = {
            ArrowLeft: [at.row, at.part - 1],
            ArrowRight: [at.row, at.part + 1],
            ArrowUp: [at.row - 1, 0],
            ArrowDown: [at.row + 1, 0],
            Home: [0, 0],
        };
        const next = to[event.key];
        if (!next || !rows[next[0]]?.parts[next[1]]) return;
        event.preventDefault();
        setStop(next.join('.'));
        map.current?.querySelector<HTMLElement>(`[data-part="${next.join('.')}"]`)?.focus();
    };
    const used = new Set(rows.flatMap(({ parts }) => parts.filter(({ block }) => block >= 0).map(({ block }) => nameOf(block))));
    const { names } = run.dimension(by);
    const rest = segments.slice(MOST_ROWS);
    return (
        <>
            <div
                ref={map}
                class="map"
                role="group"
                aria-label="Device memory: arrow keys go from block to block and from segment to segment; Enter shows its call stack"
                onMouseOver={point}
                onFocusIn={point}
                onClick={({ target }) => {
                    const at = partOf(target);
                    choose(at ? at.parts[at.part].block : -1);
                }}
                onKeyDown={key}
            >
                {rows.map(({ segment, parts }, row) => (
                    <MapRow key={row} bytes={segment.bytes} used={segment.isSegment ? segment.used : null} widest={widest}>
                        {parts.map((part, i) => (
                            <button
                                key={i}
                                type="button"
                                class={part.block < 0 ? 'hole' : 'block'}
                                data-part={`${row}.${i}`}
                                tabIndex={`${row}.${i}` === stop ? 0 : -1}
                                aria-label={describe(run, segment, part)}
                                style={{
                                    width: `${(100 * part.bytes) / segment.bytes}%`,
                                    background: part.block < 0 ? undefined : colours[nameOf(part.block)],
                                }}
                            />
                        ))}
                    </MapRow>
                ))}
                {rest.length > 0 && (
                    <p class="quiet">
                        and {count(rest.length, 'smaller one')}, {size(rest.reduce((all, { bytes }) => all + bytes, 0))} in all
                    </p>
                )}
            </div>
            <Legend keys={[...used].map((i) => ({ name: names[i], colour: colours[i] }))}>{fragmentation(segments).holes > 0 && <HoleKey />}</Legend>
        </>
    );
}

function View({ page }: { page: Page }) {
    const { whole: run, moment } = page;
    const now = run.moments[moment]?.time ?? 0;
    const [by, setBy] = useKept<By>('colour by', 'owner');
    const [said, say] = useState('');
    const [block, choose] = useState(-1);
    const segments = useMemo(() => segmentsAt(run, now), [run, now]);
    return (
        <>
            <div class="above">
                {run.head.roles.some((role) => role) && (
                    <Choice label="Colour by" options={BY.map((name) => [name, name])} value={by} onChange={setBy} />
                )}
            </div>
            <p class="map-summary">
                <span class="quiet">at {run.moments.length ? run.label(moment) : 'no moment'}: </span>
                {summaryOf(segments)}
            </p>
            <DeviceRows key={moment} run={run} segments={segments} by={by} say={say} choose={choose} />
            <output class="readout" aria-live="polite">
                {said}
            </output>
            <StackBox run={run} block={block} />
        </>
    );
}

export const DeviceMap = {
    id: 'device',
    title: 'Device memory map',
    isWhole: true,
    fits: (run: Run) => run.blocks.cell.some((cell) => run.side[cell] === 1),
    View,
};
