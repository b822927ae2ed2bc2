// SPDX-License-Identifier: GPL-2.0-or-later
//
// Numbers as people read them: the same words as the text report's (jmassif/units.py).

const BINARY = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
const DECIMAL = ['', 'k', 'M', 'G', 'T', 'P'];
const WHOLE = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** As toFixed, but what lies in the middle goes to the even digit, as the text report has it. @param {number} value @param {number} digits up to 2 */
export function fixed(value, digits) {
    const scaled = value * 10 ** digits;
    // Only eighths can lie in the middle exactly; other numbers may seem to once they are multiplied.
    const isMiddle = Number.isInteger(value * 8) && Math.abs(scaled % 1) === 0.5;
    return (isMiddle ? (2 * Math.round(scaled / 2)) / 10 ** digits : value).toFixed(digits);
}

/** @param {number} value */
const threeDigits = (value) => (value < 9.995 ? fixed(value, 2) : value < 99.95 ? fixed(value, 1) : fixed(value, 0));

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
export const percent = (part, all) => `${fixed(all ? (100 * part) / all : 0, 1)} %`;

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
    if (time < 60000) return `${fixed(time / 1000, 2)} s`;
    const two = (/** @type {number} */ n) => String(n).padStart(2, '0');
    if (time < 3600000) return `${Math.floor(time / 60000)} min ${two(Math.floor(time / 1000) % 60)} s`;
    return `${Math.floor(time / 3600000)} h ${two(Math.floor(time / 60000) % 60)} min`;
}
