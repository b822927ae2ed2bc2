// SPDX-License-Identifier: GPL-2.0-or-later
//
// The settings of a section's controls, those that say that they are kept (dom.js, `kept`), under names that an address can have:
// "calls.order". Views know nothing of it: a control is set by the same events as the reader's.

/** @typedef {HTMLInputElement|HTMLSelectElement} Control */

/** @param {Element} body @returns {Control[]} */
const controlsIn = (body) => [...body.querySelectorAll('[data-keep]')].flatMap((each) => (each instanceof HTMLInputElement || each instanceof HTMLSelectElement ? each : []));

const isBox = (/** @type {Control} */ control) => control.type === 'checkbox';

/** @param {Control} control */
const valueOf = (control) => (isBox(control) ? (/** @type {HTMLInputElement} */ (control).checked ? 'yes' : 'no') : control.value);

/** Sets a control, and has it act. @param {Control} control @param {string} value one that it cannot have is passed over */
function set(control, value) {
    if (valueOf(control) === value) return;
    if (control instanceof HTMLSelectElement && ![...control.options].some((option) => option.value === value)) return;
    if (isBox(control)) /** @type {HTMLInputElement} */ (control).checked = value === 'yes';
    else control.value = value;
    for (const type of ['input', 'change']) control.dispatchEvent(new CustomEvent(type, { detail: 'kept', bubbles: true }));
}

export class Kept {
    /** By name: what the reader has set. @type {Map<string, string>} */
    values = new Map();
    /** How controls were before, by name. @type {Map<string, string>} */
    #first = new Map();

    /** @param {() => void} notify after a setting has changed by the reader's hand */
    constructor(notify) {
        this.notify = notify;
    }

    /** Has a section's controls, which were made just now, set as the reader had them; and notes what the reader does. @param {string} section @param {Element} body */
    follow(section, body) {
        for (const control of controlsIn(body)) this.#first.set(this.#nameOf(section, control), valueOf(control));
        this.restore(section, body);
    }

    /** @param {string} section @param {Element} body which lasts as long as the page */
    listen(section, body) {
        for (const type of ['input', 'change']) {
            body.addEventListener(type, (event) => {
                const control = /** @type {Control} */ (event.target);
                if (!control.dataset.keep || (event instanceof CustomEvent && event.detail === 'kept')) return;
                const name = this.#nameOf(section, control);
                const value = valueOf(control);
                if (value === this.#first.get(name)) this.values.delete(name);
                else this.values.set(name, value);
                this.notify();
            });
        }
    }

    /** @param {string} section @param {Element} body */
    restore(section, body) {
        for (const control of controlsIn(body)) {
            const name = this.#nameOf(section, control);
            const first = this.#first.get(name);
            const value = this.values.get(name) ?? first;
            if (first !== undefined && value !== undefined) set(control, value);
        }
    }

    /** @param {string} section @param {Control} control */
    #nameOf(section, control) {
        return `${section}.${control.dataset.keep}`;
    }
}
