// SPDX-License-Identifier: GPL-2.0-or-later
//
// Unpacks what reporter/jmassif/html/ put into the page. Sizes are bytes.

import type { ColumnSpec, FleetPage, RunHead, Together } from './head.js';

export type * from './head.js';
export type NumberColumn = (name: string) => Float64Array;
export type RunData = { head: RunHead; column: NumberColumn; addresses: (name: string) => BigUint64Array };
/** `difference`: what is compared, of a comparison. */
export type PageData = {
    title: string;
    together: Together | null;
    generator: string;
    difference: string[] | null;
    fleet: FleetPage | null;
    runs: RunData[];
};

const VERSION = 1;

async function inflate(text: string) {
    const packed = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
    return new Uint8Array(await new Response(stream).arrayBuffer());
}

function numbers(bytes: Uint8Array, spec: ColumnSpec, at: number) {
    const column = new Float64Array(spec.rows);
    let weight = 1;
    for (let plane = 0; plane < spec.planes; plane++) {
        const begin = at + spec.at + plane * spec.rows;
        for (let row = 0; row < spec.rows; row++) column[row] += bytes[begin + row] * weight;
        weight *= 256;
    }
    if (spec.type !== 'signed') return column;
    return column.map((folded) => (folded % 2 ? -Math.floor(folded / 2) - 1 : folded / 2));
}

function addresses(bytes: Uint8Array, spec: ColumnSpec, at: number) {
    const column = new BigUint64Array(spec.rows);
    const raw = new DataView(column.buffer);
    for (let plane = 0; plane < spec.planes; plane++) {
        const begin = at + spec.at + plane * spec.rows;
        for (let row = 0; row < spec.rows; row++) raw.setUint8(8 * row + plane, bytes[begin + row]);
    }
    return column;
}

/** `text` is what the element #data holds. */
export async function unpack(text: string): Promise<PageData> {
    const bytes = await inflate(text);
    const n = new DataView(bytes.buffer).getUint32(0, true);
    const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + n))) as Omit<PageData, 'runs'> & { version: number; runs: RunHead[] };
    if (head.version !== VERSION) throw new Error(`the data has version ${head.version}, and this page reads ${VERSION}`);
    const runs = head.runs.map((run): RunData => {
        const at = 4 + n + run.columns_at;
        return {
            // The first run has the names for all.
            head: { ...head.runs[0], ...run },
            column: (name) => numbers(bytes, run.columns[name], at),
            addresses: (name) => addresses(bytes, run.columns[name], at),
        };
    });
    return { ...head, runs };
}
