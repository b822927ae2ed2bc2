// SPDX-License-Identifier: GPL-2.0-or-later
//
// The page: the bar, what is above the tabs, and the tabs.

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Address } from './address.js';
import { bar, columnsBar } from './bars.js';
import { copy } from './charts/csv.js';
import { Live } from './live.js';
import { Section, Tabs } from './panel.js';
import { type Page, usePage } from './runs/page.js';
import { isServed } from './runs/served.js';
import { above } from './tabs.js';
import { Timeline } from './views/timeline.js';

function CopyLink({ address }: { address: Address }) {
    const [said, say] = useState('');
    const go = async () => {
        await copy(address.current);
        say('copied');
        setTimeout(() => say(''), 2000);
    };
    return (
        <span class="buttons">
            <button type="button" id="copy-link" title="To what is shown now" onClick={() => void go()}>
                Copy link
            </button>
            <span role="status" class="quiet">
                {said}
            </span>
        </span>
    );
}

function Bar({ page, address }: { page: Page; address: Address }) {
    const place = useRef<HTMLDivElement>(null);
    const made = useRef<{ element: HTMLElement; update: () => void } | null>(null);
    useLayoutEffect(() => {
        made.current = page.data.difference ? columnsBar(page) : bar(page);
        place.current?.replaceChildren(made.current.element);
    }, [page.data]);
    useLayoutEffect(() => made.current?.update());
    return (
        <div>
            <div ref={place} />
            <CopyLink address={address} />
        </div>
    );
}

export function App({ page, address, renew }: { page: Page; address: Address; renew: (data: string) => Promise<void> }) {
    const version = usePage(page);
    // The panel follows in a task of its own, so that a click is answered at once.
    const [settled, settle] = useState(-1);
    useLayoutEffect(() => {
        document.documentElement.dataset.state = 'busy';
        const timer = setTimeout(() => settle(version));
        return () => clearTimeout(timer);
    }, [version]);
    useLayoutEffect(() => {
        if (settled !== version) return;
        document.documentElement.dataset.state = 'ready';
        address.arrived();
    }, [settled, version]);
    return (
        <>
            {isServed() && <Live renew={renew} />}
            <Bar page={page} address={address} />
            {[...above(page), ...(page.data.difference ? [] : [Timeline])].map((view) => (
                <Section key={view.id} view={view} page={page} />
            ))}
            <Tabs page={page} version={settled} />
        </>
    );
}
