// SPDX-License-Identifier: GPL-2.0-or-later
//
// The tabs with their panels. A panel is made when it is opened first, and stays as it is while another one is open.

import { Component } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { ViewContext } from './charts/section.js';
import type { Page } from './runs/page.js';
import { fits, openTab, runOf, type Tab, tabsOf, type View } from './tabs.js';

export function Section({ view, page }: { view: View; page: Page }) {
    if (!fits(page, view)) return null;
    return (
        <section id={view.id} aria-labelledby={`${view.id}-title`}>
            <h2 id={`${view.id}-title`}>{view.title}</h2>
            {view.isWhole && page.isPart && <p class="quiet whole">Not filtered</p>}
            <ViewContext.Provider value={{ page, id: view.id, title: view.title }}>
                <view.View key={runOf(page, view).number} page={page} />
            </ViewContext.Provider>
        </section>
    );
}

type PanelProps = { tab: Tab; page: Page; isOpen: boolean; version: number };

class Panel extends Component<PanelProps> {
    #wasOpen = false;

    shouldComponentUpdate(next: PanelProps) {
        return next.isOpen !== this.props.isOpen || (next.isOpen && next.version !== this.props.version);
    }

    render({ tab, page, isOpen }: PanelProps) {
        this.#wasOpen ||= isOpen;
        return (
            <div id={`panel-${tab.id}`} class="panel" role="tabpanel" aria-labelledby={`tab-${tab.id}`} tabIndex={0} hidden={!isOpen}>
                {this.#wasOpen && tab.views.map((view) => <Section key={view.id} view={view} page={page} />)}
            </div>
        );
    }
}

const STEPS: Record<string, (at: number, n: number) => number> = {
    ArrowLeft: (at, n) => (at + n - 1) % n,
    ArrowRight: (at, n) => (at + 1) % n,
    Home: () => 0,
    End: (_at, n) => n - 1,
};

/** `version`: changes when the panels are to be drawn again. */
export function Tabs({ page, version }: { page: Page; version: number }) {
    const list = useRef<HTMLDivElement>(null);
    const tabs = tabsOf(page);
    const open = openTab(page);
    const move = (event: KeyboardEvent) => {
        const step = STEPS[event.key];
        if (!step || event.ctrlKey || event.altKey || event.metaKey) return;
        event.preventDefault();
        const from = tabs.findIndex(({ id }) => (event.target as Element).id === `tab-${id}`);
        const at = step(from, tabs.length);
        page.open(tabs[at].id);
        (list.current?.children[at] as HTMLElement).focus();
    };
    useEffect(() => {
        const [strip, tab] = [list.current, list.current?.querySelector<HTMLElement>('[aria-selected=true]')];
        if (strip && tab) strip.scrollLeft = tab.offsetLeft - strip.offsetLeft - (strip.clientWidth - tab.clientWidth) / 2;
    }, [open]);
    return (
        <>
            <div class="tabs" role="tablist" aria-label="Views" ref={list} onKeyDown={move}>
                {tabs.map(({ id, title }, i) => (
                    <button
                        key={id}
                        type="button"
                        role="tab"
                        id={`tab-${id}`}
                        aria-controls={`panel-${id}`}
                        aria-selected={id === open}
                        aria-keyshortcuts={String(i + 1)}
                        tabIndex={id === open ? 0 : -1}
                        onClick={() => page.open(id)}
                    >
                        {title}
                    </button>
                ))}
            </div>
            {tabs.map((tab) => (
                <Panel key={tab.id} tab={tab} page={page} isOpen={tab.id === open} version={version} />
            ))}
        </>
    );
}
