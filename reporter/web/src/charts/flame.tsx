// SPDX-License-Identifier: GPL-2.0-or-later
//
// A call tree as an icicle: callers above, what they call below, or the other way round; of two moments the difference: red
// has grown, blue has shrunk. Frames inside a package that lead to one another, as those of the interpreter, are one row until a click
// unfolds it.

import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { growth, percent, whole } from '../base/units.js';
import type { TreeNode } from '../runs/tree.js';
import { useRoom } from './room.js';

/** `top`: all; `amount`: in words. */
export type Shown = { top: TreeNode; isCompared: boolean; isBytes: boolean; amount: (n: number) => string };
/**
 * A row. `path`: the nodes down to it from below the root; the last `n` of them are in it. In a comparison what is gone is as wide as
 * it was.
 */
type Frame = { path: TreeNode[]; n: number; node: TreeNode; value: number; children: Frame[]; parent: Frame | null };
/** `x` and `width` in pixels. */
type Box = { frame: Frame; x: number; width: number; row: number; isCaller: boolean };

const ROW = 20;
const NARROWEST = 1.5; // pixels, of a frame that is drawn
const DOMINANT = 0.9; // of a frame's memory, in one that it leads to

const HUES: Record<string, [number, number]> = { python: [80, 0.12], native: [245, 0.07], internal: [160, 0.05], note: [250, 0.01], '': [250, 0.01] };

function shade(name: string) {
    let sum = 0;
    for (let i = 0; i < name.length && i < 40; i++) sum = (sum * 31 + name.charCodeAt(i)) % 997;
    return sum / 997;
}

function colourOf(type: string, name: string) {
    const [hue, chroma] = HUES[type];
    return `oklch(${76 + 9 * shade(name)}% ${chroma} ${hue + 16 * shade(`${name}.`)})`;
}

function colour(node: TreeNode, isCompared: boolean) {
    if (!isCompared) return colourOf(node.type, node.name);
    const most = Math.max(node.now, node.before);
    const part = most ? (node.now - node.before) / most : 0;
    return `oklch(${80 - 22 * Math.abs(part)}% ${0.16 * Math.abs(part)} ${part > 0 ? 25 : 255})`;
}

const key = (name: string, colour: string) => ({ name, colour });

export const flameKeys = (isCompared: boolean) =>
    isCompared
        ? [key('grown', 'oklch(58% 0.16 25)'), key('shrunk', 'oklch(58% 0.16 255)'), key('unchanged', 'oklch(80% 0 0)')]
        : [key('Python', colourOf('python', 'a')), key('native', colourOf('native', 'a')), key('inside a package', colourOf('internal', 'a'))];

const namesOf = ({ path }: Frame) => path.map(({ name }) => name);

function labelOf({ path, n, node }: Frame, all: string) {
    const first = path.at(-n)?.name ?? all;
    return n > 2 ? `${first} › … › ${node.name} (${n} frames)` : n === 2 ? `${first} › ${node.name}` : first;
}

/** `path`: down to the node; `unfolded`: names of frames that begin a row of their own. */
function framed(node: TreeNode, path: TreeNode[], isCompared: boolean, unfolded: Set<string>): Frame {
    const children = node.children.map((child) => framed(child, [...path, child], isCompared, unfolded));
    const inside = children.reduce((all, { value }) => all + value, 0);
    // Children never outgrow their parent.
    const value = isCompared ? Math.max(node.now, node.before, inside) : node.now;
    const isInside = (frame: Frame) => frame.path.at(-frame.n)?.type === 'internal' && !unfolded.has(namesOf(frame)[frame.path.length - frame.n]);
    const [next] = node.type === 'internal' ? children.filter((child) => child.value >= DOMINANT * value && isInside(child)) : [];
    const below = next ? [...next.children, ...children.filter((child) => child !== next)] : children;
    const frame: Frame = next ? { ...next, n: next.n + 1, value } : { path, n: Math.min(1, path.length), node, value, children, parent: null };
    frame.children = below;
    for (const child of below) child.parent = frame;
    return frame;
}

/** The frame that such names lead to, or the last that they do. `names`: the outermost caller's first. */
function frameAt(root: Frame, names: string[]) {
    let at = root;
    for (;;) {
        const isOnWay = ({ path, n }: Frame) => path.slice(0, path.length - n + 1).every(({ name }, i) => name === names[i]);
        const next = at.children.find(isOnWay);
        if (!next) return at;
        at = next;
    }
}

/** The enlarged frame as wide as all, its callers above it, and what they call below it. */
function layout(at: Frame, room: number, narrowest: number) {
    const boxes: Box[] = [];
    for (let up = at.parent; up; up = up.parent) boxes.unshift({ frame: up, x: 0, width: room, row: 0, isCaller: true });
    boxes.forEach((box, row) => (box.row = row));
    const scale = room / (at.value || 1);
    const place = (frame: Frame, x: number, row: number) => {
        const width = frame.value * scale;
        if (width < narrowest) return;
        boxes.push({ frame, x, width, row, isCaller: false });
        let left = x;
        for (const child of frame.children) {
            place(child, left, row + 1);
            left += child.value * scale;
        }
    };
    place(at, 0, boxes.length);
    return boxes;
}

const rowsIn = (boxes: Box[]) => boxes.reduce((most, { row }) => Math.max(most, row + 1), 0);

function about(node: TreeNode, { top, isCompared, isBytes, amount }: Shown) {
    const parts = [amount(node.now), percent(node.now, top.now)];
    const change = node.now - node.before;
    if (isCompared) parts.push(`before ${amount(node.before)}`, isBytes ? growth(change) : `${change >= 0 ? '+' : ''}${whole(change)}`);
    return `${node.name || 'all'}: ${parts.join(', ')}`;
}

