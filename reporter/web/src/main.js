// SPDX-License-Identifier: GPL-2.0-or-later
//
// Opens the page: unpacks the data, lays out the bar and the sections, and has them follow the reader's choices.

import './page.css';
import { Address } from './address.js';
import { bar, columnsBar } from './bars.js';
import { append, h } from './base/dom.js';
import { live } from './live.js';
import { Comparison } from './runs/comparison.js';
import { unpack } from './runs/data.js';
import { Page } from './runs/page.js';
import { partsOf } from './runs/parts.js';
import { Run } from './runs/run.js';
import { isServed } from './runs/served.js';
import { sum } from './runs/sum.js';
import { Sections } from './sections.js';
import { comparisonGroups, groups } from './views.js';

/** The first screen is in the page already: a part for each run. @param {Page} page */
function followHeadline(page) {
    const parts = () => [...document.querySelectorAll('#headline > .first')];
    const follow = () => parts().forEach((part, i) => part.toggleAttribute('hidden', page.runs.length > 1 && page.runs[i] !== page.whole));
    page.onChange(follow);
    follow();
}

/** @param {import('./runs/data.js').PageData} data */
function runsOf({ difference, runs, together }) {
    const found = runs.map((run) => (difference ? new Comparison(run, difference) : new Run(partsOf(run))));
    if (together) found.unshift(sum(found, together));
    return found;
}

/** Of a run that goes on: has the page show other data, and what stands first in it. @param {Page} page @param {() => void} before */
const renewing = (page, before) => async (/** @type {string} */ text, /** @type {Element|null} */ headline) => {
    const data = await unpack(text);
    const runs = runsOf(data);
    const here = document.getElementById('headline');
    if (here && headline) here.replaceChildren(...headline.children);
    page.renew(data, runs, before);
};

/** @param {HTMLElement} place with the headline in it */
async function open(place) {
    const data = await unpack(document.getElementById('data')?.textContent ?? '');
    const { difference } = data;
    const page = new Page(data, runsOf(data));
    const sections = new Sections(difference ? comparisonGroups(difference) : groups, page);
    const address = new Address(page, sections);
    address.choose();
    let above = difference ? columnsBar(page) : bar(page);
    above.element.append(address.element);
    followHeadline(page);
    if (sections.links.length) document.querySelector('header')?.append(h('nav', { 'aria-label': 'Sections' }, ...sections.links));
    append(place, above.element, ...sections.elements);
    if (isServed()) {
        const another = () => {
            const next = bar(page);
            next.element.append(address.element);
            above.element.replaceWith(next.element);
            above = next;
            address.quietly();
        };
        place.prepend(live(renewing(page, another)));
    }
    document.querySelector('footer')?.prepend(h('p', {}, `Made by ${data.generator}.`));
    page.onChange(() => {
        sections.remember();
        above.update();
        sections.refresh();
    });
    above.update();
    sections.refresh();
    address.follow();
}

const place = document.getElementById('page');
if (place) {
    open(place).catch((error) => {
        append(place, h('p', { role: 'alert', class: 'problem' }, `The rest of this page cannot be shown: ${error}`));
        console.error(error);
    });
}
