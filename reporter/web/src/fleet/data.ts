// SPDX-License-Identifier: GPL-2.0-or-later
//
// Data of a fleet: as jmassif fleet diff describes --format=json, and besides who the runs are, and the bytes of each.

import type { NumberColumn } from '../runs/data.js';

/** Bytes; spread between the quartiles, low and high the 5th and 95th percentile. */
export type Distribution = { n: number; median: number; spread: number; low: number; high: number };
/** Against the base. */
export type Change = { bytes: number; interval: [number, number] | null; p: number; is_change: boolean };
export type FleetRow = { view: string; name: string; groups: Distribution[]; changes: (Change | null)[] };
export type FleetRuns = { id: string[]; host: string[]; board: string[]; file: string[]; start: string[] };
export type Outlier = { run: string; file: string; host: string; group: number; view: string; name: string; bytes: number; median: number };
export type Fact = { key: string; label: string; values: { value: string; runs: number }[] };
export type FleetHead = {
    headline: string[];
    key: string;
    pool: string;
    level: number;
    base: number;
    groups: { value: string; label: string; runs: number }[];
    rows: FleetRow[];
    outliers: Outlier[];
    facts: Fact[];
    runs: FleetRuns[];
};

/** A fleet, and what its runs held. */
export class Fleet {
    readonly head;
    readonly column;

    constructor(head: FleetHead, column: NumberColumn) {
        this.head = head;
        this.column = column;
    }

    /** Bytes of a row in the runs of each group, in the order of its runs. */
    values(row: number) {
        return this.head.groups.map((_, group) => this.column(`${row}.${group}`));
    }
}

/** The last one has its end in it too; runs by their place in the group. */
export type Bin = { from: number; to: number; runs: number[] };

/** Distribution of the runs of each group, in `n` steps of one width for all groups. */
export function bins(values: Float64Array[], n: number) {
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
        const found = Array.from({ length: n }, (_, i): Bin => ({ from: least + i * width, to: least + (i + 1) * width, runs: [] }));
        group.forEach((value, run) => found[Math.floor((value - least) / width)].runs.push(run));
        return found;
    });
}
