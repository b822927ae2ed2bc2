// SPDX-License-Identifier: GPL-2.0-or-later
//
// The call tree of the chosen moment, or what has changed since the one compared with: as an icicle.

import { type ComponentChildren, Fragment } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { patternOf } from '../base/pattern.js';
import { count, size, whole } from '../base/units.js';
import { Chip } from '../charts/chip.js';
import { Flame, flameKeys, matchesIn, type Shown } from '../charts/flame.js';
import { Choice, Legend, useKept } from '../charts/section.js';
import type { Page } from '../runs/page.js';
import type { Measure } from '../runs/parts.js';
import { type Order, type Question, tree, type TreeNode } from '../runs/tree.js';

const MEASURES: [Measure, string][] = [
    ['bytes', 'live bytes'],
    ['blocks', 'live blocks'],
    ['allocated', 'allocated so far'],
];
const ORDERS: [Order, string][] = [
    ['top-down', 'top-down'],
    ['bottom-up', 'bottom-up'],
    ['python', 'Python frames only'],
    ['library', 'by library'],
];
const SIDES: [Question['side'], string][] = [
    ['both', 'host and device'],
    ['host', 'host'],
    ['device', 'device'],
];
const keysOf = <T,>(options: [T, string][]) => options.map(([key]) => key);

/** Links to other views with a frame. */
function Links({ page, node: { name, type } }: { page: Page; node: TreeNode }) {
    const { run } = page;
    const { lines, frames } = run.head;
    if (page.data.difference) return null;
    const isFrame = type === 'python' || type === 'native' || (type === 'internal' && frames.label.includes(name));
    const line = lines.label.findIndex((label, i) => `${label} (${lines.function[i]})` === name);
    const link = (section: string, text: string, look = name) => (
        <a href={`#${section}`} onClick={() => page.lookAt({ section, name: look })}>
            {text}
        </a>
    );
    return (
        <p class="links">
            {isFrame && run.measures.includes('allocated') && link('callers-callees', 'Callers and callees')}
            {line >= 0 && link('lines', 'In the table of Python lines', lines.label[line])}
        </p>
    );
}

/** The nodes down to the one that names lead to, or the last that they do. */
function pathIn(top: TreeNode, names: string[]) {
    const path: TreeNode[] = [];
    for (const name of names) {
        const next = (path.at(-1) ?? top).children.find((child) => child.name === name);
        if (!next) break;
        path.push(next);
    }
    return path;
}

type TrailProps = { path: TreeNode[]; source: string; enlarge: (names: string[]) => void; children: ComponentChildren };

/** The enlarged frame, and the way back to its callers. `source`: around its line. */
function Trail({ path, source, enlarge, children }: TrailProps) {
    const names = path.map(({ name }) => name);
    const to = (n: number, name: string) => (
        <button type="button" class="link" onClick={() => enlarge(names.slice(0, n))}>
            {name}
        </button>
    );
    // Of a long way only its ends.
    const [left, right] = path.length > 6 ? [1, path.length - 4] : [path.length, path.length];
    return (
        <nav class="trail" aria-label="The enlarged frame and its callers">
            <p>
                {to(0, 'all')}
                {names.slice(0, -1).map((name, i) => {
                    if (i < left || i >= right) return <Fragment key={i}> › {to(i + 1, name)}</Fragment>;
                    return i === left && ` › … ${count(right - left, 'frame')} …`;
                })}{' '}
                › <b title={source || undefined}>{names.at(-1)}</b>
            </p>
            {children}
        </nav>
    );
}

