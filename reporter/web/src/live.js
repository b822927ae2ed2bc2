// SPDX-License-Identifier: GPL-2.0-or-later
//
// A served page of a run that goes on: figures of this moment above all else, and the page itself brought up to date when there
// are new snapshots, unless the reader wants to look around in peace.

import { h, replace } from './base/dom.js';
import { size } from './base/units.js';
import { listen, pageNow } from './runs/served.js';

/** @typedef {import('./runs/served.js').ServedState} ServedState */
/** @typedef {import('./runs/served.js').ServedProcess} ServedProcess */

/** @param {ServedProcess} process */
const told = ({ pid, state, when, host, device, peak, snapshots }) =>
    `${pid} ${state}, ${when}: ${size(host + device)}${device ? ` (${size(host)} host, ${size(device)} device)` : ''}, peak ${size(peak)}, ${snapshots} snapshots`;

/** @param {(text: string, headline: Element|null) => Promise<void>} renew shows other data @returns {HTMLElement} */
export function live(renew) {
    const text = h('output', { id: 'now', 'aria-live': 'off' });
    const follow = h('input', { type: 'checkbox', checked: true, onchange: () => void catchUp() });
    const element = h('div', { class: 'live', role: 'group', 'aria-label': 'The run as it goes on', hidden: true }, text, h('label', { class: 'choice' }, follow, ' bring this page up to date as it goes on'));
    let wanted = 0;
    let shown = 0;
    let isBusy = false;

    async function catchUp() {
        if (isBusy || !follow.checked || wanted <= shown) return;
        isBusy = true;
        try {
            const version = wanted;
            const page = await pageNow();
            await renew(page.getElementById('data')?.textContent ?? '', page.getElementById('headline'));
            shown = version;
        } finally {
            isBusy = false;
        }
        void catchUp();
    }

    listen(
        (/** @type {ServedState} */ state) => {
            const isOver = !state.processes.some((process) => process.is_running);
            element.dataset.version = String(state.version);
            replace(text, ...(state.problem ? [h('span', { class: 'problem' }, state.problem)] : state.processes.map((process) => h('span', { class: process.is_running ? 'running' : 'quiet' }, told(process)))));
            // A page that was made of a finished run has nothing to follow.
            element.hidden = isOver && !state.problem && (wanted || state.version) === state.version && element.hidden;
            // What came with the page is the version that was told first, or older.
            if (!wanted) shown = state.version - (isOver ? 0 : 1);
            wanted = state.version;
            void catchUp();
        },
        (isThere) => element.classList.toggle('gone', !isThere),
    );
    return element;
}
