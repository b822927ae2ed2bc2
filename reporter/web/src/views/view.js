// SPDX-License-Identifier: GPL-2.0-or-later
//
// A view is a section of the page. It is made anew for each run that it fits, lives through
//
//     mount(place)    once: fills the empty place, which is in the document
//     update()        after mount, and whenever the reader has chosen another moment or one to compare with
//     destroy()       once, before another run is shown: nothing outside of the view may know of it any more
//
// and is then forgotten with its elements. Listeners on its own elements need no care. Whatever else it takes hold of
// (window, the place, observers, plots) goes through `hold`, which destroy() lets go.

import { append } from '../base/dom.js';

/** @typedef {import('../base/dom.js').Child} Child */
/** @typedef {import('../runs/page.js').Page} Page */
/** @typedef {import('../runs/run.js').Run} Run */

/** Pixels that fit on A4 and on US letter. */
const PAPER = 680;

/** Resources to release by hand, as they would outlive their elements: listeners on long-lived things, observers, plots. */
export class Hold {
    /** @type {(() => void)[]} */
    #releases = [];

    /** @param {() => void} release called once */
    add(release) {
        this.#releases.push(release);
    }

    /** @param {EventTarget} target @param {string} type @param {(event: Event) => void} listener */
    listen(target, type, listener) {
        target.addEventListener(type, listener);
        this.add(() => target.removeEventListener(type, listener));
    }

    /** @param {Element} element @param {() => void} listener called once at first, as observers do */
    onResize(element, listener) {
        const observer = new ResizeObserver(listener);
        observer.observe(element);
        this.add(() => observer.disconnect());
    }

    /**
     * Drawings for a screen's width are made anew for paper, before the browser lays the paper out, and back after it.
     * @param {(width: number|null) => void} redraw pixels between a sheet's margins; null: as on the screen
     */
    onPrint(redraw) {
        this.listen(window, 'beforeprint', () => redraw(PAPER));
        this.listen(window, 'afterprint', () => redraw(null));
    }

    /** The last first. */
    release() {
        for (const release of this.#releases.splice(0).reverse()) release();
    }
}

/** @typedef {{id: string, title: string, isWhole: boolean, fits: (run: Run) => boolean, new (page: Page): View}} ViewClass what a list of views has */

export class View {
    /** Letters and hyphens: the section's anchor. */
    static id = '';
    static title = '';

    /** It shows all of the run, whatever the filter leaves. */
    static isWhole = false;

    /** True if a run has anything to show in it. @param {Run} _run */
    static fits(_run) {
        return true;
    }

    hold = new Hold();

    /** @param {Page} page */
    constructor(page) {
        this.page = page;
        this.run = /** @type {typeof View} */ (this.constructor).isWhole ? page.whole : page.run;
    }

    /** Its elements, asked for once; for views that need no other mount(). @returns {Child[]} */
    content() {
        return [];
    }

    /** @param {HTMLElement} place */
    mount(place) {
        append(place, ...this.content());
    }

    update() {}

    destroy() {
        this.hold.release();
    }
}
