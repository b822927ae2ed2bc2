// SPDX-License-Identifier: GPL-2.0-or-later
//
// Resources to release by hand, as they would outlive their elements: listeners on long-lived things, observers, plots.

/** Pixels that fit on A4 and on US letter. */
const PAPER = 680;

export class Hold {
    #releases: (() => void)[] = [];

    add(release: () => void) {
        this.#releases.push(release);
    }

    listen(target: EventTarget, type: string, listener: (event: Event) => void) {
        target.addEventListener(type, listener);
        this.add(() => target.removeEventListener(type, listener));
    }

    /** `listener` is called once at first, as observers do. */
    onResize(element: Element, listener: () => void) {
        const observer = new ResizeObserver(listener);
        observer.observe(element);
        this.add(() => observer.disconnect());
    }

    /** Drawings for a screen's width are made anew for paper, `width` pixels between a sheet's margins, and back after it (null). */
    onPrint(redraw: (width: number | null) => void) {
        this.listen(window, 'beforeprint', () => redraw(PAPER));
        this.listen(window, 'afterprint', () => redraw(null));
    }

    /** The last first. */
    release() {
        for (const release of this.#releases.splice(0).reverse()) release();
    }
}
