// SPDX-License-Identifier: GPL-2.0-or-later
//
// A call tree as an icicle: callers above, what they call below, or the other way round; of two moments the difference: red
// has grown, blue has shrunk. The drawing is d3-flame-graph's, the keys are ours; in a
// picture it is drawn from the frame on that the reader has enlarged.

import flamegraph from 'd3-flame-graph';
import { select } from 'd3-selection';
import { h } from '../base/dom.js';
import { growth, percent, whole } from '../base/units.js';
import { escaped, fitted, INK, MARGIN, number, rgb, title, WIDTH } from './picture.js';

/** @typedef {import('../runs/tree.js').TreeNode} TreeNode */
/** @typedef {import('./picture.js').Picture} Picture */

/** @typedef {{name: string, value: number, node: TreeNode, children: PictureFrame[]}} PictureFrame `value`: as wide as this */
/** @typedef {{colour: (node: TreeNode) => string, about: (node: TreeNode) => string, all: string}} Look `all`: what the root of all is called */

const PICTURE_ROW = 19;
const SIZE = 11.5;
const NARROWEST_IN_PICTURE = 0.6; // pixels
const ALL = '#dfe3e8';

/** @param {Picture} picture @param {PictureFrame} root @param {PictureFrame[]} callers of the root, the outermost first, each as wide as all @param {Look} look */
function drawFlames(picture, root, callers, look) {
    const room = WIDTH - 2 * MARGIN;
    const scale = room / (root.value || 1);
    const top = picture.top;
    let rows = callers.length;
    /** @param {PictureFrame} node @param {number} x @param {number} width @param {number} depth @param {boolean} isFaded */
    const draw = (node, x, width, depth, isFaded) => {
        const y = top + depth * PICTURE_ROW;
        const words = width > 24 ? fitted(node.name || look.all, width - 6, SIZE) : '';
        const shown = words && `<text x="${number(x + 3)}" y="${number(y + 13)}" font-size="${SIZE}" fill="${INK.text}">${escaped(words)}</text>`;
        const box = `<rect x="${number(x)}" y="${number(y)}" width="${number(width - (width > 2 ? 0.5 : 0))}" height="${PICTURE_ROW - 1}" fill="${node.name ? rgb(look.colour(node.node)) : ALL}"${isFaded ? ' opacity="0.6"' : ''}/>`;
        picture.add(`<g>${title(look.about(node.node))}${box}${shown}</g>`);
    };
    callers.forEach((caller, depth) => draw(caller, MARGIN, room, depth, true));
    /** @type {[PictureFrame, number, number][]} */
    const pending = [[root, MARGIN, callers.length]];
    while (pending.length) {
        const [node, left, depth] = /** @type {[PictureFrame, number, number]} */ (pending.pop());
        const width = node.value * scale;
        if (width < NARROWEST_IN_PICTURE) continue;
        draw(node, left, width, depth, false);
        rows = Math.max(rows, depth + 1);
        let x = left;
        for (const child of node.children) {
            pending.push([child, x, depth + 1]);
            x += child.value * scale;
        }
    }
    picture.top = top + rows * PICTURE_ROW + 10;
}

/** @typedef {{name: string, value: number, node: TreeNode, children: Frame[], hide?: boolean, fade?: boolean}} Frame what d3-flame-graph draws */
/** @typedef {{data: Frame, parent: Placed|null, children?: Placed[], id: number, x0: number, x1: number, highlight?: boolean}} Placed */
/** @typedef {{top: TreeNode, isCompared: boolean, isBytes: boolean, amount: (n: number) => string}} Shown `top`: all; `amount`: in words */
/** @typedef {{source: (node: TreeNode) => string, say: (text: string, node: TreeNode) => void, found: (text: string) => void, enlarged: (path: TreeNode[]) => void, leave: () => void}} Handlers `source`: the text around a frame's line, or ''; `say`: what is said of a frame; `enlarged`: the frame that is, after those above it; `leave`: the reader wants to see all again */

const ROW = 20;
const NARROWEST = 1.5; // pixels, of a frame that is drawn

const HUES = /** @type {Record<string, [number, number]>} */ ({ python: [80, 0.12], native: [245, 0.07], internal: [160, 0.05], note: [250, 0.01], '': [250, 0.01] });

/** @param {string} name */
function shade(name) {
    let sum = 0;
    for (let i = 0; i < name.length && i < 40; i++) sum = (sum * 31 + name.charCodeAt(i)) % 997;
    return sum / 997;
}

