// SPDX-License-Identifier: GPL-2.0-or-later
//
// A table as a CSV file, or as text for the clipboard.

type Rows = (string | number)[][];

/** A text that a spreadsheet would take for a formula is marked as text. */
const harmless = (value: string | number) => (typeof value === 'string' && /^[=+\-@\t\r\n]/.test(value) ? `'${value}` : String(value));

function field(value: string | number) {
    const text = harmless(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The first row has the columns' names. */
export const csv = (rows: Rows) => rows.map((fields) => fields.map(field).join(',')).join('\r\n') + '\r\n';

export const tabbed = (rows: Rows) =>
    rows.map((fields) => fields.map((value) => harmless(value).replaceAll(/[\t\n\r]/g, ' ')).join('\t')).join('\n') + '\n';

export function save(name: string, text: string) {
    const url = URL.createObjectURL(new Blob([text], { type: 'text/csv;charset=utf-8' }));
    Object.assign(document.createElement('a'), { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}

export async function copy(text: string) {
    try {
        await navigator.clipboard.writeText(text);
    } catch {
        // Not allowed here, as on some browsers for pages opened from a disk.
        const area = Object.assign(document.createElement('textarea'), { value: text, className: 'unseen' });
        document.body.append(area);
        area.select();
        document.execCommand('copy');
        area.remove();
    }
}
