// SPDX-License-Identifier: GPL-2.0-or-later
//
// The call tree of the chosen moment, or what has changed since the one compared with: as an icicle and as text.

import { append, choice, h, kept, replace } from '../base/dom.js';
import { patternOf } from '../base/pattern.js';
import { count, size, whole } from '../base/units.js';
import { chip } from '../charts/chip.js';
import { Flame, flameLegend } from '../charts/flame.js';
import { begun, finished, pictureButtons } from '../charts/picture.js';
import { isServed } from '../runs/served.js';
import { tree } from '../runs/tree.js';
import { View } from './view.js';

/** @typedef {import('../runs/page.js').Page} Page */
/** @typedef {import('../runs/tree.js').TreeNode} TreeNode */
/** @typedef {import('../runs/tree.js').Order} Order */
/** @typedef {import('../runs/tree.js').Question} Question */
/** @typedef {import('../runs/parts.js').Measure} Measure */

const MEASURES = /** @type {[Measure, string][]} */ ([
    ['bytes', 'live bytes'],
    ['blocks', 'live blocks'],
    ['allocated', 'allocated so far'],
]);
const ORDERS = /** @type {[Order, string][]} */ ([
    ['top-down', 'top-down'],
    ['bottom-up', 'bottom-up'],
    ['python', 'Python frames only'],
    ['library', 'by library'],
]);
const SIDES = /** @type {[Question['side'], string][]} */ ([
    ['both', 'host and device'],
    ['host', 'host'],
    ['device', 'device'],
]);
const MOST_LINES = 400;

/** The tree as lines of text, the widest branches. @param {TreeNode} root @param {number} least @param {(n: number) => string} shown */
function text(root, least, shown) {
    /** @type {string[]} */
    const lines = [];
    /** @param {TreeNode} node @param {number} depth */
    const add = (node, depth) => {
        lines.push(`${'  '.repeat(depth)}${shown(node.now).padStart(10)}  ${node.name || 'all'}`);
        for (const child of node.children) if (child.now >= least && lines.length < MOST_LINES) add(child, depth + 1);
    };
    add(root, 0);
    return lines.join('\n');
}

/** Links to other sections with a frame. @param {Page} page @param {Order} order @param {TreeNode} node @param {string[]} path */
function linksOf(page, order, { name, type }, path) {
    const { run, data } = page;
    if (data.difference) return [];
    const isFrame = type === 'python' || type === 'native' || (type === 'internal' && run.head.frames.label.includes(name));
    const { lines } = run.head;
    const line = lines.label.findIndex((label, i) => `${label} (${lines.function[i]})` === name);
    const link = (/** @type {string} */ section, /** @type {string} */ text, look = name) => h('a', { href: `#${section}`, onclick: () => page.lookAt({ section, name: look, path }) }, text);
    return [
        isFrame && run.measures.includes('allocated') && link('callers-callees', 'Callers and callees'),
        line >= 0 && link('lines', 'In the table of Python lines', lines.label[line]),
        isServed() && !run.parts.together && order === 'top-down' && link('places', 'All stacks below it, and its blocks'),
    ].filter((each) => each !== false);
}

export class Calls extends View {
    static id = 'calls';
    static title = 'Call tree';

    /** @type {Question} */
    #question = { moment: 0, other: null, measure: 'bytes', order: 'top-down', side: this.run.head.is_discrete && this.run.uses('device') ? 'device' : 'both', only: null, isFolded: false };
    #chip = chip(this.page, false);
    #owners = h('select', { onchange: () => this.#choose() });
    /** The answer. @type {TreeNode|null} */
    #top = null;
    #detail = h('output', { class: 'readout flame-detail', 'aria-live': 'polite' });
    #found = h('output', { class: 'quiet' });
    #reset = h('button', { type: 'button', disabled: true, onclick: () => this.#showAll() }, 'Reset');
    #back = h('button', { type: 'button', disabled: true, onclick: () => this.#flame.back() }, 'Zoom out');
    #trail = h('nav', { class: 'trail', 'aria-label': 'The enlarged frame and its callers', hidden: true });
    #search = h('input', { ...kept('search'), type: 'search', placeholder: 'search (regular expression)', 'aria-label': 'Search in the call tree', spellcheck: false, oninput: () => this.#look() });
    #legend = h('ul', { class: 'legend' });
    #plain = h('pre', {});
    #asText = h('details', { ontoggle: () => this.#write() }, h('summary', {}, 'As text'), this.#plain);
    #flame = new Flame({
        source: ({ frame }) => this.run.around(frame),
        say: (about, node) => replace(this.#detail, this.#withSource(node, about)),
        found: (about) => replace(this.#found, about),
        enlarged: (path) => this.#follow(path),
        leave: () => this.#showAll(),
    });
    /** Of the drawing, when it was made to fit. */
    #width = 0;

