// SPDX-License-Identifier: GPL-2.0-or-later
//
// The bar of a comparison: which column is looked at, and which one it is compared with.

import { themes } from './bar.js';
import { comparisonOf } from './comparison.js';
import { choice, h } from './dom.js';

/** @param {import('./page.js').Page} page */
export function columnsBar(page) {
    const { columns } = comparisonOf(page).difference;
    const options = columns.map(({ label }, i) => /** @type {[string, string]} */ ([String(i), label]));
    const shown = choice('Show', options, String(page.moment), (value) => page.select(Number(value)));
    const base = choice('compared with', [['', 'nothing'], ...options], String(page.other ?? ''), (value) => page.compare(value === '' ? null : Number(value)));
    page.onChange(() => {
        for (const [label, value] of /** @type {[HTMLElement, number|null][]} */ ([
            [shown, page.moment],
            [base, page.other],
        ])) {
            const select = label.querySelector('select');
            if (select) select.value = String(value ?? '');
        }
    });
    return h('div', { class: 'bar', role: 'toolbar', 'aria-label': 'What the page shows' }, shown, base, themes());
}