/** The answer to a question, and how the reader looks at it. */
function Tree({ page, question, tools }: { page: Page; question: Question; tools: ComponentChildren }) {
    const { run } = page;
    const { moment, other, measure } = question;
    const [wanted, want] = useKept<string>('search', '');
    // Frames that the reader has enlarged, one after the other; the last is.
    const [history, setHistory] = useState<string[][]>([]);
    const names = history.at(-1) ?? [];
    const [said, say] = useState<{ text: string; node: TreeNode } | null>(null);
    const top = useMemo(() => tree(run, question), [run, ...Object.values(question)]);
    const shown: Shown = { top, isCompared: other !== null, isBytes: measure !== 'blocks', amount: measure === 'blocks' ? whole : size };
    const { pattern, problem } = patternOf(wanted);
    // Another moment shows the same place.
    const path = pathIn(top, names);
    const last = path.at(-1);
    const enlarge = (to: string[]) => {
        const before = history.findIndex((each) => each.join('\n') === to.join('\n'));
        setHistory(before >= 0 ? history.slice(0, before + 1) : to.length ? [...history, to] : []);
    };
    const back = () => setHistory(history.slice(0, -1));
    const isEmpty = !Math.max(top.now, top.before);
    const source = ({ frame }: TreeNode) => run.around(frame);
    return (
        <>
            <div class="above">
                {tools}
                <span class="tools buttons">
                    <input
                        type="search"
                        placeholder="search (regular expression)"
                        aria-label="Search in the call tree"
                        aria-invalid={problem ? 'true' : undefined}
                        spellcheck={false}
                        value={wanted}
                        onInput={(event) => want(event.currentTarget.value)}
                    />
                    <output class="quiet">{problem || (pattern && !isEmpty && matchesIn(shown, pattern))}</output>
                    <button type="button" disabled={!last} onClick={back}>
                        Zoom out
                    </button>
                    <button type="button" disabled={!last} onClick={() => enlarge([])}>
                        Reset
                    </button>
                </span>
            </div>
            {last && (
                <Trail path={path} source={source(last)} enlarge={enlarge}>
                    <Links page={page} node={last} />
                </Trail>
            )}
            <output class="readout flame-detail" aria-live="polite">
                {said ? (
                    <span title={source(said.node) || undefined}>{said.text}</span>
                ) : (
                    !isEmpty && (
                        <span class="quiet">
                            at {run.label(moment)}
                            {other !== null && `, vs. ${run.label(other)}`}; point at a frame, or click to enlarge it
                        </span>
                    )
                )}
            </output>
            {isEmpty ? (
                <p class="quiet">No memory at the chosen moment.</p>
            ) : (
                <>
                    <Flame
                        shown={shown}
                        names={path.map(({ name }) => name)}
                        enlarge={enlarge}
                        back={back}
                        pattern={pattern}
                        source={source}
                        say={(text, node) => say({ text, node })}
                    />
                    <Legend keys={[...flameKeys(shown.isCompared), ...(pattern ? [{ name: 'match', colour: 'var(--found)' }] : [])]} />
                </>
            )}
        </>
    );
}

/** Of a comparison: which columns are compared. */
function Columns({ page, columns }: { page: Page; columns: string[] }) {
    const options = columns.map((label, i): [string, string] => [String(i), label]);
    const compare = (value: string) => page.compare(value === '' ? null : Number(value));
    return (
        <>
            <Choice label="Of" options={options} value={String(page.moment)} onChange={(value) => page.select(Number(value))} />
            <Choice label="vs." options={[['', 'nothing'], ...options]} value={String(page.other ?? '')} onChange={compare} />
        </>
    );
}

function View({ page }: { page: Page }) {
    const { run, moment, other, only } = page;
    const { owners, is_discrete } = run.head;
    const hasDevice = run.uses('device');
    const [measure, setMeasure] = useKept<Measure>('show', 'bytes', run.measures);
    const [order, setOrder] = useKept('order', 'top-down', keysOf(ORDERS));
    const [side, setSide] = useKept<Question['side']>('memory', is_discrete && hasDevice ? 'device' : 'both', keysOf(SIDES));
    const [fold, setFold] = useKept<'no' | 'yes'>('fold', 'no');
    const question: Question = { moment, other, measure, order, side, only, isFolded: fold === 'yes' };
    const narrow = (value: string) => page.narrow(value ? { dimension: 'owner', index: Number(value), name: owners[Number(value)].name } : null);
    const { columns } = run.parts;
    const tools = (
        <>
            {columns && <Columns page={page} columns={columns} />}
            <Choice label="Show" options={MEASURES.filter(([each]) => run.measures.includes(each))} value={measure} onChange={setMeasure} />
            <Choice label="Order" options={ORDERS} value={order} onChange={setOrder} />
            {hasDevice && <Choice label="Memory" options={is_discrete ? SIDES.slice(1) : SIDES} value={side} onChange={setSide} />}
            <Choice
                label="Owner"
                options={[['', 'all'], ...owners.map(({ name }, i): [string, string] => [String(i), name])]}
                value={only?.dimension === 'owner' ? String(only.index) : ''}
                onChange={narrow}
            />
            <label class="choice">
                <input type="checkbox" checked={fold === 'yes'} onChange={(event) => setFold(event.currentTarget.checked ? 'yes' : 'no')} /> Hide
                library frames
            </label>
            <Chip page={page} />
        </>
    );
    return <Tree page={page} question={question} tools={tools} />;
}

export const Calls = { id: 'calls', title: 'Call tree', View };
