// SPDX-License-Identifier: GPL-2.0-or-later
//
// Requests to the server that a page came from (docs/contributing.md, "Served pages"); a page that is a file has none, and asks nobody.

/** Bytes, but for the blocks. */
export type Amount = { host: number; device: number; blocks: number };
/** `children`: how many of them hold anything; `around`: the source around its line. */
export type Branch = Amount & { node: number; name: string; type: string; children: number; around: string };
/** `own`: what ends there. */
export type Children = { rows: Branch[]; n: number; all: Amount; own: Amount; stack: string[] };
export type ServedBlock = { begin: number; address: string; bytes: number; kind: string; owner: string; side: string };
export type ServedBlocks = { rows: ServedBlock[]; n: number; bytes: number; stack: string[] };
export type ServedProcess = {
    pid: number;
    state: string;
    is_running: boolean;
    when: string;
    time: number;
    host: number;
    device: number;
    peak: number;
    snapshots: number;
};
/** The present state. `version` is the page's that can be had. */
export type ServedState = { version: number; processes: ServedProcess[]; problem: string };
/** `at`: a snapshot's id, or "peak-total" and so on. */
export type Place = { process: string; at: string; node: number; first: number };

export const isServed = () => document.querySelector('meta[name=served]')?.getAttribute('content') === 'yes' && location.protocol === 'http:';

async function ask<T>(name: string, place: Place): Promise<T> {
    const parameters = new URLSearchParams(Object.entries(place).map(([key, value]) => [key, String(value)]));
    const response = await fetch(`${name}?${parameters}`);
    if (!response.ok)
        throw new Error(response.status === 404 ? 'This link points to data that is not on this page' : `the server answered ${response.status}`);
    return (await response.json()) as T;
}

export const childrenOf = (place: Place) => ask<Children>('children', place);

/** The blocks in a place, and in all that it called. */
export const blocksOf = (place: Place) => ask<ServedBlocks>('blocks', place);

/** The page as it is now. */
export async function pageNow() {
    const response = await fetch('./');
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    return new DOMParser().parseFromString(await response.text(), 'text/html');
}

export function listen(show: (state: ServedState) => void, connected: (isThere: boolean) => void) {
    const source = new EventSource('events');
    source.onmessage = (event: MessageEvent<string>) => {
        connected(true);
        show(JSON.parse(event.data) as ServedState);
    };
    source.onerror = () => connected(false);
}
