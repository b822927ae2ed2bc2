// SPDX-License-Identifier: GPL-2.0-or-later
//
// A table as a CSV file, or as text for the clipboard.

import { h } from '../base/dom.js';
import { download } from '../base/download.js';

/** A text that a spreadsheet would take for a formula is marked as text. @param {string|number} value */
const harmless = (value) => (typeof value === 'string' && /^[=+\-@\t\r\n]/.test(value) ? `'${value}` : String(value));

/** A field of a CSV file. @param {string|number} value */
function field(value) {
    const text = harmless(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** @param {(string|number)[][]} rows the first has the columns' names */
export const csv = (rows) => rows.map((fields) => fields.map(field).join(',')).join('\r\n') + '\r\n';

/** @param {(string|number)[][]} rows */
export const tabbed = (rows) => rows.map((fields) => fields.map((value) => harmless(value).replaceAll(/[\t\n\r]/g, ' ')).join('\t')).join('\n') + '\n';

/** @param {string} name @param {string} text */
export function save(name, text) {
    download(name, new Blob([text], { type: 'text/csv;charset=utf-8' }));
}

/** @param {string} text */
export async function copy(text) {
    try {
        await navigator.clipboard.writeText(text);
    } catch {
        // Not allowed here, as on some browsers for pages opened from a disk.
        const area = h('textarea', { value: text, class: 'unseen' });
        document.body.append(area);
        area.select();
        document.execCommand('copy');
        area.remove();
    }
}
