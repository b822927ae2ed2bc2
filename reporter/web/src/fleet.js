// SPDX-License-Identifier: GPL-2.0-or-later
//
// Opens the page of a fleet: unpacks the data, and lays out the distribution and the tables.

import './page.css';
import { append, h } from './base/dom.js';
import { Fleet } from './fleet/data.js';
import { DistributionView } from './fleet/distribution.js';
import { factsTable, outsideTable, partTables } from './fleet/tables.js';
import { unpack } from './runs/data.js';

/** @param {HTMLElement} place with the headline in it */
async function open(place) {
    const data = await unpack(document.getElementById('data')?.textContent ?? '');
    if (!data.fleet) throw new Error('the data is that of another page');
    const fleet = new Fleet(data.fleet, data.runs[0].column);
    const distribution = new DistributionView(fleet);
    const choose = (/** @type {number} */ row) => {
        distribution.show(row);
        distribution.element.scrollIntoView({ block: 'nearest' });
    };
    append(place, distribution.element, ...partTables(fleet.head, choose), outsideTable(fleet.head), factsTable(fleet.head));
    distribution.show(0);
    document.querySelector('footer')?.prepend(h('p', {}, `Made by ${data.generator}.`));
    document.documentElement.dataset.state = 'ready';
}

const place = document.getElementById('page');
if (place) {
    open(place).catch((error) => {
        append(place, h('p', { role: 'alert', class: 'problem' }, `The rest of this page cannot be shown: ${error}`));
        console.error(error);
    });
}
