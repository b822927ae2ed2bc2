// SPDX-License-Identifier: GPL-2.0-or-later

/** How many of ascending numbers are at most `limit`. */
export function countUpTo(numbers: ArrayLike<number>, limit: number) {
    let [low, high] = [0, numbers.length];
    while (low < high) {
        const middle = (low + high) >> 1;
        if (numbers[middle] <= limit) low = middle + 1;
        else high = middle;
    }
    return low;
}
