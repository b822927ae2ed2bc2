// SPDX-License-Identifier: GPL-2.0-or-later
//
// The largest lines at the page's moment. Idle cache is not charged to a line as if the line held it: it has a column of its own.

import { wholePercent } from '../base/units.js';
import { type Column, Table } from '../charts/table.js';
import type { ShownLine } from '../runs/data.js';
import type { Page } from '../runs/page.js';
import { failureOf } from '../tabs.js';
import type { Seen } from './seen.js';

/** An allocator rounds tensors up by some bytes. */
const otherOf = ({ total, tensors, cache }: ShownLine) => (total - tensors - cache >= 1024 ? total - tensors - cache : 0);

export function LargestLines({ page, seen }: { page: Page; seen: Seen }) {
    const { lines, space } = seen;
    if (!lines.length) return null;
    const known = page.run.head.lines.label;
    /** The function is a part of a label where several share a line: in all of the page, or in this list. */
    const placeOf = (label: string) => (known.includes(label) ? known.indexOf(label) : known.findIndex((name) => name.startsWith(`${label} (`)));
    const failed = page.moment === failureOf(page.whole) ? (page.whole.head.oom.incidents.at(-1)?.line ?? '') : '';
    const narrow = (index: number) => {
        page.open('flame-graph');
        page.narrow({ dimension: 'line', index, name: known[index] });
    };
    const name = ({ label, path }: ShownLine) => (
        <>
            {path && placeOf(label) >= 0 ? (
                <button type="button" class="link" title="Its stacks, in the flame graph" onClick={() => narrow(placeOf(label))}>
                    {label}
                </button>
            ) : (
                label
            )}
            {failed && (failed === label || failed.startsWith(`${label} (`)) && <span class="tag">failed here</span>}
        </>
    );
    const bytes = (head: string, value: (row: ShownLine) => number, isMinor = true): Column<ShownLine> => ({ head, as: 'bytes', value, isMinor });
    const hasParts = !space && lines.some((row) => row.tensors || row.cache);
    const parts = [bytes('tensors', (row) => row.tensors), bytes('cache', (row) => row.cache), ...(hasParts ? [bytes('other', otherOf)] : [])];
    const share = (row: ShownLine) => (100 * row.total) / seen.whole;
    const columns: Column<ShownLine>[] = [
        { head: 'line', value: (row) => row.label, show: name },
        { head: 'source', as: 'long', value: (row) => row.source, show: (row) => <code>{row.source}</code>, isMinor: true },
        ...parts,
        bytes('total', (row) => row.total, false),
        { head: 'share', as: 'percent', value: share, show: (row) => wholePercent(row.total, seen.whole) },
    ];
    return (
        <section id="largest" aria-label="Largest lines">
            <Table
                caption="Largest lines"
                note={`${seen.when}; shares of ${space ? `its ${space} memory` : page.whole.parts.together ? 'the sum' : 'the program'}`}
                columns={columns.filter(({ value }) => lines.some((row) => value(row)))}
                rows={lines}
            />
        </section>
    );
}
