// SPDX-License-Identifier: GPL-2.0-or-later
//
// A served page of a running program: current figures at the top, and an update of the page after new snapshots, unless the
// reader has switched that off.

import { useEffect, useRef, useState } from 'preact/hooks';
import { size } from './base/units.js';
import { listen, pageNow, type ServedProcess, type ServedState } from './runs/served.js';

const describe = ({ pid, state, when, host, device, peak, snapshots }: ServedProcess) =>
    `${pid} ${state}, ${when}: ${size(host + device)}${device ? ` (${size(host)} host, ${size(device)} device)` : ''}, peak ${size(peak)}, ${snapshots} snapshots`;

export function Live({ renew }: { renew: (data: string) => Promise<void> }) {
    const [state, setState] = useState<ServedState | null>(null);
    const [isThere, setThere] = useState(true);
    const [isFollowing, setFollowing] = useState(true);
    const [isHidden, setHidden] = useState(true);
    // The page came with the first announced version, or an older one.
    const at = useRef({ wanted: 0, shown: 0, isBusy: false, isFollowing: true }).current;
    at.isFollowing = isFollowing;

    async function catchUp() {
        if (at.isBusy || !at.isFollowing || at.wanted <= at.shown) return;
        at.isBusy = true;
        try {
            const version = at.wanted;
            await renew((await pageNow()).getElementById('data')?.textContent ?? '');
            at.shown = version;
        } finally {
            at.isBusy = false;
        }
        void catchUp();
    }

    useEffect(() => {
        listen((next) => {
            const isOver = !next.processes.some((process) => process.is_running);
            // A page that was made of a finished run has nothing to follow.
            const isNothing = isOver && !next.problem && (at.wanted || next.version) === next.version;
            setHidden((was) => isNothing && was);
            setState(next);
            if (!at.wanted) at.shown = next.version - (isOver ? 0 : 1);
            at.wanted = next.version;
            void catchUp();
        }, setThere);
    }, []);
    useEffect(() => void catchUp(), [isFollowing]);

    return (
        <div class={isThere ? 'live' : 'live gone'} role="group" aria-label="Running processes" hidden={isHidden} data-version={state?.version}>
            <output id="now" aria-live="off">
                {state?.problem ? (
                    <span class="problem">{state.problem}</span>
                ) : (
                    state?.processes.map((process) => <span class={process.is_running ? 'running' : 'quiet'}>{describe(process)}</span>)
                )}
            </output>
            <label class="choice">
                <input type="checkbox" checked={isFollowing} onChange={(event) => setFollowing(event.currentTarget.checked)} /> Live update
            </label>
        </div>
    );
}