const allOf = ({ top, isCompared, amount }: Shown) =>
    isCompared ? `all: ${amount(top.now)}, before ${amount(top.before)}` : `all: ${amount(top.now)}`;

/** How many frames match, and what the outermost of them hold. */
export function matchesIn({ top, amount }: Shown, pattern: RegExp) {
    let n = 0;
    const walk = (node: TreeNode, isInside: boolean): number => {
        const isMatch = pattern.test(node.name);
        if (isMatch) n++;
        const below = node.children.reduce((all, child) => all + walk(child, isInside || isMatch), 0);
        return isMatch && !isInside ? node.now : below;
    };
    const sum = top.children.reduce((all, child) => all + walk(child, false), 0);
    return `${n === 1 ? '1 match' : `${whole(n)} matches`}: ${amount(sum)}, ${percent(sum, top.now)}`;
}

type FlameProps = {
    shown: Shown;
    /** Of the frames down to the one that is enlarged. */
    names: string[];
    enlarge: (names: string[]) => void;
    /** To what was enlarged before. */
    back: () => void;
    /** Frames that are searched for; null: none. */
    pattern: RegExp | null;
    /** The text around a frame's line, or ''. */
    source: (node: TreeNode) => string;
    /** Says something of a frame. */
    say: (text: string, node: TreeNode) => void;
};

const KEYS = 'arrow keys go to callers, callees and siblings; Enter zooms in; Backspace zooms out; Escape resets';

export function Flame({ shown, names, enlarge, back, pattern, source, say }: FlameProps) {
    const { top, isCompared } = shown;
    const place = useRef<HTMLDivElement>(null);
    const width = Math.max(280, useRoom(place));
    const [unfolded, unfold] = useState(new Set<string>());
    const root = useMemo(() => framed(top, [], isCompared, unfolded), [top, isCompared, unfolded]);
    const at = frameAt(root, names);
    const boxes = useMemo(() => layout(at, width, NARROWEST), [at, width]);
    const [focusedNames, setFocused] = useState<string[] | null>(null);
    const focused = focusedNames && frameAt(root, focusedNames);
    // What is drawn leaves out the smallest; tests compare all of it.
    useLayoutEffect(() => void Object.assign(place.current as HTMLElement, { tree: top }), [top]);
    useLayoutEffect(() => {
        if (focused) place.current?.querySelector('.focused')?.scrollIntoView({ block: 'nearest' });
    }, [focused]);
    const focus = (frame: Frame) => {
        setFocused(namesOf(frame));
        say(about(frame.node, shown), frame.node);
    };
    const zoom = (frame: Frame) => {
        if (frame.n > 1) unfold(new Set([...unfolded, ...namesOf(frame).slice(-frame.n)]));
        else enlarge(namesOf(frame));
        focus(frame);
    };
    const key = (event: KeyboardEvent) => {
        const frame = focused ?? root;
        const siblings = frame.parent?.children ?? [frame];
        const sibling = (by: number) => siblings[siblings.indexOf(frame) + by];
        const next: Record<string, Frame | null | undefined> = {
            ArrowDown: frame.children[0],
            ArrowUp: frame.parent,
            ArrowLeft: sibling(-1),
            ArrowRight: sibling(1),
            Home: root,
        };
        if (event.key in next) {
            const to = next[event.key];
            if (to && boxes.some((box) => box.frame === to)) focus(to);
        } else if (event.key === 'Enter') zoom(frame);
        else if (event.key === 'Backspace') back();
        else if (event.key === 'Escape') enlarge([]);
        else return;
        event.preventDefault();
    };
    const boxOf = (event: Event) => {
        const number = (event.target as Element).closest<SVGElement>('[data-box]')?.dataset.box;
        return number === undefined ? null : boxes[Number(number)];
    };
    return (
        <div
            ref={place}
            class="flame"
            tabIndex={0}
            role="group"
            aria-label={`Call tree: ${KEYS}`}
            onKeyDown={key}
            onMouseOver={(event) => {
                const box = boxOf(event);
                if (box) say(about(box.frame.node, shown), box.frame.node);
            }}
            onClick={(event) => {
                const box = boxOf(event);
                if (box) zoom(box.frame);
            }}
        >
            <svg width={width} height={rowsIn(boxes) * ROW}>
                {boxes.map(({ frame, x, width, row, isCaller }, i) => {
                    const { node } = frame;
                    const isFound = pattern && frame.parent && frame.path.slice(-frame.n).some(({ name }) => pattern.test(name));
                    const state = pattern ? (isFound ? 'found' : 'dim') : isCaller ? 'fade' : '';
                    const label = labelOf(frame, allOf(shown));
                    return (
                        <g
                            key={i}
                            class={`frame ${state}${frame === focused ? ' focused' : ''}`}
                            transform={`translate(${x},${row * ROW})`}
                            data-box={i}
                            data-name={frame.parent ? node.name : 'all'}
                            data-bytes={node.now}
                            data-before={node.before}
                        >
                            <title>{[about(node, shown), source(node)].filter((text) => text).join('\n')}</title>
                            <rect width={width} height={ROW} fill={colour(node, isCompared)} />
                            {width > 16 && (
                                <foreignObject width={width} height={ROW}>
                                    <div class="flame-label">{label}</div>
                                </foreignObject>
                            )}
                        </g>
                    );
                })}
            </svg>
        </div>
    );
}
