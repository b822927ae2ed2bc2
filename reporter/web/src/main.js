// SPDX-License-Identifier: GPL-2.0-or-later
//
// Opens the page: unpacks the data, lays out the bar and the sections, and has them follow the reader's choices.

import './page.css';
import { bar, columnsBar } from './bars.js';
import { append, h } from './base/dom.js';
import { Comparison } from './runs/comparison.js';
import { unpack } from './runs/data.js';
import { Page } from './runs/page.js';
import { partsOf } from './runs/parts.js';
import { Run } from './runs/run.js';
import { sum } from './runs/sum.js';
import { Sections } from './sections.js';
import { comparisonGroups, groups } from './views.js';

/** The first screen is in the page already: a part for each run. @param {Page} page */
function followHeadline(page) {
    const parts = [...document.querySelectorAll('#headline > .first')];
    page.onChange(() => parts.forEach((part, i) => part.toggleAttribute('hidden', parts.length > 1 && page.runs[i] !== page.run)));
}

/** @param {HTMLElement} place with the headline in it */
async function open(place) {
    const data = await unpack(document.getElementById('data')?.textContent ?? '');
    const { difference } = data;
    const runs = data.runs.map((run) => (difference ? new Comparison(run, difference) : new Run(partsOf(run))));
    if (data.together) runs.unshift(sum(runs, data.together));
    const page = new Page(data, runs);
    const sections = new Sections(difference ? comparisonGroups(difference) : groups, page);
    const above = difference ? columnsBar(page) : bar(page);
    followHeadline(page);
    if (sections.links.length) document.querySelector('header')?.append(h('nav', { 'aria-label': 'Sections' }, ...sections.links));
    append(place, above.element, ...sections.elements);
    document.querySelector('footer')?.prepend(h('p', {}, `Made by ${data.generator}.`));
    page.onChange(() => {
        sections.remember();
        above.update();
        sections.refresh();
    });
    above.update();
    sections.refresh();
    sections.goTo(location.hash);
}

const place = document.getElementById('page');
if (place) {
    open(place).catch((error) => {
        append(place, h('p', { role: 'alert', class: 'problem' }, `The rest of this page cannot be shown: ${error}`));
        console.error(error);
    });
}
