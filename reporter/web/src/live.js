// SPDX-License-Identifier: GPL-2.0-or-later
//
// A served page of a running program: current figures at the top, and an update of the page after new snapshots, unless the
// reader has switched that off.

import { h, replace } from './base/dom.js';
import { size } from './base/units.js';
import { listen, pageNow } from './runs/served.js';

/** @typedef {import('./runs/served.js').ServedState} ServedState */
/** @typedef {import('./runs/served.js').ServedProcess} ServedProcess */

/** @param {ServedProcess} process */
const describe = ({ pid, state, when, host, device, peak, snapshots }) =>
    `${pid} ${state}, ${when}: ${size(host + device)}${device ? ` (${size(host)} host, ${size(device)} device)` : ''}, peak ${size(peak)}, ${snapshots} snapshots`;

/** @param {(text: string, headline: Element|null) => Promise<void>} renew shows other data @returns {HTMLElement} */
export function live(renew) {
    const text = h('output', { id: 'now', 'aria-live': 'off' });
    const follow = h('input', { type: 'checkbox', checked: true, onchange: () => void catchUp() });
    const element = h('div', { class: 'live', role: 'group', 'aria-label': 'Running processes', hidden: true }, text, h('label', { class: 'choice' }, follow, ' Live update'));
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
            replace(text, ...(state.problem ? [h('span', { class: 'problem' }, state.problem)] : state.processes.map((process) => h('span', { class: process.is_running ? 'running' : 'quiet' }, describe(process)))));
            // A page that was made of a finished run has nothing to follow.
            element.hidden = isOver && !state.problem && (wanted || state.version) === state.version && element.hidden;
            // The page came with the first announced version, or an older one.
            if (!wanted) shown = state.version - (isOver ? 0 : 1);
            wanted = state.version;
            void catchUp();
        },
        (isThere) => element.classList.toggle('gone', !isThere),
    );
    return element;
}
