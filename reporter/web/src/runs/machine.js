// SPDX-License-Identifier: GPL-2.0-or-later
//
// The machine around the program: what its figures were at a time.

import { size } from '../base/units.js';

/** @typedef {import('./run.js').Run} Run */
/** @typedef {import('./parts.js').Figure} Figure */

/** The last sample; null before the first. @param {Figure} figure @param {number} at */
export function valueAt({ time, bytes }, at) {
    let low = 0;
    let high = time.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (time[middle] <= at) low = middle + 1;
        else high = middle;
    }
    return low ? bytes[low - 1] : null;
}

/** In words; "" where nothing is known. @param {Run} run @param {number} at */
export function machineAt(run, at) {
    const known = run.parts.machine.flatMap((figure) => {
        const bytes = valueAt(figure, at);
        return bytes === null ? [] : [`${figure.label} ${size(bytes)}`];
    });
    return known.length ? `the machine: ${known.join(', ')}` : '';
}
