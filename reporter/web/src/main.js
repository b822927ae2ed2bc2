// SPDX-License-Identifier: GPL-2.0-or-later
//
// Opens the page: unpacks the data, lays out the sections, and keeps them up to date.

import './page.css';
import { bar } from './bar.js';
import { columnsBar } from './columns.js';
import { Comparison } from './comparison.js';
import { unpack } from './data.js';
import { h, replace } from './dom.js';
import { Page } from './page.js';
import { Run, partsOf } from './run.js';
import { sum } from './sum.js';
import { comparisonViews, views } from './views.js';

/** @typedef {import('./page.js').View} View */

/** A section: mounted anew for each run, brought up to date after each choice. */
class Section {
    /** @type {(() => void)|null} */
    #update = null;
    #isStale = true;

    /** @param {View} view @param {Page} page */
    constructor(view, page) {
        this.view = view;
        this.page = page;
        this.body = h('div', { class: 'body' });
        const heading = h('h2', { id: `${view.id}-title` }, view.title);
        this.element = h('section', { id: view.id, 'aria-labelledby': `${view.id}-title` }, heading, this.body);
    }

    /** @param {'run'|'moment'} what */
    expire(what) {
        this.#isStale = true;
        if (what === 'run') {
            this.#update = null;
            this.element.hidden = !(this.view.fits?.(this.page.run) ?? true);
        }
    }

    get isInView() {
        const { top, bottom } = this.element.getBoundingClientRect();
        return bottom > 0 && top < window.innerHeight;
    }

    refresh() {
        if (!this.#isStale || this.element.hidden) return;
        this.#isStale = false;
        if (!this.#update) {
            this.body.replaceChildren();
            this.#update = this.view.mount(this.body, this.page);
            // The title of a table that is all of its section would be read twice.
            for (const title of this.body.querySelectorAll('h3')) if (title.textContent === this.view.title) title.classList.add('unseen');
        }
        this.#update();
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

/** What is on the screen comes first, so that a click is answered at once; the rest in tasks of its own. @param {Section[]} sections @param {Anchor} anchor */
function refresh(sections, anchor) {
    for (const section of sections) if (section.isInView) section.refresh();
    anchor.restore();
    let next = 0;
    const more = () => {
        if (next < sections.length) {
            anchor.remember();
            sections[next++].refresh();
            anchor.restore();
            setTimeout(more);
        } else {
            document.documentElement.dataset.state = 'ready';
        }
    };
    document.documentElement.dataset.state = 'busy';
    setTimeout(more);
}

/** @param {HTMLElement} place */
async function open(place) {
    const data = await unpack(document.getElementById('data')?.textContent ?? '');
    const { difference } = data;
    const runs = data.runs.map((run) => (difference ? new Comparison(run, difference) : new Run(partsOf(run))));
    if (data.together) runs.unshift(sum(runs, data.together));
    const page = new Page(data, runs);
    const anchor = new Anchor();
    page.onChange(() => anchor.remember());
    const sections = (difference ? comparisonViews(difference) : views).map((view) => new Section(view, page));
    const links = sections.map(({ view }) => h('a', { href: `#${view.id}` }, view.title));
    const updateLinks = () => links.forEach((link, i) => (link.hidden = sections[i].element.hidden));
    /** @param {'run'|'moment'} what */
    const onChange = (what) => {
        for (const section of sections) section.expire(what);
        updateLinks();
        refresh(sections, anchor);
    };
    const licences = document.getElementById('licences');
    replace(
        place,
        h('a', { class: 'skip', href: `#${sections[0].view.id}` }, 'Skip to the report'),
        h('header', {}, h('h1', {}, data.title), h('nav', { 'aria-label': 'Sections' }, ...links)),
        difference ? columnsBar(page) : bar(page),
        h('main', {}, ...sections.map((section) => section.element)),
        h('footer', {}, `Made by ${data.generator}. `, licences),
    );
    if (licences) licences.hidden = false;
    page.onChange(onChange);
    window.addEventListener('beforeprint', () => sections.forEach((section) => section.refresh()));
    onChange('run');
    if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}

const place = document.getElementById('page');
if (place) {
    open(place).catch((error) => {
        replace(place, h('p', { role: 'alert', class: 'problem' }, `This page cannot be shown: ${error}`));
        console.error(error);
    });
}
