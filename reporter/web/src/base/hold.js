// SPDX-License-Identifier: GPL-2.0-or-later
//
// Resources to release by hand, as they would outlive their elements: listeners on window and on other
// long-lived things, observers, plots. Whatever takes hold of such a thing says here how to let go.

/** Pixels that fit on A4 and on US letter. */
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