/** @param {string} type @param {string} name */
function colourOf(type, name) {
    const [hue, chroma] = HUES[type];
    return `oklch(${76 + 9 * shade(name)}% ${chroma} ${hue + 16 * shade(`${name}.`)})`;
}

/** @param {TreeNode} node @param {boolean} isCompared */
function colour(node, isCompared) {
    if (!isCompared) return colourOf(node.type, node.name);
    const whole = Math.max(node.now, node.before);
    const part = whole ? (node.now - node.before) / whole : 0;
    return `oklch(${80 - 22 * Math.abs(part)}% ${0.16 * Math.abs(part)} ${part > 0 ? 25 : 255})`;
}

/** Keys of the colours. @param {boolean} isCompared */
const legendKeys = (isCompared) =>
    isCompared
        ? [['grown', 'oklch(58% 0.16 25)'], ['shrunk', 'oklch(58% 0.16 255)'], ['unchanged', 'oklch(80% 0 0)']]
        : [['Python', colourOf('python', 'a')], ['native', colourOf('native', 'a')], ['inside a package', colourOf('internal', 'a')]];

/** @param {boolean} isCompared */
export function flameLegend(isCompared) {
    const kinds = [...legendKeys(isCompared), ...(isCompared ? [] : [['match', 'var(--found)']])];
    return kinds.map(([name, background]) => h('li', { class: 'key' }, h('i', { style: { background } }), name));
}

/** In a comparison what is gone is as wide as it was; children never outgrow their parent. @param {TreeNode} node @param {boolean} isCompared @returns {Frame} */
function framed(node, isCompared) {
    const children = node.children.map((child) => framed(child, isCompared));
    const inside = children.reduce((all, { value }) => all + value, 0);
    return { name: node.name, value: isCompared ? Math.max(node.now, node.before, inside) : node.now, node, children };
}

/** @param {Placed} frame @param {number} by */
function neighbour(frame, by) {
    const siblings = frame.parent?.children ?? [frame];
    return siblings[siblings.indexOf(frame) + by];
}

/** @param {TreeNode} node @param {Shown} shown */
function about(node, { top, isCompared, isBytes, amount }) {
    const parts = [amount(node.now), percent(node.now, top.now)];
    const change = node.now - node.before;
    if (isCompared) parts.push(`before ${amount(node.before)}`, isBytes ? growth(change) : `${change >= 0 ? '+' : ''}${whole(change)}`);
    return `${node.name || 'all'}: ${parts.join(', ')}`;
}

