// SPDX-License-Identifier: GPL-2.0-or-later
//
// Colours that mean the same in every view: an owner has a shade of its group's hue; other names follow a palette in which
// neighbours differ also for people who see red and green alike.

import type { Dimension, Run } from './run.js';

/**
 * By group, a hue and the shades of its owners, the largest owner's first: lightness, chroma and hue. They were picked one
 * after the other, each as far as can be from those before it as they look to people who see all colours and to those who do
 * not see red, green or blue (tests/web/unit/test_colours.py holds them to that), within the group's range of hues.
 */
const SHADES: Record<string, [number, number, number][]> = {
    yours: [
        [62, 0.12, 250],
        [84, 0.06, 243],
        [50, 0.06, 279],
        [72, 0.06, 255],
        [44, 0.15, 273],
        [74, 0.15, 297],
        [56, 0.15, 279],
        [42, 0.06, 291],
        [78, 0.06, 267],
        [66, 0.06, 261],
        [48, 0.12, 255],
        [68, 0.12, 243],
    ],
    cached: [
        [80, 0.12, 82],
        [70, 0.15, 72],
        [56, 0.12, 72],
        [48, 0.06, 60],
        [62, 0.06, 96],
        [80, 0.06, 96],
    ],
    libraries: [
        [70, 0.12, 160],
        [44, 0.15, 143],
        [84, 0.15, 161],
        [56, 0.06, 203],
        [78, 0.06, 197],
        [62, 0.06, 161],
        [78, 0.09, 125],
        [70, 0.12, 125],
        [84, 0.15, 125],
        [50, 0.06, 161],
        [56, 0.12, 131],
        [42, 0.06, 137],
        [74, 0.12, 173],
        [66, 0.09, 137],
    ],
    runtime: [
        [52, 0.15, 10],
        [64, 0.15, 35],
        [42, 0.15, 347],
        [76, 0.12, 11],
        [60, 0.15, 335],
        [64, 0.06, 17],
        [58, 0.15, 29],
        [72, 0.15, 35],
        [42, 0.06, 35],
        [82, 0.12, 347],
        [48, 0.15, 347],
        [58, 0.06, 11],
    ],
    other: [
        [66, 0.03, 306],
        [42, 0.15, 312],
        [78, 0.12, 300],
        [54, 0.15, 306],
        [46, 0.06, 300],
        [72, 0.15, 306],
        [64, 0.15, 324],
        [84, 0.03, 318],
        [80, 0.09, 324],
        [48, 0.15, 318],
        [50, 0.03, 330],
        [54, 0.15, 330],
    ],
};
const HUES = [250, 60, 165, 10, 300, 110, 210, 345, 140, 35, 275, 90];

const colour = (lightness: number, chroma: number, hue: number) => `oklch(${lightness}% ${chroma} ${hue})`;

export const groupColour = (group: string) => ownerColour(group, 0);

/** The colour of an owner: `rank` is its place in its group, the largest first. Owners beyond the shades have those between them. */
export function ownerColour(group: string, rank: number) {
    const shades = SHADES[group] ?? SHADES.other;
    const [lightness, chroma, hue] = shades[rank % shades.length];
    const round = Math.floor(rank / shades.length);
    const [least, most] = [42, 86];
    return colour(least + ((lightness - least + 3 * round) % (most - least)), chroma * 0.8 ** round, hue + 5 * round);
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
    let colours = ofRun.get(dimension);
    if (!colours) {
        colours = assign(run, dimension);
        ofRun.set(dimension, colours);
    }
    return colours;
}

/** Colours by place, the largest at any moment first. */
function assign(run: Run, dimension: Dimension) {
    const { names } = run.dimension(dimension);
    const most = run.series(dimension, 'both').map((bytes) => bytes.reduce((top, value) => (value > top ? value : top), 0));
    const order = names.map((_, i) => i).sort((a, b) => most[b] - most[a] || a - b);
    const colours: string[] = [];
    const ranks: Record<string, number> = {};
    order.forEach((name, place) => {
        if (dimension === 'owner') {
            const { group } = run.head.owners[name];
            colours[name] = ownerColour(group, (ranks[group] = (ranks[group] ?? -1) + 1));
        } else if (dimension === 'group') colours[name] = groupColour(names[name]);
        else colours[name] = listColour(place);
    });
    return colours;
}
