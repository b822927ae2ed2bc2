// SPDX-License-Identifier: GPL-2.0-or-later
//
// Requests to the server that a page came from (docs/contributing.md, "Served pages"); a page that is a file has none, and asks nobody.

/** @typedef {{host: number, device: number, blocks: number}} Amount bytes, but for the blocks */
/** @typedef {Amount & {node: number, name: string, type: string, children: number, around: string}} Branch `children`: how many of them hold anything; `around`: the source around its line */
/** @typedef {{rows: Branch[], n: number, all: Amount, own: Amount, stack: string[]}} Children `own`: what ends there */
/** @typedef {{begin: number, address: string, bytes: number, kind: string, owner: string, side: string}} ServedBlock */
/** @typedef {{rows: ServedBlock[], n: number, bytes: number, stack: string[]}} ServedBlocks */
/** @typedef {{pid: number, state: string, is_running: boolean, when: string, time: number, host: number, device: number, peak: number, snapshots: number}} ServedProcess */
/** The present state. `version` is the page's that can be had. @typedef {{version: number, processes: ServedProcess[], problem: string}} ServedState */
/** @typedef {{process: string, at: string, node: number, first: number}} Place `at`: a snapshot's id, or "peak-total" and so on */

export const isServed = () => document.querySelector('meta[name=served]')?.getAttribute('content') === 'yes' && location.protocol === 'http:';

/** @param {string} name @param {Place} place */
async function ask(name, place) {
    const parameters = new URLSearchParams(Object.entries(place).map(([key, value]) => [key, String(value)]));
    const response = await fetch(`${name}?${parameters}`);
    if (!response.ok) throw new Error(response.status === 404 ? 'This link points to data that is not on this page' : `the server answered ${response.status}`);
    return response.json();
}

/** @param {Place} place @returns {Promise<Children>} */
export const childrenOf = (place) => ask('children', place);

/** The blocks in a place, and in all that it called. @param {Place} place @returns {Promise<ServedBlocks>} */
export const blocksOf = (place) => ask('blocks', place);

/** The page as it is now. @returns {Promise<Document>} */
export async function pageNow() {
    const response = await fetch('./');
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    return new DOMParser().parseFromString(await response.text(), 'text/html');
}

/** @param {(state: ServedState) => void} show @param {(isThere: boolean) => void} connected */
export function listen(show, connected) {
    const source = new EventSource('events');
    source.onmessage = (event) => {
        connected(true);
        show(JSON.parse(event.data));
    };
    source.onerror = () => connected(false);
}
