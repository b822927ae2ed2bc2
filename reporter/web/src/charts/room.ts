// SPDX-License-Identifier: GPL-2.0-or-later
//
// The width that a drawing has, on the screen and on paper.

import { options, type RefObject } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import { Hold } from '../base/hold.js';
import { onTheme } from '../base/theme.js';

/** Draws the component again when its place has another width, another theme is in force, or it is printed. */
export function useRoom(place: RefObject<HTMLElement | null>): number {
    const [{ width }, set] = useState({ width: 0 });
    useLayoutEffect(() => {
        const element = place.current;
        if (!element) return;
        const hold = new Hold();
        const measure = (isSame: (width: number) => boolean) => {
            const { clientWidth } = element;
            if (clientWidth) set((last) => (isSame(last.width) ? last : { width: clientWidth }));
        };
        const again = () => measure(() => false);
        hold.onResize(element, () => measure((width) => width === element.clientWidth));
        hold.onPrint((width) => {
            // The browser lays the paper out when this returns.
            const { debounceRendering } = options;
            options.debounceRendering = (draw) => draw();
            if (width) set({ width });
            else again();
            options.debounceRendering = debounceRendering;
        });
        onTheme(hold, again);
        return () => hold.release();
    }, []);
    return width;
}
