// SPDX-License-Identifier: GPL-2.0-or-later
//
// Opens the page: unpacks the data, lays out the bar and the sections, and has them follow the reader's choices.

import './page.css';
import { bar, columnsBar } from './bars.js';
import { h, replace } from './base/dom.js';
import { Comparison } from './runs/comparison.js';
import { unpack } from './runs/data.js';
import { Page } from './runs/page.js';
import { partsOf } from './runs/parts.js';
import { Run } from './runs/run.js';
import { sum } from './runs/sum.js';
import { Sections } from './sections.js';
import { comparisonViews, views } from './views.js';

/** @param {HTMLElement} place */
async function open(place) {
    const data = await unpack(document.getElementById('data')?.textContent ?? '');
    const { difference } = data;
    const runs = data.runs.map((run) => (difference ? new Comparison(run, difference) : new Run(partsOf(run))));
    if (data.together) runs.unshift(sum(runs, data.together));
    const page = new Page(data, runs);
    const sections = new Sections(difference ? comparisonViews(difference) : views, page);
    const above = difference ? columnsBar(page) : bar(page);
    const licences = document.getElementById('licences');
    replace(
        place,
        h('a', { class: 'skip', href: sections.links[0].hash }, 'Skip to the report'),
        h('header', {}, h('h1', {}, data.title), h('nav', { 'aria-label': 'Sections' }, ...sections.links)),
        above.element,
        h('main', {}, ...sections.elements),
        h('footer', {}, `Made by ${data.generator}. `, licences),
    );
    if (licences) licences.hidden = false;
    page.onChange(() => {
        sections.remember();
        above.update();
        sections.refresh();
    });
    above.update();
    sections.refresh();
    if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}

const place = document.getElementById('page');
if (place) {
    open(place).catch((error) => {
        replace(place, h('p', { role: 'alert', class: 'problem' }, `This page cannot be shown: ${error}`));
        console.error(error);
    });
}
