// SPDX-License-Identifier: GPL-2.0-or-later
//
// The tabs of the page and the views in each. A view is an object {id, title, View}, with `isWhole` and `fits` if it wants them:
//
//     id, title   the section's anchor in addresses (letters and hyphens), and its heading
//     View        a component ({page}) => JSX. It is made when its tab is opened first, drawn again after each change of the page
//                 while its tab is open, and made anew (by its key) for another run, so it may keep what it computed of page.run
//     isWhole     it shows page.whole, whatever the filter leaves
//     fits(run)   false where a run has nothing to show in it; a tab without a view that fits is not there
//
// A setting that an address keeps comes from useKept('order', 'top-down') (charts/section.tsx). Of the page it calls what
// runs/page.ts offers, and registers nowhere.

import type { ComponentType } from 'preact';
import type { Page } from './runs/page.js';
import type { Run } from './runs/run.js';
import { About } from './views/about.js';
import { SystemMemory } from './views/balance.js';
import { Blocks } from './views/blocks.js';
import { CallersCallees } from './views/callers_callees.js';
import { Calls } from './views/calls.js';
import { DeviceMap } from './views/device.js';
import { Lines } from './views/lines.js';
import { BlocksOverTime } from './views/lives.js';
import { Machine } from './views/machine.js';
import { Mapped } from './views/mapped.js';
import { OutOfMemory } from './views/oom.js';
import { Others } from './views/others.js';
import { Owners } from './views/owners.js';
import { ready, tablesOf } from './views/ready.js';
import { Snapshots } from './views/snapshots.js';

export type View = { id: string; title: string; isWhole?: boolean; fits?: (run: Run) => boolean; View: ComponentType<{ page: Page }> };
export type Tab = { id: string; title: string; views: View[] };

/** Those of a report of runs. */
const TABS: Tab[] = [
    { id: 'by-line', title: 'Lines', views: [Lines, CallersCallees, ready('temporaries', 'Temporaries')] },
    { id: 'flame-graph', title: 'Flame graph', views: [Calls] },
    { id: 'allocations', title: 'Allocations', views: [BlocksOverTime, Blocks, DeviceMap, ready('fragmentation', 'Fragmentation over time')] },
    { id: 'by-owner', title: 'Owners', views: [Owners, Mapped, ready('held-twice', 'Held twice')] },
    { id: 'leaking', title: 'Leaks', views: [ready('leaks', 'Still allocated at exit')] },
    { id: 'failures', title: 'Out of memory', views: [OutOfMemory] },
    { id: 'system', title: 'System', views: [SystemMemory, Machine, Others] },
    {
        id: 'run',
        title: 'Run',
        views: [About, Snapshots, ready('events', 'Regions and marks'), ready('start-up', 'Start-up cost'), ready('manifest', 'Manifest')],
    },
];

/** Those of a comparison: each way to tell memory apart has a view, which its table's caption names. */
function ofComparison({ whole }: Page): Tab[] {
    const ids = [...new Set(whole.head.tables.map(({ view }) => view))].filter((id) => id.startsWith('by-'));
    return [
        { id: 'changes-by', title: 'Changes', views: ids.map((id) => ready(id, tablesOf(whole, id)[0].caption.split(':')[0])) },
        { id: 'flame-graph', title: 'Flame graph', views: [Calls] },
        { id: 'run', title: 'Runs', views: [ready('sides', 'Compared runs')] },
    ];
}

/** Views above the tabs. */
export const above = (page: Page): View[] => (page.data.difference ? [ready('changes', 'Changes')] : []);

export const runOf = (page: Page, view: View) => (view.isWhole ? page.whole : page.run);
export const fits = (page: Page, view: View) => view.fits?.(runOf(page, view)) ?? true;

/** Those that have something to show. */
export const tabsOf = (page: Page) =>
    (page.data.difference ? ofComparison(page) : TABS).filter(({ views }) => views.some((view) => fits(page, view)));

/** The moment of the failed allocation that ended the run; -1 without one. */
export const failureOf = ({ head }: Run) => head.reports?.find(({ name }) => name === 'the failure')?.moment ?? -1;

/** The open tab: another run may not have the one that was chosen. A run that died of a failed allocation opens with that. */
export function openTab(page: Page): string {
    const tabs = tabsOf(page);
    const first = failureOf(page.whole) < 0 ? '' : 'failures';
    return (tabs.find(({ id }) => id === page.tab) ?? tabs.find(({ id }) => id === first) ?? tabs[0])?.id ?? '';
}
