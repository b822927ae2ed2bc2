// SPDX-License-Identifier: GPL-2.0-or-later
//
// Opens the page: unpacks the data, and draws it as the address asks.

import './page.css';
import { render } from 'preact';
import { Address } from './address.js';
import { App } from './app.js';
import { Bar } from './first/bar.js';
import { type PageData, unpack } from './runs/data.js';
import { Page } from './runs/page.js';
import { heldParts, noOtherParts, partsOf } from './runs/parts.js';
import { Run } from './runs/run.js';
import { sum } from './runs/sum.js';
import { madeBy, start, unpacked } from './start.js';

function runsOf({ difference, runs, together }: PageData): Run[] {
    if (difference) return runs.map((run) => new Run({ ...heldParts(run), ...noOtherParts(), columns: difference }));
    if (!together) return runs.map((run) => new Run(partsOf(run)));
    const each = runs.slice(1).map((run) => new Run(partsOf(run)));
    return [sum(runs[0], each, together), ...each];
}

async function open(place: HTMLElement) {
    const data = await unpacked();
    const page = new Page(data, runsOf(data));
    const address = new Address(page);
    address.choose();
    address.follow();
    const renew = async (text: string) => {
        const next = await unpack(text);
        address.quietly();
        page.renew(next, runsOf(next));
    };
    const bar = document.querySelector('header');
    if (!bar) return;
    // The script draws its own, which follows the moment; that of a comparison stays.
    if (!data.difference) document.getElementById('headline')?.remove();
    render(<Bar page={page} address={address} />, bar.appendChild(document.createElement('div')));
    render(<App page={page} address={address} renew={renew} />, place.appendChild(document.createElement('div')));
    madeBy(data);
}

start(open);
