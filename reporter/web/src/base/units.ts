// SPDX-License-Identifier: GPL-2.0-or-later
//
// Numbers as people read them: the same words as the text report's (jmassif/units.py).

const BINARY = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
const DECIMAL = ['', 'k', 'M', 'G', 'T', 'P'];
const WHOLE = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** As toFixed, but what lies in the middle goes to the even digit, as the text report has it; up to 2 digits. */
export function fixed(value: number, digits: number) {
    const scaled = value * 10 ** digits;
    // Only eighths can lie in the middle exactly; other numbers may seem to once they are multiplied.
    const isMiddle = Number.isInteger(value * 8) && Math.abs(scaled % 1) === 0.5;
    return (isMiddle ? (2 * Math.round(scaled / 2)) / 10 ** digits : value).toFixed(digits);
}

const threeDigits = (value: number) => (value < 9.995 ? fixed(value, 2) : value < 99.95 ? fixed(value, 1) : fixed(value, 0));

export const whole = (n: number) => WHOLE.format(n);

export function size(bytes: number) {
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

export const growth = (bytes: number) => (bytes > 0 ? `+${size(bytes)}` : bytes ? size(bytes) : '0');

export const percent = (part: number, all: number) => `${fixed(all ? (100 * part) / all : 0, 1)} %`;

export const count = (n: number, noun: string) => `${whole(n)} ${noun}${n === 1 ? '' : 's'}`;

/** `unit` is "ms", "i" or "B". */
export function moment(time: number, unit: string) {
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
    const two = (n: number) => String(n).padStart(2, '0');
    if (time < 3600000) return `${Math.floor(time / 60000)} min ${two(Math.floor(time / 1000) % 60)} s`;
    return `${Math.floor(time / 3600000)} h ${two(Math.floor(time / 60000) % 60)} min`;
}

/** As the text report rounds shares. */
export function wholePercent(part: number, all: number) {
    const share = all ? (100 * part) / all : 0;
    return share >= 0.5 || !part ? `${fixed(share, 0)} %` : 'under 1 %';
}
