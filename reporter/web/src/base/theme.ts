// SPDX-License-Identifier: GPL-2.0-or-later
//
// Light or dark: what a canvas, which no style sheet reaches, has to know of it.

import { h } from './dom.js';

const CHANGE = 'themechange';

/** A colour of the style sheet as a canvas takes it: resolved for the theme in force. `name` is that of a CSS variable. */
export function themed(name: string) {
    const probe = h('i', { style: { color: `var(${name})`, display: 'none' } });
    document.body.append(probe);
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
}

/** After the reader has chosen a theme. */
export const announceTheme = () => window.dispatchEvent(new Event(CHANGE));

/** Calls `redraw` whenever another theme is in force, chosen here or by the system. */
export function onTheme(hold: { listen: (target: EventTarget, name: string, handler: () => void) => void }, redraw: () => void) {
    hold.listen(window, CHANGE, redraw);
    hold.listen(matchMedia('(prefers-color-scheme: dark)'), 'change', redraw);
}
