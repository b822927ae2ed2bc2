// SPDX-License-Identifier: GPL-2.0-or-later
//
// Every stack, branch by branch, also those that the page leaves out for their size, and every block in them: asked of the server.

import { append, h, named, replace } from '../base/dom.js';
import { moment as time, size, whole } from '../base/units.js';
import { Table } from '../charts/table.js';
import { blocksOf, childrenOf, isServed } from '../runs/served.js';
import { View } from './view.js';

/** @typedef {import('../runs/served.js').Amount} Amount */
/** @typedef {import('../runs/served.js').Branch} Branch */
/** @typedef {import('../runs/served.js').ServedBlock} ServedBlock */
/** @typedef {import('../runs/run.js').Run} Run */

// A chain of calls without branches is opened at once, so far.
const MOST_AT_ONCE = 40;

/** A branch in the table: its row, and the rows below it. */
class Row {
    /** @type {HTMLTableRowElement[]} */
    below = [];
    isOpen = false;

    /** @param {Branch} branch @param {number} depth */
    constructor(branch, depth) {
        this.branch = branch;
        this.depth = depth;
        this.element = h('tr', {});
    }
}

export class Places extends View {
    static id = 'places';
    static title = 'All stacks';
    static isWhole = true;

    /** @param {Run} run */
    static fits(run) {
        return isServed() && run.moments.length > 0 && !run.parts.together;
    }

    #said = h('p', { class: 'quiet', role: 'status' });
    #body = h('tbody');
    #head = h('thead');
    /** @type {Table<ServedBlock>} */
    #blocks = new Table('Blocks', { limit: 25, empty: 'no block with a record (small heap blocks have none)' });
    #blocksPlace = h('div', { hidden: true }, this.#blocks.element);
    /** By its element. @type {WeakMap<HTMLElement, Row>} */
    #rowOf = new WeakMap();
    /** Nodes that the reader has opened, also for other moments. @type {Set<number>} */
    #opened = new Set();
    /** Answers to what was asked before another moment was chosen are for nobody. */
    #turn = 0;

    content() {
        const table = h('table', { 'aria-label': 'All stacks' }, this.#head, this.#body);
        return [this.#said, h('div', { class: 'scroll', tabIndex: 0, role: 'region', 'aria-label': 'All stacks: table' }, table), this.#blocksPlace];
    }

    get #at() {
        const { id, reason } = this.run.moments[this.page.moment];
        return id ? String(id) : reason;
    }

    get #sides() {
        return /** @type {('host'|'device')[]} */ (['host', 'device']).filter((side) => this.run.uses(side));
    }

    /** @param {number} node @param {number} [first] */
    #place(node, first = 0) {
        return { process: this.run.head.key, at: this.#at, node, first };
    }

