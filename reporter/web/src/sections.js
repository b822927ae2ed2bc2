// SPDX-License-Identifier: GPL-2.0-or-later
//
// Drives the views: a section for each, made anew for each run and brought up to date after each choice.

import { h } from './base/dom.js';

/** @typedef {import('./runs/page.js').Page} Page */
/** @typedef {import('./views/view.js').View} View */
/** @typedef {import('./views/view.js').ViewClass} ViewClass */

class Section {
    /** @type {View|null} */
    #view = null;
    /** @type {import('./runs/run.js').Run|null} */
    #run = null;
    #isStale = true;

    /** @param {ViewClass} kind @param {Page} page */
    constructor(kind, page) {
        this.kind = kind;
        this.page = page;
        this.body = h('div', { class: 'body' });
        const heading = h('h2', { id: `${kind.id}-title` }, kind.title);
        this.element = h('section', { id: kind.id, 'aria-labelledby': `${kind.id}-title` }, heading, this.body);
    }

    /** After another choice. What is shown stays until refresh(), so that the page keeps its length meanwhile. */
    expire() {
        const { run } = this.page;
        this.#isStale = true;
        if (run === this.#run) return;
        this.#run = run;
        this.element.hidden = !this.kind.fits(run);
        if (this.element.hidden) this.#clear();
    }

    get isInView() {
        const { top, bottom } = this.element.getBoundingClientRect();
        return bottom > 0 && top < window.innerHeight;
    }

    refresh() {
        if (!this.#isStale || this.element.hidden) return;
        this.#isStale = false;
        if (this.#view?.run !== this.page.run) this.#mount();
        this.#view?.update();
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

/** All sections, in order, with the links to them. They last as long as the page does; the views in them do not. */
export class Sections {
    #anchor = new Anchor();
    #timer = 0;

    /** @param {ViewClass[]} kinds @param {Page} page */
    constructor(kinds, page) {
        this.all = kinds.map((kind) => new Section(kind, page));
        this.elements = this.all.map((section) => section.element);
        this.links = kinds.map((kind) => h('a', { href: `#${kind.id}` }, kind.title));
        window.addEventListener('beforeprint', () => this.all.forEach((section) => section.refresh()));
    }

    /** Before the page changes anything for the reader's choice. */
    remember() {
        this.#anchor.remember();
    }

    /** What is on the screen comes first, so that a click is answered at once; the rest in tasks of its own. */
    refresh() {
        const { all } = this;
        for (const section of all) section.expire();
        this.links.forEach((link, i) => (link.hidden = all[i].element.hidden));
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
            document.documentElement.dataset.state = 'ready';
        }
    }
}
