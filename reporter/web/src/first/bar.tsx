// SPDX-License-Identifier: GPL-2.0-or-later
//
// The page's bar: which process or columns are shown, the search, and the menu; and the keys.

import { useEffect, useRef, useState } from 'preact/hooks';
import type { Address } from '../address.js';
import { announceTheme } from '../base/theme.js';
import { zoomBy } from '../charts/plot.js';
import { Choice, Terms } from '../charts/section.js';
import { Chip } from '../charts/chip.js';
import { copy } from '../charts/csv.js';
import { expressionOf } from '../runs/filter.js';
import { type Page, usePage } from '../runs/page.js';
import { tabsOf } from '../tabs.js';

type Option = [value: string, text: string];

function Processes({ page }: { page: Page }) {
    const options = page.runs.map(({ head }, i): Option => [String(i), i ? `${head.pid} ${head.command}` : head.command]);
    return (
        <Choice
            label="Process"
            options={options}
            value={String(page.runs.indexOf(page.whole))}
            onChange={(value) => page.show(page.runs[Number(value)])}
        />
    );
}

/** Expressions for stacks to include and exclude. */
function Filters({ page }: { page: Page }) {
    const [problem, say] = useState('');
    const { filter, whole } = page;
    const field = (which: 'only' | 'except') => (
        <label class="choice">
            {which}{' '}
            <input
                type="search"
                class="sift"
                placeholder="regular expression"
                aria-label={`Show ${which === 'only' ? 'only' : 'all except'} stacks with this function, file, owner or thread`}
                title="of functions, files, owners and threads; function:, file:, owner: or thread: before it looks there alone"
                spellcheck={false}
                value={filter[which]}
                aria-invalid={problem ? 'true' : undefined}
                onChange={(event) => {
                    const { value } = event.currentTarget;
                    const found = expressionOf(value);
                    say(found.problem);
                    if (found.pattern || !value) page.sift({ ...page.filter, [which]: value });
                }}
            />
        </label>
    );
    return (
        <fieldset class="sifting">
            <legend>Filter</legend>
            {field('only')}
            {field('except')}
            {whole.head.filter && (
                <label class="choice">
                    <input
                        type="checkbox"
                        checked={filter.isGiven}
                        onChange={(event) => page.sift({ ...page.filter, isGiven: event.currentTarget.checked })}
                    />{' '}
                    {whole.head.filter}
                </label>
            )}
            <span role="status" class="problem">
                {problem}
            </span>
        </fieldset>
    );
}

const THEMES: Option[] = [
    ['', 'System'],
    ['light', 'Light'],
    ['dark', 'Dark'],
];

const KEYS: [string, string][] = [
    ['/', 'search in the flame graph'],
    ['← →', 'previous or next moment'],
    ['Shift ← →', 'another moment to compare with'],
    ['+ −', 'zoom the timeline'],
    ['1 to 8', 'tabs'],
    ['Esc', 'stop comparing, close'],
    ['?', 'this help'],
];

function Menu({ page, address }: { page: Page; address: Address }) {
    const [said, say] = useState('');
    const [theme, setTheme] = useState(document.documentElement.dataset.theme ?? '');
    const menu = useRef<HTMLDetailsElement>(null);
    useEffect(() => {
        const close = (event: Event) => {
            if (menu.current && event.target instanceof Node && !menu.current.contains(event.target)) menu.current.open = false;
        };
        document.addEventListener('pointerdown', close);
        return () => document.removeEventListener('pointerdown', close);
    }, []);
    const link = async () => {
        await copy(address.current);
        say('copied');
        setTimeout(() => say(''), 2000);
    };
    return (
        <details class="menu" ref={menu}>
            <summary aria-label="Menu" title="Menu">
                <span aria-hidden="true">⋯</span>
            </summary>
            <div class="sheet">
                <p class="buttons">
                    <button type="button" id="copy-link" title="To what is shown now" onClick={() => void link()}>
                        Copy link
                    </button>
                    <span role="status" class="quiet">
                        {said}
                    </span>
                </p>
                <Choice
                    label="Theme"
                    options={THEMES}
                    value={theme}
                    onChange={(value) => {
                        document.documentElement.dataset.theme = value;
                        setTheme(value);
                        announceTheme();
                    }}
                />
                {!page.data.difference && <Filters page={page} />}
                <Help />
            </div>
        </details>
    );
}

const Help = () => (
    <details class="help">
        <summary>Keys</summary>
        <Terms rows={KEYS} Name="kbd" />
    </details>
);

/** Finds in the flame graph, which dims the rest. */
const Search = ({ page }: { page: Page }) => (
    <input
        type="search"
        id="search"
        placeholder="/ Search"
        aria-label="Search functions and lines in the flame graph"
        aria-keyshortcuts="/"
        spellcheck={false}
        value={page.settings.get('calls.search') ?? ''}
        onInput={(event) => {
            const { value } = event.currentTarget;
            if (value) page.open('flame-graph');
            page.set('calls.search', value || null);
        }}
    />
);

const isTyping = (target: EventTarget | null) => target instanceof Element && !!target.closest('input, select, textarea, [contenteditable]');

/** Keys that act wherever the focus is, but in a field. */
function useKeys(page: Page) {
    useEffect(() => {
        const press = (event: KeyboardEvent) => {
            if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || isTyping(event.target)) return;
            const { key, shiftKey } = event;
            const tab = /^[1-8]$/.test(key) ? tabsOf(page)[Number(key) - 1] : undefined;
            const menu = document.querySelector<HTMLDetailsElement>('.menu');
            const by = key === 'ArrowLeft' ? -1 : key === 'ArrowRight' ? 1 : 0;
            if (key === '/') document.getElementById('search')?.focus();
            else if (tab) page.open(tab.id);
            else if (key === '+' || key === '=') zoomBy(page, 0.6);
            else if (key === '-') zoomBy(page, 1.6);
            else if (key === '?' && menu) {
                menu.open = true;
                const help = menu.querySelector<HTMLDetailsElement>('.help');
                if (help) help.open = true;
            } else if (key === 'Escape') {
                if (menu?.open) menu.open = false;
                else page.compare(null);
            } else if (by && !page.data.difference && !(event.target as Element).closest('[role=tablist], table, canvas, svg')) {
                if (shiftKey) page.compare(Math.max(0, Math.min(page.run.moments.length - 1, (page.against ?? page.chosen) + by)));
                else page.select(page.chosen + by);
            } else return;
            event.preventDefault();
        };
        window.addEventListener('keydown', press);
        return () => window.removeEventListener('keydown', press);
    }, [page]);
}

export function Bar({ page, address }: { page: Page; address: Address }) {
    usePage(page);
    useKeys(page);
    const { filter } = page;
    const parts = [filter.only && `only ${filter.only}`, filter.except && `except ${filter.except}`, filter.isGiven && page.whole.head.filter].filter(
        (part) => part,
    );
    return (
        <div class="bar" role="toolbar" aria-label="What the page shows">
            {page.runs.length > 1 && <Processes page={page} />}
            {page.isPart && (
                <span class="chips" role="status">
                    <button
                        type="button"
                        class="chip"
                        aria-label="Reset the filter"
                        onClick={() => page.sift({ only: '', except: '', isGiven: false })}
                    >
                        {parts.join(', ')} <span aria-hidden="true">✕</span>
                    </button>
                </span>
            )}
            {page.only && (
                <span>
                    <a href="#calls">flame graph</a>: <Chip page={page} />
                </span>
            )}
            <span class="right">
                <Search page={page} />
                <Menu page={page} address={address} />
            </span>
        </div>
    );
}
