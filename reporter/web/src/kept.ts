// SPDX-License-Identifier: GPL-2.0-or-later
//
// The settings of controls in views, under names that an address can have: "calls.order". Those of older views (views/view.js)
// are found by their attribute (base/dom.js, `kept`), and set by the same events as the reader's.

import type { Page } from './runs/page.js';

type Control = HTMLInputElement | HTMLSelectElement;

/** A setting of a component, and the way to change it; what it is at first is in no address. */
export function useSetting<T extends string>(page: Page, name: string, first: T): [T, (value: T) => void] {
    return [(page.settings.get(name) as T | undefined) ?? first, (value) => page.set(name, value === first ? null : value)];
}

const controlsIn = (body: Element) =>
    [...body.querySelectorAll<Control>('[data-keep]')].filter((each) => each instanceof HTMLInputElement || each instanceof HTMLSelectElement);

const isBox = (control: Control): control is HTMLInputElement => control.type === 'checkbox';
const valueOf = (control: Control) => (isBox(control) ? (control.checked ? 'yes' : 'no') : control.value);

/** Sets a control, and has it act; a value that it cannot have is passed over. */
function set(control: Control, value: string) {
    if (valueOf(control) === value) return;
    if (control instanceof HTMLSelectElement && ![...control.options].some((option) => option.value === value)) return;
    if (isBox(control)) control.checked = value === 'yes';
    else control.value = value;
    for (const type of ['input', 'change']) control.dispatchEvent(new CustomEvent(type, { detail: 'kept', bubbles: true }));
}

/** Keeps the controls of a view's place. */
export class Kept {
    /** How controls were made, by name. */
    #first = new Map<string, string>();

    constructor(
        public page: Page,
        public section: string,
        public body: HTMLElement,
    ) {
        for (const type of ['input', 'change']) {
            body.addEventListener(type, (event) => {
                const control = event.target as Control;
                if (!control.dataset.keep || (event instanceof CustomEvent && event.detail === 'kept')) return;
                const name = this.#nameOf(control);
                const value = valueOf(control);
                page.set(name, value === this.#first.get(name) ? null : value);
            });
        }
    }

    /** After the controls were made. */
    follow() {
        for (const control of controlsIn(this.body)) this.#first.set(this.#nameOf(control), valueOf(control));
        this.restore();
    }

    /** Has the controls show the settings. */
    restore() {
        for (const control of controlsIn(this.body)) {
            const name = this.#nameOf(control);
            const value = this.page.settings.get(name) ?? this.#first.get(name);
            if (value !== undefined && this.#first.has(name)) set(control, value);
        }
    }

    #nameOf(control: Control) {
        return `${this.section}.${control.dataset.keep}`;
    }
}
