// SPDX-License-Identifier: GPL-2.0-or-later
//
// usage: node drive.mjs NODE_MODULES CHROMIUM
// Opens pages in Chromium, one browser for all, each page in a context of its own. A line of JSON on standard input is a visit:
// {page, viewport, scheme, before, tabs, throttle, fragment, steps: [[name, …arguments]]}; `page` is a path, or an address
// below which it may ask for more, `fragment` follows its "#"; `before` is a script that runs before the page's own; `tabs`:
// "all" are opened once at first, by a script, since a click takes several frames; or "needed", when a step is on an element in
// them, as a reader does; `throttle` is how many
// times slower the processor is.
// A line of JSON on standard output is its result: what each step returned, and all that the page should never do (errors,
// warnings, requests, dialogs), or the error that ended the visit. The driver ends with its standard input.

import { appendFileSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [modules, executablePath] = process.argv.slice(2);
const { chromium } = createRequire(`${modules}/`)('playwright-core');

// The popups of the address bar, which nobody sees, are pages in a process of their own for each window. The last list of features
// counts: the others are those that Playwright (1.60) switches off. Its other flags keep Chromium from the network.
const NO_FEATURES = [
    ...['WebUIOmniboxAimPopup', 'WebUIOmniboxPopup'],
    ...['AutoDeElevate', 'AvoidUnnecessaryBeforeUnloadCheckSync', 'BoundaryEventDispatchTracksNodeRemoval', 'DestroyProfileOnBrowserClose'],
    ...['DialMediaRouteProvider', 'GlobalMediaControls', 'HttpsUpgrades', 'LensOverlay', 'MediaRouter', 'OptimizationHints', 'PaintHolding'],
    ...['RenderDocument', 'ThirdPartyStoragePartitioning', 'Translate'],
];
const FLAGS = ['--no-sandbox', '--disable-gpu', `--disable-features=${NO_FEATURES}`];

let browser;

/** A context with one page, and what that page should never do. */
async function open(plan) {
    if (!browser?.isConnected()) browser = await chromium.launch({ executablePath, args: FLAGS });
    const context = await browser.newContext({ viewport: plan.viewport, colorScheme: plan.scheme, acceptDownloads: true });
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const page = await context.newPage();
    const trouble = [];
    page.on('console', (message) => {
        if (message.type() === 'error' || message.type() === 'warning') trouble.push(`${message.type()}: ${message.text()}`);
    });
    page.on('pageerror', (error) => trouble.push(`exception: ${error.message}`));
    page.on('dialog', (dialog) => {
        trouble.push(`dialog: ${dialog.message()}`);
        dialog.dismiss().catch(() => {});
    });
    const isServed = plan.page.startsWith('http:');
    const url = isServed ? plan.page : pathToFileURL(plan.page).href;
    page.on('request', (request) => {
        const [asked] = request.url().split('#');
        if (asked !== url && !(isServed && asked.startsWith(url)) && !asked.startsWith('data:') && !asked.startsWith('blob:'))
            trouble.push(`request: ${asked}`);
    });
    await page.addInitScript(() => {
        window.violations = [];
        document.addEventListener('securitypolicyviolation', (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
    });
    if (plan.before) await page.addInitScript(plan.before);
    return { context, page, trouble, url: plan.fragment ? `${url}#${plan.fragment}` : url };
}

/** Opens the next tab that nothing was drawn in, if there is one: a tab is made when it is first opened. */
async function openTab() {
    window.tried ??= new Set();
    const tab = [...document.querySelectorAll('[role=tab]')].find(
        (e) => !window.tried.has(e.id) && !document.getElementById(e.getAttribute('aria-controls'))?.hasChildNodes(),
    );
    if (!tab) return false;
    window.tried.add(tab.id);
    tab.click();
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    return true;
}

/** Names of steps whose first argument is no selector. */
const ANYWHERE = ['append', 'until', 'back', 'forward', 'fragment', 'counted', 'axe', 'keys', 'media', 'pdf', 'focused', 'screenshot'];

const stepsOf = (context, page) => {
    // The page has done what was asked of it. A <details> tells that it was opened in a task of its own: also after those.
    const ready = async () => {
        await page.waitForSelector('html[data-state=ready]', { timeout: 60000 });
        await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
    };
    // Pictures follow the pointer in the next frame.
    const drawn = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))));
    const steps = {
        text: (selector) => page.locator(selector).first().innerText(),
        texts: (selector) => page.locator(selector).allInnerTexts(),
        attributes: (selector, name) => page.locator(selector).evaluateAll((found, name) => found.map((e) => e.getAttribute(name)), name),
        count: (selector) => page.locator(selector).count(),
        rows: (selector) =>
            page
                .locator(`${selector} tr`)
                .evaluateAll((rows) =>
                    rows.map((row) =>
                        [...row.children].map((cell) => (cell.dataset.value === undefined ? cell.innerText : Number(cell.dataset.value))),
                    ),
                ),
        click: async (selector, options = {}) => (await page.locator(selector).first().click(options), await ready()),
        press: async (selector, key) => (await page.locator(selector).first().press(key), await ready()),
        choose: async (selector, label) => (await page.locator(selector).first().selectOption(label), await ready()),
        hover: async (selector, x, y) => {
            await page.locator(selector).first().scrollIntoViewIfNeeded();
            const box = await page.locator(selector).first().boundingBox();
            await page.mouse.move(box.x + x * box.width, box.y + y * box.height);
            await drawn();
        },
        pick: async (selector, x, modifiers = []) => {
            const target = page.locator(selector).first();
            await target.scrollIntoViewIfNeeded();
            const box = await target.boundingBox();
            await target.click({ position: { x: x * box.width, y: box.height / 2 }, modifiers });
            await ready();
        },
        drag: async (selector, from, to) => {
            const target = page.locator(selector).first();
            await target.scrollIntoViewIfNeeded();
            const box = await target.boundingBox();
            await page.mouse.move(box.x + from * box.width, box.y + box.height / 2);
            await page.mouse.down();
            await page.mouse.move(box.x + to * box.width, box.y + box.height / 2, { steps: 5 });
            await page.mouse.up();
            await ready();
        },
        save: async (selector) => {
            const [download] = await Promise.all([page.waitForEvent('download'), page.locator(selector).first().click()]);
            return { name: download.suggestedFilename(), text: readFileSync(await download.path(), 'utf8') };
        },
        // Milliseconds from a click to the next frame on the screen, as the browser has measured it (in steps of 8).
        delay: async (selector, options = {}) => {
            await page.evaluate(() => {
                window.delays = [];
                window.observer ??= new PerformanceObserver((list) => window.delays.push(...list.getEntries().map((entry) => entry.duration)));
                window.observer.observe({ type: 'event', durationThreshold: 16 });
            });
            await page.locator(selector).first().click(options);
            await ready();
            await page.waitForTimeout(300);
            return page.evaluate('Math.max(0, ...window.delays)');
        },
        // Text at the end of a file, as a recorder writes; then milliseconds until an expression is true.
        append: (path, text) => appendFileSync(path, text),
        until: async (expression, most) => {
            const begin = Date.now();
            while (!(await page.evaluate(expression).catch(() => false))) {
                if (Date.now() - begin > most) throw new Error(`not so after ${most} ms: ${expression}`);
                await page.waitForTimeout(20);
            }
            const took = Date.now() - begin;
            await ready();
            return took;
        },
        evaluate: (expression) => page.evaluate(expression),
        back: async () => (await page.goBack(), await ready()),
        forward: async () => (await page.goForward(), await ready()),
        fragment: () => page.evaluate('location.hash.slice(1)'),
        // What the page still holds on to (counted.js), and how many listeners and nodes the browser itself knows of.
        counted: async () => {
            const browserSide = await context.newCDPSession(page);
            await browserSide.send('Performance.enable');
            // The browser itself remembers what the pointer was last over.
            await page.mouse.move(1, 1);
            await page.mouse.move(2, 2);
            await page.waitForTimeout(200);
            for (let i = 0; i < 3; i++) await browserSide.send('HeapProfiler.collectGarbage');
            const { metrics } = await browserSide.send('Performance.getMetrics');
            await browserSide.detach();
            const figures = Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
            return { held: await page.evaluate('window.counted()'), listeners: figures.JSEventListeners, nodes: figures.Nodes };
        },
        // What axe-core, which judges a page by the rules for accessibility, finds wrong with what is on the screen.
        axe: async () => {
            await page.evaluate(readFileSync(`${modules}/axe-core/axe.min.js`, 'utf8'));
            const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
            return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target.join(' ')} ${node.failureSummary}`));
        },
        fill: async (selector, text) => (await page.locator(selector).first().fill(text), await ready()),
        point: async (selector) => (await page.locator(selector).first().hover(), await drawn()),
        keys: async (...keys) => {
            for (const key of keys) await page.keyboard.press(key);
            await ready();
        },
        media: async (media, width, height) => {
            await page.emulateMedia({ media });
            await page.setViewportSize({ width, height });
            await page.evaluate('window.dispatchEvent(new Event("beforeprint"))');
            await page.waitForTimeout(300);
        },
        pdf: (path) => page.pdf({ path, format: 'A4' }).then(() => null),
        focused: () => page.evaluate('document.activeElement.getAttribute("aria-label") || document.activeElement.innerText'),
        screenshot: (path, fullPage = false) => page.screenshot({ path, fullPage }).then(() => null),
    };
    /** Opens the tab that an element is in, if another one is open; of an expression, the first element that it asks for. */
    const reveal = async (name, text) => {
        const selector = name === 'evaluate' ? /querySelector(?:All)?\('([^']+)'\)/.exec(text)?.[1] : text;
        if (!selector) return;
        const found = page.locator(selector).first();
        const opened = await page.evaluate(() => document.querySelector('[role=tab][aria-selected=true]')?.id);
        while (!(await found.count()))
            if (!(await page.evaluate(openTab))) {
                if (opened) await steps.click(`#${opened}`);
                return;
            }
        const tab = await found.evaluate((element) => element.closest('[role=tabpanel][hidden]')?.getAttribute('aria-labelledby'));
        if (tab) await steps.click(`#${tab}`);
    };
    return { ready, steps, reveal };
};

