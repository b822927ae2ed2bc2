// SPDX-License-Identifier: GPL-2.0-or-later
//
// Light or dark: what a canvas, which no style sheet reaches, has to know of it.

const CHANGE = 'themechange';

/** A colour of the style sheet as a canvas takes it: resolved for the theme in force. `name` is that of a CSS variable. */
export function themed(name: string) {
    const probe = document.body.appendChild(document.createElement('i'));
    probe.style.color = `var(${name})`;
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
}

/** After the reader has chosen a theme. */
export const announceTheme = () => window.dispatchEvent(new Event(CHANGE));

/** Events after which another theme may be in force, chosen here or by the system. */
export const themeChanges = (): [EventTarget, string][] => [
    [window, CHANGE],
    [matchMedia('(prefers-color-scheme: dark)'), 'change'],
];
