// SPDX-License-Identifier: GPL-2.0-or-later
//
// Drives the views: a section for each, made anew for each run and brought up to date after each choice. Those in a group with
// a heading are folded: each is made when it is opened first, so a page of many sections costs what the reader looks at.

import { h } from './base/dom.js';
import { Kept } from './kept.js';

/** @typedef {import('./runs/page.js').Page} Page */
/** @typedef {import('./views/view.js').View} View */
/** @typedef {import('./views/view.js').ViewClass} ViewClass */
/**
 * Views that answer one question, below a heading that asks it. Those of a group without a heading are open; the others are
 * folded until the reader opens them, so beside each stands what it holds.
 * @typedef {{title: string, views: [ViewClass, string][]}} Group
 */

class Section {
    /** @type {View|null} */
    #view = null;
    /** @type {import('./runs/run.js').Run|null} */
    #run = null;
    #isStale = true;
    #whole = h('p', { class: 'quiet whole' }, 'Not filtered');

    /** @type {HTMLDetailsElement|null} */
    #fold = null;

    /** @param {ViewClass} kind @param {Page} page @param {string|null} holds what it holds, in words; null: it is not to be folded @param {Kept} kept @param {() => void} onFold */
    constructor(kind, page, holds, kept, onFold) {
        this.kind = kind;
        this.page = page;
        this.kept = kept;
        this.body = h('div', { class: 'body' });
        const heading = h('h2', { id: `${kind.id}-title` }, kind.title);
        this.element = h('section', { id: kind.id, 'aria-labelledby': `${kind.id}-title` });
        if (holds === null) this.element.append(heading, this.body);
        else {
            const toggled = () => {
                this.refresh();
                onFold();
            };
            this.#fold = h('details', { ontoggle: toggled }, h('summary', {}, heading, h('span', { class: 'quiet' }, ` ${holds}`)), this.body);
            this.element.append(this.#fold);
        }
        kept.listen(kind.id, this.body);
    }

    get id() {
        return this.kind.id;
    }

    get canFold() {
        return !!this.#fold;
    }

    get isOpen() {
        return !this.#fold || this.#fold.open;
    }

    /** @param {boolean} isOpen */
    fold(isOpen) {
        if (this.#fold) this.#fold.open = isOpen;
        if (isOpen) this.refresh();
    }

    /** After another choice. What is shown stays until refresh(), so that the page keeps its length meanwhile. */
    expire() {
        const run = this.#shown;
        this.#isStale = true;
        if (run === this.#run) return;
        this.#run = run;
        this.element.hidden = !this.kind.fits(run);
        if (this.element.hidden || !this.isOpen) this.#clear();
    }

    get #shown() {
        return this.kind.isWhole ? this.page.whole : this.page.run;
    }

    get isInView() {
        const { top, bottom } = this.element.getBoundingClientRect();
        return bottom > 0 && top < window.innerHeight;
    }

    refresh() {
        if (!this.#isStale || this.element.hidden || !this.isOpen) return;
        this.#isStale = false;
        const isNew = this.#view?.run !== this.#shown;
        if (this.kind.isWhole && this.page.isPart) this.body.before(this.#whole);
        else this.#whole.remove();
        if (isNew) this.#mount();
        this.#view?.update();
        if (isNew) this.kept.follow(this.kind.id, this.body);
    }

    /** After other settings than the reader's were asked for. */
    restore() {
        if (this.#view) this.kept.restore(this.kind.id, this.body);
    }

    #mount() {
        this.#clear();
        this.#view = new this.kind(this.page);
        this.#view.mount(this.body);
        // The title of a table that is all of its section would be read twice.
        for (const title of this.body.querySelectorAll('h3')) if (title.textContent === this.kind.title) title.classList.add('unseen');
    }

    #clear() {
        this.#view?.destroy();
        this.#view = null;
        this.body.replaceChildren();
    }
}

/** Keeps what the reader clicked in its place on the screen while sections above it grow and shrink. */
class Anchor {
    /** @type {Element|null} */
    #element = null;
    #top = 0;

    constructor() {
        for (const type of ['pointerdown', 'keydown']) {
            window.addEventListener(type, (event) => (this.#element = event.target instanceof Element ? event.target.closest('section') : null), true);
        }
    }

    remember() {
        if (this.#element) this.#top = this.#element.getBoundingClientRect().top;
    }

    restore() {
        const by = this.#element?.isConnected ? this.#element.getBoundingClientRect().top - this.#top : 0;
        if (by) window.scrollBy({ top: by, behavior: 'instant' });
    }
}

/** @param {string} title */
const idOf = (title) => `group-${title.toLowerCase().replaceAll(/[^a-z]+/g, '-')}`;

/** All sections, in order and in groups, with links to the groups. They last as long as the page does; the views in them do not. */
export class Sections {
    #anchor = new Anchor();
    #timer = 0;
    /** @type {(() => void)[]} */
    #listeners = [];
    kept = new Kept(() => this.#notify());
    /** By group: its element, the link to it, and its sections. @type {{element: HTMLElement, link: HTMLAnchorElement|null, sections: Section[]}[]} */
    #groups;

    /** @param {Group[]} groups @param {Page} page */
    constructor(groups, page) {
        this.#groups = groups.map(({ title, views }) => {
            const sections = views.map(([kind, holds]) => new Section(kind, page, title ? holds : null, this.kept, () => this.#notify()));
            const heading = title && h('h2', { class: 'question', id: idOf(title) }, title);
            const link = title ? h('a', { href: `#${idOf(title)}` }, title) : null;
            return { element: h('div', { class: title ? 'group' : '' }, heading, ...sections.map((section) => section.element)), link, sections };
        });
        this.all = this.#groups.flatMap((group) => group.sections);
        this.elements = this.#groups.map((group) => group.element);
        this.links = this.#groups.flatMap(({ link }) => link ?? []);
        if (this.links.length) this.elements.splice(1, 0, this.#unfolding());
        this.#followPrinting();
    }

    /** @param {() => void} listener is called when a section was opened or closed or a setting in it has changed, and when a choice is on the screen */
    onChange(listener) {
        this.#listeners.push(listener);
    }

    #notify() {
        for (const listener of this.#listeners) listener();
    }

    /** The names of those that the reader has opened. */
    get opened() {
        return this.all.filter((section) => section.canFold && section.isOpen).map(({ id }) => id);
    }

    /** @param {string[]} names */
    open(names) {
        for (const section of this.all) if (section.canFold && section.isOpen !== names.includes(section.id)) section.fold(names.includes(section.id));
    }

    /** Has the controls show what is kept of them. */
    restore() {
        for (const section of this.all) section.restore();
    }

    /** The section that the reader is in; '' at the page's top. */
    get inView() {
        if (window.scrollY < 80) return '';
        const seen = this.all.filter((section) => section.isOpen && section.isInView);
        return (seen.find(({ element }) => element.getBoundingClientRect().top > -80) ?? seen[0])?.id ?? '';
    }

    #unfolding() {
        const unfold = (/** @type {boolean} */ isOpen) => () => this.all.forEach((section) => section.fold(isOpen));
        return h('p', { class: 'buttons unfolding' }, h('button', { type: 'button', id: 'unfold', onclick: unfold(true) }, 'Expand all'), h('button', { type: 'button', onclick: unfold(false) }, 'Collapse all'));
    }

    /** Paper has no folds. */
    #followPrinting() {
        /** @type {Section[]} */
        let folded = [];
        window.addEventListener('beforeprint', () => {
            folded = this.all.filter((section) => !section.isOpen);
            for (const section of this.all) section.fold(true);
        });
        window.addEventListener('afterprint', () => folded.splice(0).forEach((section) => section.fold(false)));
    }

    /** Opens what an address leads to. @param {string} anchor @returns {boolean} whether there is such a place */
    goTo(anchor) {
        const target = anchor && document.getElementById(anchor);
        if (!target) return false;
        this.all.find((section) => section.element === target)?.fold(true);
        target.scrollIntoView();
        return true;
    }

    /** Before the page changes anything for the reader's choice. */
    remember() {
        this.#anchor.remember();
    }

    /** Sections in view come first, so that a click is answered at once; the rest in tasks of its own. */
    refresh() {
        const { all } = this;
        for (const section of all) section.expire();
        for (const { element, link, sections } of this.#groups) {
            element.hidden = sections.every((section) => section.element.hidden);
            if (link) link.hidden = element.hidden;
        }
        for (const section of all) if (section.isInView) section.refresh();
        this.#anchor.restore();
        document.documentElement.dataset.state = 'busy';
        clearTimeout(this.#timer);
        this.#timer = setTimeout(() => this.#more(0));
    }

    /** @param {number} next */
    #more(next) {
        if (next < this.all.length) {
            this.#anchor.remember();
            this.all[next].refresh();
            this.#anchor.restore();
            this.#timer = setTimeout(() => this.#more(next + 1));
        } else {
            this.#notify();
            document.documentElement.dataset.state = 'ready';
        }
    }
}
