// SPDX-License-Identifier: GPL-2.0-or-later
//
// The page below its bar: the first screen and the tabs.

import { useLayoutEffect, useState } from 'preact/hooks';
import type { Address } from './address.js';
import { Headline } from './first/headline.js';
import { LargestLines } from './first/lines.js';
import { seenAt } from './first/seen.js';
import { Timeline } from './first/timeline.js';
import { Live } from './live.js';
import { Section, Tabs } from './panel.js';
import { type Page, usePage } from './runs/page.js';
import { isServed } from './runs/served.js';
import { above } from './tabs.js';

function FirstScreen({ page }: { page: Page }) {
    const seen = seenAt(page);
    return (
        <>
            <Headline page={page} seen={seen} />
            {page.run.moments.length > 0 && <Timeline page={page} />}
            <LargestLines page={page} seen={seen} />
        </>
    );
}

type AppProps = { page: Page; address: Address; renew: (data: string) => Promise<void> };

export function App({ page, address, renew }: AppProps) {
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
            {page.data.difference ? above(page).map((view) => <Section key={view.id} view={view} page={page} />) : <FirstScreen page={page} />}
            <Tabs page={page} version={settled} />
        </>
    );
}
