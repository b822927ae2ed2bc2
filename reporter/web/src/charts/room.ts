// SPDX-License-Identifier: GPL-2.0-or-later
//
// The width that a drawing has, on the screen and on paper.

import { options, type RefObject } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import { themeChanges } from '../base/theme.js';

/** Pixels that fit on A4 and on US letter. */
const PAPER = 680;

/** Draws the component again when its place has another width, another theme is in force, or it is printed. */
export function useRoom(place: RefObject<HTMLElement | null>): number {
    const [{ width }, set] = useState({ width: 0 });
    useLayoutEffect(() => {
        const element = place.current;
        if (!element) return;
        const measure = (isSame: (width: number) => boolean) => {
            const { clientWidth } = element;
            if (clientWidth) set((last) => (isSame(last.width) ? last : { width: clientWidth }));
        };
        const again = () => measure(() => false);
        const print = (width: number | null) => {
            // The browser lays the paper out when this returns.
            const { debounceRendering } = options;
            options.debounceRendering = (draw) => draw();
            if (width) set({ width });
            else again();
            options.debounceRendering = debounceRendering;
        };
        const observer = new ResizeObserver(() => measure((width) => width === element.clientWidth));
        observer.observe(element);
        const listeners: [EventTarget, string, () => void][] = [
            [window, 'beforeprint', () => print(PAPER)],
            [window, 'afterprint', () => print(null)],
            ...themeChanges().map(([target, type]): [EventTarget, string, () => void] => [target, type, again]),
        ];
        for (const [target, type, listener] of listeners) target.addEventListener(type, listener);
        return () => {
            observer.disconnect();
            for (const [target, type, listener] of listeners) target.removeEventListener(type, listener);
        };
    }, []);
    return width;
}
