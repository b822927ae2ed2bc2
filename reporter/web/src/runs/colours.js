// SPDX-License-Identifier: GPL-2.0-or-later
//
// Colours that mean the same in every view: an owner has a shade of its group's hue; other names follow a palette in which
// neighbours differ also for people who see red and green alike.

/** By group: the hue in degrees, and the chroma. */
const GROUPS = /** @type {Record<string, [number, number]>} */ ({
    yours: [250, 0.13],
    cached: [75, 0.11],
    libraries: [165, 0.09],
    runtime: [10, 0.12],
    other: [300, 0.04],
});
const HUES = [250, 60, 165, 10, 300, 110, 210, 345, 140, 35, 275, 90];

/** @param {number} lightness @param {number} chroma @param {number} hue */
const colour = (lightness, chroma, hue) => `oklch(${lightness}% ${chroma} ${hue})`;

/** @param {string} group */
export function groupColour(group) {
    const [hue, chroma] = GROUPS[group] ?? GROUPS.other;
    return colour(66, chroma, hue);
}

/** The colour of an owner: `rank` is its place in its group, the largest first. @param {string} group @param {number} rank */
function ownerColour(group, rank) {
    const [hue, chroma] = GROUPS[group] ?? GROUPS.other;
    const shades = [66, 76, 57, 83, 50, 72];
    return colour(shades[rank % shades.length], chroma * (1 - 0.25 * ((rank % shades.length) % 2)), hue + 7 * (rank % 5) - 7);
}

/** @param {number} place in a list */
export const listColour = (place) => colour(place % 24 < 12 ? 68 : 55, 0.11, HUES[place % HUES.length]);

/** What is a sum of many. */
export const REST = colour(70, 0.01, 250);

/** @type {WeakMap<import('./run.js').Run, Map<string, string[]>>} */
const known = new WeakMap();

/**
 * By name of a dimension, in the order of its names: the same in all views of a run.
 * @param {import('./run.js').Run} run @param {import('./run.js').Dimension} dimension @returns {string[]}
 */
export function coloursOf(run, dimension) {
    const ofRun = known.get(run) ?? new Map();
    known.set(run, ofRun);
    let colours = ofRun.get(dimension);
    if (!colours) {
        colours = assign(run, dimension);
        ofRun.set(dimension, colours);
    }
    return colours;
}

/** What held most at any moment comes first. @param {import('./run.js').Run} run @param {import('./run.js').Dimension} dimension */
function assign(run, dimension) {
    const { names } = run.dimension(dimension);
    const most = run.series(dimension, 'both').map((bytes) => bytes.reduce((top, value) => (value > top ? value : top), 0));
    const order = names.map((_, i) => i).sort((a, b) => most[b] - most[a] || a - b);
    /** @type {string[]} */
    const colours = [];
    /** @type {Record<string, number>} */
    const ranks = {};
    order.forEach((name, place) => {
        if (dimension === 'owner') {
            const { group } = run.head.owners[name];
            colours[name] = ownerColour(group, (ranks[group] = (ranks[group] ?? -1) + 1));
        } else if (dimension === 'group') colours[name] = groupColour(names[name]);
        else colours[name] = listColour(place);
    });
    return colours;
}
