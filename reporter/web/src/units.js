// SPDX-License-Identifier: GPL-2.0-or-later
//
// Numbers as people read them: the same words as the text report's (jmassif/units.py).

const BINARY = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
const DECIMAL = ['', 'k', 'M', 'G', 'T', 'P'];
const WHOLE = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** @param {number} value */
const threeDigits = (value) => (value < 9.995 ? value.toFixed(2) : value < 99.95 ? value.toFixed(1) : value.toFixed(0));

/** @param {number} n */
export const whole = (n) => WHOLE.format(n);

/** @param {number} bytes */
export function size(bytes) {
    let value = Math.abs(bytes);
    const sign = bytes < 0 ? '-' : '';
    if (value < 1024) return `${sign}${Math.trunc(value)} B`;
    let step = 0;
    while (value >= 1023.5 && step < BINARY.length - 1) {
        value /= 1024;
        step++;
    }
    return `${sign}${threeDigits(value)} ${BINARY[step]}`;
}

/** @param {number} bytes */
export const growth = (bytes) => (bytes > 0 ? `+${size(bytes)}` : bytes ? size(bytes) : '0');

/** @param {number} part @param {number} all */
export const percent = (part, all) => `${(all ? (100 * part) / all : 0).toFixed(1)} %`;

/** @param {number} n @param {string} noun */
export const count = (n, noun) => `${whole(n)} ${noun}${n === 1 ? '' : 's'}`;

/** @param {number} time @param {string} unit "ms", "i" or "B" */
export function moment(time, unit) {
    if (unit === 'B') return size(Math.round(time));
    if (unit === 'i') {
        let value = time;
        let step = 0;
        while (value >= 999.5 && step < DECIMAL.length - 1) {
            value /= 1000;
            step++;
        }
        return `${step ? threeDigits(value) : Math.trunc(value)} ${DECIMAL[step]}i`;
    }
    if (time < 1000) return `${Math.round(time)} ms`;
    if (time < 60000) return `${(time / 1000).toFixed(2)} s`;
    const two = (/** @type {number} */ n) => String(n).padStart(2, '0');
    if (time < 3600000) return `${Math.floor(time / 60000)} min ${two(Math.floor(time / 1000) % 60)} s`;
    return `${Math.floor(time / 3600000)} h ${two(Math.floor(time / 60000) % 60)} min`;
}
