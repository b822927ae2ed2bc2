// SPDX-License-Identifier: GPL-2.0-or-later
//
// What must be let go of by hand, because it would outlive the elements that it is for: listeners on window and on other
// long-lived things, observers, plots. Whatever takes hold of such a thing says here how to let go.

/** What fits on A4 and on US letter. */
const PAPER = 680;

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
     * What is drawn for a screen's width is drawn anew for paper, before the browser lays the paper out, and back after it.
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