    /** @param {HTMLElement} place */
    mount(place) {
        const { element } = this.#flame;
        append(place, this.#choices(), this.#trail, this.#detail, element, this.#legend, this.#asText);
        this.hold.onResize(element, () => {
            if (!element.clientWidth || Math.abs(element.clientWidth - this.#width) <= 4) return;
            this.#width = element.clientWidth;
            this.#show();
        });
        this.hold.onPrint((width) => this.#show(width ?? element.clientWidth));
        this.hold.add(() => this.#flame.clear());
    }

    #choices() {
        const { run } = this;
        const question = this.#question;
        append(this.#owners, h('option', { value: '' }, 'all'), ...run.head.owners.map(({ name }, i) => h('option', { value: String(i) }, name)));
        /** @template {keyof Question} K @param {K} key @returns {(value: Question[K]) => void} */
        const ask = (key) => (value) => {
            question[key] = value;
            this.#show();
        };
        const fold = h('input', { ...kept('fold'), type: 'checkbox', onchange: () => ask('isFolded')(fold.checked) });
        return h(
            'div',
            { class: 'above' },
            choice('Show', MEASURES.filter(([measure]) => run.measures.includes(measure)), question.measure, ask('measure')),
            choice('Order', ORDERS, question.order, ask('order')),
            run.uses('device') && choice('Memory', run.head.is_discrete ? SIDES.slice(1) : SIDES, question.side, ask('side')),
            h('label', { class: 'choice' }, 'Owner ', this.#owners),
            h('label', { class: 'choice' }, fold, ' Hide library frames'),
            this.#chip.element,
            h('span', { class: 'tools buttons' }, this.#search, this.#found, this.#back, this.#reset),
            pictureButtons('flame graph', () => this.#picture()),
        );
    }

    #showAll() {
        this.#flame.clear();
        this.#show();
    }

    /** A text about a frame, with its source as a tooltip. @param {TreeNode} node @param {string} text */
    #withSource({ frame }, text) {
        return h('span', { title: this.run.around(frame) || null }, text);
    }

    /** The trail: the frame, the way back to its callers, and links to other sections. @param {TreeNode[]} path */
    #follow(path) {
        this.#reset.disabled = this.#back.disabled = !path.length;
        this.#trail.hidden = !path.length;
        const names = path.map(({ name }) => name);
        const to = (/** @type {number} */ n, /** @type {string} */ name) => h('button', { type: 'button', class: 'link', onclick: () => this.#flame.enlarge(names.slice(0, n)) }, name);
        const [left, right] = path.length > 6 ? [1, path.length - 4] : [path.length, path.length];
        /** @type {(Node|string)[]} */
        const steps = [to(0, 'all')];
        names.slice(0, -1).forEach((name, i) => {
            if (i < left || i >= right) steps.push(' › ', to(i + 1, name));
            else if (i === left) steps.push(` › … ${count(right - left, 'frame')} …`);
        });
        const last = path.at(-1);
        if (last) steps.push(' › ', h('b', {}, this.#withSource(last, last.name)));
        replace(this.#trail, h('p', {}, ...steps), last && h('p', { class: 'links' }, ...linksOf(this.page, this.#question.order, last, names)));
    }

    #picture() {
        const { measure, order, other, side } = this.#question;
        const words = [...MEASURES, ...ORDERS, ...SIDES];
        const name = (/** @type {string} */ key) => words.find(([each]) => each === key)?.[1] ?? '';
        const { only } = this.page;
        const parts = [name(measure), name(order), this.run.uses('device') && name(side), only && `only ${only.name}`];
        const picture = begun(this.page, `Call tree: ${parts.filter((part) => part).join(', ')}; at ${this.run.label(this.page.moment)}${other === null ? '' : `, vs. ${this.run.label(other)}`}`);
        this.#flame.draw(picture);
        return finished(this.page, picture, 'call tree');
    }

    #choose() {
        const { page, run } = this;
        const index = Number(this.#owners.value);
        page.narrow(this.#owners.value ? { dimension: 'owner', index, name: run.head.owners[index].name } : null);
    }

    update() {
        const { moment, other, only } = this.page;
        Object.assign(this.#question, { moment, other, only });
        this.#chip.update();
        this.#owners.value = only?.dimension === 'owner' ? String(only.index) : '';
        this.#show();
        this.#width = this.#flame.element.clientWidth;
    }

    /** @param {number} n */
    #amount(n) {
        return this.#question.measure === 'blocks' ? whole(n) : size(n);
    }

    /** @param {number} [width] */
    #show(width) {
        const { run } = this;
        const { moment, other, measure } = this.#question;
        const top = tree(run, this.#question);
        const isCompared = other !== null;
        this.#top = top;
        const names = this.#flame.names;
        this.#flame.clear();
        replace(this.#detail);
        replace(this.#legend);
        if (!Math.max(top.now, top.before)) {
            replace(this.#flame.element, h('p', { class: 'quiet' }, 'No memory at the chosen moment.'));
            replace(this.#plain);
            return;
        }
        this.#flame.show({ top, isCompared, isBytes: measure !== 'blocks', amount: (n) => this.#amount(n) }, width);
        replace(this.#legend, ...flameLegend(isCompared));
        replace(this.#detail, h('span', { class: 'quiet' }, `at ${run.label(moment)}${isCompared ? `, vs. ${run.label(other)}` : ''}; point at a frame, or click to enlarge it`));
        this.#look();
        this.#write();
        // Another moment shows the same place.
        if (names.length) this.#flame.enlarge(names);
    }

    /** For what the reader has asked for. */
    #look() {
        const { value } = this.#search;
        this.#search.removeAttribute('aria-invalid');
        replace(this.#found);
        if (this.#flame.isEmpty) return;
        const { pattern, problem } = patternOf(value);
        if (problem) {
            this.#search.setAttribute('aria-invalid', 'true');
            replace(this.#found, problem);
        }
        this.#flame.search(pattern);
    }

    #write() {
        const top = this.#top;
        if (!this.#asText.open || this.#flame.isEmpty || !top) return;
        replace(this.#plain, text(top, top.now / 100, (n) => this.#amount(n)));
    }
}
