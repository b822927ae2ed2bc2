// SPDX-License-Identifier: GPL-2.0-or-later
//
// The call tree of the chosen moment as an icicle: callers above, what they call below, or the other way round. With a
// second moment chosen it shows the difference: red has grown, blue has shrunk. The drawing is d3-flame-graph's.

import flamegraph from 'd3-flame-graph';
import { select } from 'd3-selection';
import { momentName } from '../bar.js';
import { choice, h, replace } from '../dom.js';
import { tree } from '../tree.js';
import { growth, percent, size, whole } from '../units.js';

/** @typedef {import('../tree.js').TreeNode} TreeNode */
/** @typedef {import('../tree.js').Measure} Measure */
/** @typedef {import('../tree.js').Order} Order */
/** @typedef {{name: string, value: number, node: TreeNode, children: Frame[], hide?: boolean, fade?: boolean}} Frame what d3-flame-graph draws */
/** @typedef {{data: Frame, parent: Placed|null, children?: Placed[], id: number, x0: number, x1: number, highlight?: boolean}} Placed */

const ROW = 20;
const NARROWEST = 1.5; // pixels, of a frame that is drawn

const MEASURES = /** @type {[Measure, string][]} */ ([
    ['bytes', 'live bytes'],
    ['blocks', 'live blocks'],
    ['allocated', 'allocated so far'],
]);
const ORDERS = /** @type {[Order, string][]} */ ([
    ['top-down', 'from the program down'],
    ['bottom-up', 'from the allocation up'],
    ['python', 'Python frames only'],
    ['library', 'by library'],
]);

const HUES = /** @type {Record<string, [number, number]>} */ ({ python: [80, 0.12], native: [245, 0.07], internal: [160, 0.05], note: [250, 0.01], '': [250, 0.01] });

/** @param {string} name */
function shade(name) {
    let sum = 0;
    for (let i = 0; i < name.length && i < 40; i++) sum = (sum * 31 + name.charCodeAt(i)) % 997;
    return sum / 997;
}

/** @param {TreeNode} node @param {boolean} isCompared */
function colour(node, isCompared) {
    if (isCompared) {
        const whole = Math.max(node.now, node.before);
        const part = whole ? (node.now - node.before) / whole : 0;
        return `oklch(${80 - 22 * Math.abs(part)}% ${0.16 * Math.abs(part)} ${part > 0 ? 25 : 255})`;
    }
    const [hue, chroma] = HUES[node.type];
    return `oklch(${76 + 9 * shade(node.name)}% ${chroma} ${hue + 16 * shade(`${node.name}.`)})`;
}

/** In a comparison what is gone is as wide as it was; children never outgrow their parent. @param {TreeNode} node @param {boolean} isCompared @returns {Frame} */
function framed(node, isCompared) {
    const children = node.children.map((child) => framed(child, isCompared));
    const inside = children.reduce((all, { value }) => all + value, 0);
    return { name: node.name, value: isCompared ? Math.max(node.now, node.before, inside) : node.now, node, children };
}

/** The tree as lines of text, the widest branches. @param {TreeNode} root @param {number} least @param {(n: number) => string} shown */
function text(root, least, shown) {
    /** @type {string[]} */
    const lines = [];
    /** @param {TreeNode} node @param {number} depth */
    const add = (node, depth) => {
        lines.push(`${'  '.repeat(depth)}${shown(node.now).padStart(10)}  ${node.name || 'all'}`);
        for (const child of node.children) if (child.now >= least && lines.length < 400) add(child, depth + 1);
    };
    add(root, 0);
    return lines.join('\n');
}