    update() {
        this.#turn++;
        this.#blocksPlace.hidden = true;
        const heads = ['frame', ...this.#sides, 'blocks', ''];
        replace(this.#head, h('tr', {}, ...heads.map((text, i) => h('th', { scope: 'col', class: i && text ? 'figure' : '' }, text || h('span', { class: 'unseen' }, 'blocks of it')))));
        const root = new Row({ node: 0, name: 'all', type: '', children: 1, around: '', host: 0, device: 0, blocks: 0 }, 0);
        const path = this.page.taken(Places.id)?.path;
        const say = () => replace(this.#said, `at ${this.run.label(this.page.moment)}, of the whole trace`);
        void this.#open(root, this.#turn, 0).then(() => path && this.#follow(path, this.#turn)).then(say);
    }

    /** Opens what a path leads to, as far as there are such places. @param {string[]} path the outermost caller's name first @param {number} turn */
    async #follow(path, turn) {
        /** @type {HTMLElement|null} */
        let found = null;
        for (const [i, name] of path.entries()) {
            const depth = String(i + 1);
            let at = found ? found.nextElementSibling : this.#body.firstElementChild;
            // Below the row before, until another branch begins.
            while (at && !(/** @type {HTMLElement} */ (at).dataset.depth === depth && at.querySelector('.name')?.textContent === name)) {
                at = found && Number(/** @type {HTMLElement} */ (at).dataset.depth) < i + 1 ? null : at.nextElementSibling;
            }
            if (!at || turn !== this.#turn) break;
            found = /** @type {HTMLElement} */ (at);
            const row = this.#rowOf.get(found);
            if (row && !row.isOpen && row.branch.children) await this.#open(row, turn, MOST_AT_ONCE);
        }
        if (!found || turn !== this.#turn) return;
        for (const chosen of this.#body.querySelectorAll('.chosen')) chosen.classList.remove('chosen');
        found.classList.add('chosen');
        found.scrollIntoView({ block: 'center' });
        /** @type {HTMLElement|null} */ (found.querySelector('button'))?.focus({ preventScroll: true });
    }

    /** @param {unknown} error */
    #fail(error) {
        replace(this.#said, h('span', { class: 'problem' }, error instanceof Error ? error.message : String(error)));
    }

    /** Asks for what is below a row, and shows it. @param {Row} row @param {number} turn @param {number} nOpened in one go @param {number} [first] */
    async #open(row, turn, nOpened, first = 0) {
        try {
            const found = await childrenOf(this.#place(row.branch.node, first));
            if (turn !== this.#turn) return;
            row.isOpen = true;
            if (row.branch.node) this.#opened.add(row.branch.node);
            const { rows, own, all, n } = found;
            /** @type {HTMLTableRowElement[]} */
            const lines = [];
            if (!row.branch.node && !first) {
                Object.assign(row.branch, all);
                replace(this.#body, this.#line(row.element, 0, 'all', null, all, row));
            }
            const hasOwn = own.host || own.device || own.blocks;
            if (hasOwn && !first) lines.push(this.#line(h('tr', { class: 'quiet' }), row.depth + 1, row.branch.node ? '(ends here)' : '(no stack)', null, own, null));
            const children = rows.map((branch) => new Row(branch, row.depth + 1));
            for (const child of children) this.#rowOf.set(child.element, child);
            for (const child of children) lines.push(this.#line(child.element, child.depth, child.branch.name, child, child.branch, child));
            if (first + rows.length < n) lines.push(this.#more(row, turn, first + rows.length, n));
            const after = row.below.length ? row.below[row.below.length - 1] : row.element;
            after.after(...lines);
            row.below.push(...lines);
            this.#line(row.element, row.depth, row.branch.name, row.branch.node ? row : null, row.branch, row);
            const only = children.length === 1 && !hasOwn && nOpened < MOST_AT_ONCE;
            for (const child of children) {
                if (!child.branch.children || !(only || this.#opened.has(child.branch.node))) continue;
                await this.#open(child, turn, nOpened + 1);
                row.below.push(...child.below);
            }
        } catch (error) {
            this.#fail(error);
        }
    }

    /** @param {Row} row */
    #close(row) {
        this.#opened.delete(row.branch.node);
        row.isOpen = false;
        // Rows that were opened later stand between those that were there.
        let next = row.element.nextElementSibling;
        while (next && Number(/** @type {HTMLElement} */ (next).dataset.depth) > row.depth) {
            const gone = next;
            next = next.nextElementSibling;
            gone.remove();
        }
        row.below = [];
        this.#line(row.element, row.depth, row.branch.name, row, row.branch, row);
    }

    /** @param {Row} row @param {number} turn @param {number} first @param {number} n */
    #more(row, turn, first, n) {
        const element = h('tr', { 'data-depth': String(row.depth + 1) });
        const ask = () => {
            row.below.splice(row.below.indexOf(element), 1);
            const before = /** @type {HTMLTableRowElement} */ (element.previousElementSibling);
            element.remove();
            row.below.push(before);
            void this.#open(row, turn, MOST_AT_ONCE, first);
        };
        append(element, h('td', { colspan: String(this.#sides.length + 3) }, h('button', { type: 'button', onclick: ask }, `${whole(n - first)} smaller ones`)));
        return element;
    }

    /**
     * Fills a row. @param {HTMLTableRowElement} element @param {number} depth @param {string} name @param {Row|null} folding what opens and closes, if it does
     * @param {Amount} amount @param {Row|null} of what has blocks
     */
    #line(element, depth, name, folding, amount, of) {
        const canOpen = folding && folding.branch.children > 0;
        const fold = () => {
            if (folding?.isOpen) this.#close(folding);
            else if (folding) void this.#open(folding, this.#turn, 0).then(() => /** @type {HTMLElement|null} */ (element.querySelector('button'))?.focus());
        };
        const sign = canOpen ? h('button', { type: 'button', class: 'fold', 'aria-expanded': String(folding.isOpen), 'aria-label': `${folding.isOpen ? 'Close' : 'Open'} ${name}`, onclick: fold }, folding.isOpen ? '▾' : '▸') : h('span', { class: 'fold' });
        const look = of && h('button', { type: 'button', 'aria-label': `Blocks of ${name}`, onclick: () => void this.#look(of) }, 'blocks');
        element.dataset.depth = String(depth);
        const figure = (/** @type {number} */ value, /** @type {string} */ shown) => h('td', { class: 'figure', 'data-value': String(value), title: value.toLocaleString('en-US') }, shown);
        replace(
            element,
            h('td', { class: 'long', title: of?.branch.around || null, style: { 'padding-left': `${Math.min(depth, 30) * 0.8 + 0.3}rem` } }, sign, ' ', named(name)),
            ...this.#sides.map((side) => figure(amount[side], amount[side] ? size(amount[side]) : '–')),
            figure(amount.blocks, whole(amount.blocks)),
            h('td', {}, look),
        );
        return element;
    }

    /** Shows the blocks of a place. @param {Row} row */
    async #look(row) {
        const turn = this.#turn;
        try {
            const place = this.#place(row.branch.node);
            let { rows, n, bytes, stack } = await blocksOf(place);
            while (rows.length < n && rows.length < 5000) rows = rows.concat((await blocksOf({ ...place, first: rows.length })).rows);
            if (turn !== this.#turn) return;
            const { unit } = this.run.head;
            this.#blocksPlace.hidden = false;
            this.#blocks.show(
                [
                    { head: 'size', isFigure: true, value: (block) => block.bytes, show: (block) => size(block.bytes) },
                    { head: 'since', isFigure: true, value: (block) => block.begin, show: (block) => time(block.begin, unit), title: () => '' },
                    { head: 'address', value: (block) => `0x${block.address}` },
                    { head: 'kind', value: (block) => block.kind },
                    { head: 'owner', value: (block) => block.owner },
                ],
                rows,
                `${whole(n)} with records, ${size(bytes)}${rows.length < n ? `, the largest ${whole(rows.length)} of them` : ''}, in ${stack.at(-1) ?? 'all'}`,
            );
        } catch (error) {
            this.#fail(error);
        }
    }
}
