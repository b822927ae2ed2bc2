// SPDX-License-Identifier: GPL-2.0-or-later
//
// Data of a fleet: as jmassif fleet diff describes --format=json, and besides who the runs are, and the bytes of each.

/** @typedef {{n: number, median: number, spread: number, low: number, high: number}} Distribution bytes; spread between the quartiles, low and high the 5th and 95th percentile */
/** @typedef {{bytes: number, interval: [number, number]|null, p: number, is_change: boolean}} Change against the base */
/** @typedef {{view: string, name: string, groups: Distribution[], changes: (Change|null)[]}} FleetRow */
/** @typedef {{id: string[], host: string[], board: string[], file: string[], start: string[]}} FleetRuns */
/** @typedef {{run: string, file: string, host: string, group: number, view: string, name: string, bytes: number, median: number}} Outlier */
/**
 * @typedef {object} FleetHead
 * @property {string[]} headline
 * @property {string} key
 * @property {string} pool
 * @property {number} level
 * @property {number} base
 * @property {{value: string, label: string, runs: number}[]} groups
 * @property {FleetRow[]} rows
 * @property {Outlier[]} outliers
 * @property {{key: string, label: string, values: {value: string, runs: number}[]}[]} facts
 * @property {FleetRuns[]} runs
 */

/** A fleet, and what its runs held. */
export class Fleet {
    /** @param {FleetHead} head @param {import('../runs/data.js').NumberColumn} column */
    constructor(head, column) {
        this.head = head;
        this.column = column;
    }

    /** Bytes of a row in the runs of each group, in the order of its runs. @param {number} row */
    values(row) {
        return this.head.groups.map((_, group) => this.column(`${row}.${group}`));
    }
}

/** @typedef {{from: number, to: number, runs: number[]}} Bin of which the last has its end in it too; runs by their place in the group */

/**
 * Distribution of the runs of each group, in as many steps of one width for all groups.
 * @param {Float64Array[]} values @param {number} n @returns {Bin[][]}
 */
export function bins(values, n) {
    let least = Infinity;
    let most = -Infinity;
    for (const group of values) {
        for (const value of group) {
            if (value < least) least = value;
            if (value > most) most = value;
        }
    }
    const width = Math.max(1, Math.ceil((most - least + 1) / n));
    return values.map((group) => {
        /** @type {Bin[]} */
        const found = Array.from({ length: n }, (_, i) => ({ from: least + i * width, to: least + (i + 1) * width, runs: [] }));
        group.forEach((value, run) => found[Math.floor((value - least) / width)].runs.push(run));
        return found;
    });
}
