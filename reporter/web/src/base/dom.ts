// SPDX-License-Identifier: GPL-2.0-or-later
//
// Elements without markup: texts come from a trace and are only ever set as text.

export type Child = string | number | Node | null | undefined | false;

/** `properties`: "class", "style", on* and DOM properties; names with a hyphen, and role, are attributes. */
export function h<T extends keyof HTMLElementTagNameMap>(tag: T, properties: Record<string, unknown> = {}, ...children: Child[]) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
        if (value === undefined || value === null || value === false) continue;
        if (name === 'class') element.className = `${value as string}`;
        else if (name === 'style') for (const [key, text] of Object.entries(value)) element.style.setProperty(key, String(text));
        else if (name.includes('-') || ['role', 'for', 'colspan'].includes(name)) element.setAttribute(name, `${value as string}`);
        else Object.assign(element, { [name]: value });
    }
    append(element, ...children);
    return element;
}

export function append(element: Element, ...children: Child[]) {
    for (const child of children) {
        if (child === null || child === undefined || child === false) continue;
        element.append(typeof child === 'number' ? String(child) : child);
    }
}

export function replace(element: Element, ...children: Child[]) {
    element.replaceChildren();
    append(element, ...children);
}
