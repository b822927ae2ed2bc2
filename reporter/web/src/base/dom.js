// SPDX-License-Identifier: GPL-2.0-or-later
//
// Elements without markup: texts come from a trace and are only ever set as text.

/** @typedef {string|number|Node|null|undefined|false} Child */

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, unknown>} [properties] "class", "style", on* and DOM properties; names with a hyphen, and role, are attributes
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
        if (value === undefined || value === null || value === false) continue;
        if (name === 'class') element.className = String(value);
        else if (name === 'style') for (const [key, text] of Object.entries(/** @type {object} */ (value))) element.style.setProperty(key, String(text));
        else if (name.includes('-') || name === 'role' || name === 'for' || name === 'colspan') element.setAttribute(name, String(value));
        else /** @type {any} */ (element)[name] = value;
    }
    append(element, ...children);
    return element;
}

/** @param {Element} element @param {...Child} children */
export function append(element, ...children) {
    for (const child of children) {
        if (child === null || child === undefined || child === false) continue;
        element.append(typeof child === 'number' ? String(child) : child);
    }
}

/** A name that may go on in another line after a slash, and elsewhere only where it must. @param {string} name */
export function named(name) {
    const element = h('span', { class: 'name' });
    name.split(/(?<=\/)/).forEach((part, i) => element.append(...(i ? [document.createElement('wbr')] : []), part));
    return element;
}

/** @param {Element} element @param {...Child} children */
export function replace(element, ...children) {
    element.replaceChildren();
    append(element, ...children);
}

/** Attribute with the name of a control's setting in an address: a word for it, unlike all others of its section. @param {string} name in words */
export const kept = (name) => ({ 'data-keep': name.toLowerCase().replaceAll(/[^a-z]+/g, '-') });

/**
 * A labelled choice. @template {string} T @param {string} label @param {[T, string][]} options value and text @param {T} value
 * @param {(value: T) => void} onChange
 */
export function choice(label, options, value, onChange) {
    const select = h('select', { ...kept(label), onchange: () => onChange(/** @type {T} */ (select.value)) });
    for (const [key, text] of options) select.append(h('option', { value: key, selected: key === value }, text));
    return h('label', { class: 'choice' }, `${label} `, select);
}