export class Flame {
    element = h('div', { class: 'flame', tabIndex: 0, role: 'group', 'aria-label': 'Call tree: arrow keys go to callers, callees and siblings; Enter zooms in; Backspace zooms out; Escape resets', onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event) });
    /** @type {ReturnType<typeof flamegraph>|null} */
    #chart = null;
    /** @type {Shown|null} */
    #shown = null;
    /** @type {Placed|null} */
    #focused = null;
    /** @type {RegExp|null} */
    #wanted = null;
    /** Frames that the reader has enlarged, one after the other; the last is. @type {Placed[]} */
    #enlarged = [];

    /** @param {Handlers} handlers */
    constructor(handlers) {
        this.handlers = handlers;
    }

    clear() {
        this.#chart?.destroy();
        this.element.replaceChildren();
        this.#chart = null;
        this.#focused = null;
        this.#enlarged = [];
        this.handlers.enlarged([]);
    }

    get isEmpty() {
        return !this.#chart;
    }

    /** After clear(). @param {Shown} shown @param {number} [width] */
    show(shown, width = this.element.clientWidth) {
        const { top, isCompared, amount } = shown;
        const all = isCompared ? `all: ${amount(top.now)}, before ${amount(top.before)}` : `all: ${amount(top.now)}`;
        const { found, say } = this.handlers;
        this.#shown = shown;
        this.#chart = flamegraph()
            .width(Math.max(280, width))
            .cellHeight(ROW)
            .inverted(true)
            .transitionDuration(0)
            .minFrameSize(NARROWEST)
            .selfValue(false)
            .sort(false)
            .setColorMapper((/** @type {Placed} */ frame) => (frame.highlight ? 'var(--found)' : colour(frame.data.node, isCompared)))
            .setLabelHandler((/** @type {Placed} */ frame) => [about(frame.data.node, shown), this.handlers.source(frame.data.node)].filter((text) => text).join('\n'))
            .getName((/** @type {Placed} */ frame) => (frame.parent ? frame.data.name : all))
            .setSearchMatch((/** @type {Placed} */ frame) => !!this.#wanted?.test(frame.data.name))
            .setSearchHandler((/** @type {Placed[]} */ frames, /** @type {number} */ sum) => found(`${frames.length === 1 ? '1 match' : `${whole(frames.length)} matches`}: ${amount(sum)}, ${percent(sum, top.now)}`))
            .setDetailsHandler(() => {})
            .onHover((/** @type {Placed} */ frame) => say(about(frame.data.node, shown), frame.data.node))
            .onClick((/** @type {Placed} */ frame) => this.#afterZoom(frame));
        select(this.element).datum(framed(top, isCompared)).call(this.#chart);
    }

    /** @param {RegExp|null} pattern null finds nothing */
    search(pattern) {
        this.#wanted = pattern;
        this.#chart?.clear();
        if (pattern) this.#chart?.search(pattern.source);
    }

    /** Draws the present view into a picture. @param {Picture} picture */
    draw(picture) {
        const shown = this.#shown;
        if (!shown || !this.#chart) return;
        const { isCompared, top, amount } = shown;
        const frame = this.#enlarged.at(-1) ?? this.#root;
        const callers = [];
        for (let up = frame.parent; up; up = up.parent) callers.unshift(up.data);
        drawFlames(picture, frame.data, callers, {
            colour: (node) => colour(node, isCompared),
            about: (node) => about(node, shown),
            all: isCompared ? `all: ${amount(top.now)}, before ${amount(top.before)}` : `all: ${amount(top.now)}`,
        });
        picture.legend(legendKeys(isCompared).map(([name, background]) => ({ name, colour: background })));
    }

    /** @returns {Placed} */
    get #root() {
        return /** @type {Placed} */ (select(this.element).datum());
    }

    /** @param {Placed} frame */
    #focus(frame) {
        this.#focused = frame;
        this.element.querySelector('.focused')?.classList.remove('focused');
        const element = [...this.element.querySelectorAll('g')].find((g) => select(g).datum() === frame);
        element?.classList.add('focused');
        element?.scrollIntoView({ block: 'nearest' });
        if (this.#shown) this.handlers.say(about(frame.data.node, this.#shown), frame.data.node);
    }

    /** @param {Placed} frame */
    #afterZoom(frame) {
        const before = this.#enlarged.indexOf(frame);
        if (before >= 0) this.#enlarged.length = before + 1;
        else if (frame.parent) this.#enlarged.push(frame);
        else this.#enlarged = [];
        this.handlers.enlarged(this.#path);
        this.#focus(frame);
    }

    /** Of the frame that is enlarged, the outermost caller first; none of the root. */
    get #path() {
        /** @type {TreeNode[]} */
        const path = [];
        for (let at = this.#enlarged.at(-1); at?.parent; at = at.parent) path.unshift(at.data.node);
        return path;
    }

    /** The names of the frames down to the one that is enlarged. */
    get names() {
        return this.#path.map(({ name }) => name);
    }

    /** Enlarges the frame that such names lead to, or the last that they do; with none of them, shows all. @param {string[]} names the outermost caller's first */
    enlarge(names) {
        if (!this.#chart) return;
        let at = this.#root;
        for (const name of names) {
            const next = at.children?.find((child) => child.data.name === name);
            if (!next) break;
            at = next;
        }
        if (!at.parent && !this.#enlarged.length) return;
        this.#chart.zoomTo(at);
        this.#afterZoom(at);
    }

    /** To what was enlarged before. */
    back() {
        this.#enlarged.pop();
        const to = this.#enlarged.at(-1) ?? this.#root;
        this.#chart?.zoomTo(to);
        this.#afterZoom(to);
    }

    /** @param {Placed} frame */
    #isVisible(frame) {
        return !frame.data.hide && (frame.x1 - frame.x0) * this.element.clientWidth >= NARROWEST;
    }

    /** @param {KeyboardEvent} event */
    #key(event) {
        if (!this.#chart) return;
        const root = this.#root;
        const at = this.#focused ?? root;
        /** @type {Record<string, Placed|null|undefined>} */
        const next = { ArrowDown: at.children?.[0], ArrowUp: at.parent, ArrowLeft: neighbour(at, -1), ArrowRight: neighbour(at, 1), Home: root };
        if (event.key in next) {
            const to = next[event.key];
            if (to && this.#isVisible(to)) this.#focus(to);
        } else if (event.key === 'Enter') {
            this.#chart.zoomTo(at);
            this.#afterZoom(at);
        } else if (event.key === 'Backspace' && this.#enlarged.length) this.back();
        else if (event.key === 'Escape') this.handlers.leave();
        else return;
        event.preventDefault();
    }
}