/** @type {import('../page.js').View} */
export const calls = {
    id: 'calls',
    title: 'Call tree',
    mount(place, page) {
        const { run } = page;
        /** @type {import('../tree.js').Question} */
        const question = { moment: page.moment, other: page.other, measure: 'bytes', order: 'top-down', side: 'both', owner: null, isFolded: false };
        /** @type {ReturnType<typeof flamegraph>|null} */
        let chart = null;
        /** @type {Placed|null} */
        let focused = null;
        let searched = '';

        const drawing = h('div', { class: 'flame', tabIndex: 0, role: 'group', 'aria-label': 'Call tree: arrow keys go to callers, calls and neighbours; Enter enlarges; Escape shows all' });
        const detail = h('output', { class: 'readout flame-detail', 'aria-live': 'polite' });
        const found = h('output', { class: 'quiet' });
        const reset = h('button', { type: 'button', disabled: true, onclick: () => show() }, 'show all');
        const search = h('input', { type: 'search', placeholder: 'search (regular expression)', 'aria-label': 'Search in the call tree', spellcheck: false });
        const plain = h('pre', {});
        const asText = h('details', { ontoggle: () => write() }, h('summary', {}, 'As text'), plain);
        const owners = run.head.owners.map(({ name }, i) => /** @type {[string, string]} */ ([String(i), name]));
        /** @type {(key: 'measure'|'order'|'side', value: any) => void} */
        const ask = (key, value) => {
            question[key] = /** @type {never} */ (value);
            show();
        };
        const fold = h('input', { type: 'checkbox', onchange: () => ((question.isFolded = fold.checked), show()) });
        const sides = /** @type {['both'|'host'|'device', string][]} */ ([
            ['both', 'host and device'],
            ['host', 'host'],
            ['device', 'device'],
        ]);
        const legend = h('ul', { class: 'legend' });
        place.append(
            h(
                'div',
                { class: 'above' },
                choice('Show', MEASURES.filter(([measure]) => run.measures.includes(measure)), question.measure, (value) => ask('measure', value)),
                choice('Order', ORDERS, question.order, (value) => ask('order', value)),
                run.uses('device') && choice('Memory', run.head.is_discrete ? sides.slice(1) : sides, run.head.is_discrete ? 'device' : 'both', (value) => ask('side', value)),
                choice('Owner', [['', 'all'], ...owners], '', (value) => {
                    question.owner = value === '' ? null : Number(value);
                    show();
                }),
                h('label', { class: 'choice' }, fold, ' fold frames inside packages'),
                h('span', { class: 'tools buttons' }, search, found, reset),
            ),
            detail,
            drawing,
            legend,
            asText,
        );
        if (run.head.is_discrete && run.uses('device')) question.side = 'device';

        const isCompared = () => question.other !== null;
        /** @param {number} n */
        const amount = (n) => (question.measure === 'blocks' ? whole(n) : size(n));
        /** @param {Placed} frame */
        function about({ data: { node } }) {
            const all = root().data.node;
            const parts = [amount(node.now), percent(node.now, all.now)];
            if (isCompared()) parts.push(`before ${amount(node.before)}`, question.measure === 'blocks' ? `${node.now >= node.before ? '+' : ''}${whole(node.now - node.before)}` : growth(node.now - node.before));
            return `${node.name || 'all'}: ${parts.join(', ')}`;
        }

        /** @returns {Placed} */
        const root = () => /** @type {Placed} */ (select(drawing).datum());
        const elementOf = (/** @type {Placed} */ frame) => [...drawing.querySelectorAll('g')].find((g) => select(g).datum() === frame);

        /** @param {Placed} frame */
        function focus(frame) {
            focused = frame;
            drawing.querySelector('.focused')?.classList.remove('focused');
            const element = elementOf(frame);
            element?.classList.add('focused');
            element?.scrollIntoView({ block: 'nearest' });
            replace(detail, about(frame));
        }

        const visible = (/** @type {Placed} */ frame) => !frame.data.hide && (frame.x1 - frame.x0) * drawing.clientWidth >= NARROWEST;
        /** @param {Placed} frame @param {number} by */
        function neighbour(frame, by) {
            const siblings = frame.parent?.children ?? [frame];
            return siblings[siblings.indexOf(frame) + by];
        }

        drawing.addEventListener('keydown', (event) => {
            if (!chart) return;
            const at = focused ?? root();
            /** @type {Record<string, Placed|null|undefined>} */
            const next = { ArrowDown: at.children?.[0], ArrowUp: at.parent, ArrowLeft: neighbour(at, -1), ArrowRight: neighbour(at, 1), Home: root() };
            if (event.key in next) {
                const to = next[event.key];
                if (to && visible(to)) focus(to);
            } else if (event.key === 'Enter') zoom(at);
            else if (event.key === 'Escape') show();
            else return;
            event.preventDefault();
        });

        /** @param {Placed} frame */
        function zoom(frame) {
            chart?.zoomTo(frame);
            afterZoom(frame);
        }

        /** @param {Placed} frame */
        function afterZoom(frame) {
            reset.disabled = !frame.parent;
            focus(frame);
        }

        search.addEventListener('input', () => {
            searched = search.value;
            look();
        });

        function look() {
            search.setCustomValidity('');
            search.removeAttribute('aria-invalid');
            replace(found);
            if (!chart) return;
            chart.clear();
            if (!searched) return;
            try {
                new RegExp(searched, 'i');
            } catch {
                search.setAttribute('aria-invalid', 'true');
                replace(found, 'no regular expression');
                return;
            }
            chart.search(searched);
        }

        function write() {
            if (!asText.open || !chart) return;
            const top = root().data.node;
            replace(plain, text(top, top.now / 100, amount));
        }

        function show() {
            const top = tree(run, question);
            chart?.destroy();
            drawing.replaceChildren();
            chart = null;
            focused = null;
            reset.disabled = true;
            replace(detail);
            replace(legend);
            if (!Math.max(top.now, top.before)) {
                replace(drawing, h('p', { class: 'quiet' }, 'Nothing of this is held at the chosen moment.'));
                replace(plain);
                return;
            }
            const compared = isCompared();
            chart = flamegraph()
                .width(Math.max(280, drawing.clientWidth))
                .cellHeight(ROW)
                .inverted(true)
                .transitionDuration(0)
                .minFrameSize(NARROWEST)
                .selfValue(false)
                .sort(false)
                .setColorMapper((/** @type {Placed} */ frame) => (frame.highlight ? 'var(--found)' : colour(frame.data.node, compared)))
                .setLabelHandler(about)
                .getName((/** @type {Placed} */ frame) => (frame.parent ? frame.data.name : compared ? `all: ${amount(top.now)}, before ${amount(top.before)}` : `all: ${amount(top.now)}`))
                .setSearchMatch((/** @type {Placed} */ frame, /** @type {string} */ term) => new RegExp(term, 'i').test(frame.data.name))
                .setSearchHandler((/** @type {Placed[]} */ frames, /** @type {number} */ sum) => replace(found, `${whole(frames.length)} found: ${amount(sum)}, ${percent(sum, top.now)}`))
                .setDetailsHandler(() => {})
                .onHover((/** @type {Placed} */ frame) => replace(detail, about(frame)))
                .onClick(afterZoom);
            select(drawing).datum(framed(top, compared)).call(chart);
            const kinds = compared
                ? [['has grown', 'oklch(58% 0.16 25)'], ['has shrunk', 'oklch(58% 0.16 255)'], ['is as it was', 'oklch(80% 0 0)']]
                : [['Python', colour({ ...top, type: 'python', name: 'a' }, false)], ['native', colour({ ...top, type: 'native', name: 'a' }, false)], ['inside a package', colour({ ...top, type: 'internal', name: 'a' }, false)], ['found', 'var(--found)']];
            for (const [name, background] of kinds) legend.append(h('li', { class: 'key' }, h('i', { style: { background } }), name));
            replace(detail, h('span', { class: 'quiet' }, `at ${momentName(run, page.moment)}${compared ? `, compared with ${momentName(run, page.other ?? 0)}` : ''}; point at a frame, or click to enlarge it`));
            look();
            write();
        }

        let width = 0;
        new ResizeObserver(() => {
            if (place.isConnected && drawing.clientWidth && Math.abs(drawing.clientWidth - width) > 4) {
                width = drawing.clientWidth;
                show();
            }
        }).observe(drawing);
        return () => {
            question.moment = page.moment;
            question.other = page.other;
            show();
            width = drawing.clientWidth;
        };
    },
};
