// SPDX-License-Identifier: GPL-2.0-or-later
//
// Requests to the server that a page came from (docs/contributing.md, "Served pages"); a page that is a file has none, and asks nobody.

export type ServedProcess = {
    pid: number;
    state: string;
    is_running: boolean;
    when: string;
    host: number;
    device: number;
    peak: number;
    snapshots: number;
};
/** The present state. `version` is the page's that can be had. */
export type ServedState = { version: number; processes: ServedProcess[]; problem: string };
export const isServed = () => document.querySelector('meta[name=served]')?.getAttribute('content') === 'yes' && location.protocol === 'http:';

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
