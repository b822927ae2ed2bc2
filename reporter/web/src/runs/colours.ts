// SPDX-License-Identifier: GPL-2.0-or-later
//
// Colours that mean the same in every view: an owner has its group's hue in a lightness of its own; other names follow a
// palette in which neighbours differ also for people who see red and green alike (tests/web/unit/test_colours.py).

import type { Dimension, Run } from './run.js';

/** By group: chroma, hue, and the lightness of its largest owner, of the second and of the third. */
const GROUPS: Record<string, [number, number, number[]]> = {
    yours: [0.179, 259, [56, 72, 42]],
    cached: [0.14, 76, [67, 83, 75]],
    libraries: [0.13, 165, [62, 78, 48]],
    runtime: [0.176, 33, [55, 70, 41]],
    other: [0.019, 254, [50, 66, 36]],
};
const HUES = [250, 60, 165, 10, 300, 110, 210, 345, 140, 35, 275, 90];

const colour = (lightness: number, chroma: number, hue: number) => `oklch(${lightness}% ${chroma} ${hue})`;

/** The colour of an owner, the same in all runs: `place` is that in its group. */
export function ownerColour(group: string, place: number) {
    const [chroma, hue, steps] = GROUPS[group] ?? GROUPS.other;
    return colour(steps[place % 3] + [0, 7, 3, 10][Math.floor(place / 3) % 4], chroma, hue);
}

/** `place`: in a list. */
export const listColour = (place: number) => colour(place % 24 < 12 ? 68 : 55, 0.11, HUES[place % HUES.length]);

/** The colour of a sum of many. */
export const REST = colour(70, 0.01, 250);

const known = new WeakMap<Run, Map<Dimension, string[]>>();

/** By name of a dimension, in the order of its names: the same in all views of a run. */
export function coloursOf(run: Run, dimension: Dimension) {
    const ofRun = known.get(run) ?? new Map<Dimension, string[]>();
    known.set(run, ofRun);
    const colours = ofRun.get(dimension) ?? assigned(run, dimension);
    ofRun.set(dimension, colours);
    return colours;
}

function assigned(run: Run, dimension: Dimension) {
    const { names } = run.dimension(dimension);
    if (dimension === 'owner') return run.head.owners.map(({ group, place }) => ownerColour(group, place));
    if (dimension === 'group') return names.map((group) => ownerColour(group, 0));
    // By place, the largest at any moment first.
    const most = run.series(dimension, 'both').map((bytes) => bytes.reduce((top, value) => (value > top ? value : top), 0));
    const colours: string[] = [];
    const order = names.map((_, i) => i).sort((a, b) => most[b] - most[a] || a - b);
    order.forEach((name, place) => (colours[name] = listColour(place)));
    return colours;
}