async function visit(plan) {
    const { context, page, trouble, url } = await open(plan);
    try {
        const { ready, steps, reveal } = stepsOf(context, page);
        const begin = Date.now();
        if (plan.throttle > 1) await (await context.newCDPSession(page)).send('Emulation.setCPUThrottlingRate', { rate: plan.throttle });
        await page.goto(url);
        await ready();
        const opened = Date.now() - begin;
        // The clipboard is the browser's, not the context's.
        await page.evaluate(() => navigator.clipboard.writeText(''));
        if (plan.tabs === 'all') {
            while (await page.evaluate(openTab));
            if (await page.locator('[role=tab]').count()) await steps.click('[role=tab]');
        }
        const results = [];
        for (const [name, ...parameters] of plan.steps) {
            if (plan.tabs !== 'none' && !ANYWHERE.includes(name)) await reveal(name, parameters[0]);
            results.push((await steps[name](...parameters)) ?? null);
        }
        trouble.push(...(await page.evaluate('window.violations')).map((violation) => `violation: ${violation}`));
        return { results, trouble, opened };
    } finally {
        await context.close();
    }
}

for await (const line of createInterface({ input: process.stdin })) {
    const result = await visit(JSON.parse(line)).catch((error) => ({ error: error.stack }));
    process.stdout.write(`${JSON.stringify(result)}\n`);
}
await browser?.close();
