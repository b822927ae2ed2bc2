// SPDX-License-Identifier: GPL-2.0-or-later
//
// The largest lines at the page's moment. Idle cache is not charged to a line as if the line held it: it has a column of its own.

import { size, whole, wholePercent } from '../base/units.js';
import type { ShownLine } from '../runs/data.js';
import type { Page } from '../runs/page.js';
import { failureOf } from '../tabs.js';
import type { Seen } from './seen.js';

type Column = { head: string; of: (row: ShownLine) => number; isMinor: boolean };

export function LargestLines({ page, seen }: { page: Page; seen: Seen }) {
    const { lines, space } = seen;
    if (!lines.length) return null;
    const other = ({ total, tensors, cache }: ShownLine) => {
        const rest = total - tensors - cache;
        return rest >= 1024 ? rest : 0; // an allocator rounds tensors up by some bytes
    };
    const all: Column[] = [
        { head: 'tensors', of: (row) => row.tensors, isMinor: true },
        { head: 'cache', of: (row) => row.cache, isMinor: true },
        { head: 'other', of: other, isMinor: true },
        { head: 'total', of: (row) => row.total, isMinor: false },
    ];
    const hasParts = !space && lines.some((row) => row.tensors || row.cache);
    const columns = all.filter(({ head, of }) => lines.some((row) => of(row)) && (hasParts || head !== 'other'));
    const known = page.run.head.lines.label;
    const failed = page.moment === failureOf(page.whole) ? (page.whole.head.oom.incidents.at(-1)?.line ?? '') : '';
    const narrow = (row: ShownLine) => {
        const index = known.indexOf(row.label);
        if (index < 0) return;
        page.open('flame-graph');
        page.narrow({ dimension: 'line', index, name: row.label });
    };
    return (
        <section id="largest" aria-labelledby="largest-title">
            <h2 id="largest-title">
                Largest lines{' '}
                <span class="quiet">
                    {seen.when}; shares of {space ? `its ${space} memory` : 'the program'}
                </span>
            </h2>
            <table class="largest">
                <thead>
                    <tr>
                        <th scope="col">line</th>
                        {columns.map(({ head, isMinor }) => (
                            <th key={head} scope="col" class={isMinor ? 'figure minor' : 'figure'}>
                                {head}
                            </th>
                        ))}
                        <th scope="col" class="figure share">
                            share
                        </th>
                    </tr>
                </thead>
                <tbody>
                    {lines.map((row) => (
                        <tr key={row.label} data-bytes={row.total}>
                            <th scope="row">
                                {row.path && known.includes(row.label) ? (
                                    <button type="button" class="link" title="Its stacks, in the flame graph" onClick={() => narrow(row)}>
                                        {row.label}
                                    </button>
                                ) : (
                                    row.label
                                )}
                                {failed && `${failed} `.startsWith(`${row.label} `) && <span class="tag">failed here</span>}{' '}
                                {row.source && <code title={row.source}>{row.source}</code>}
                            </th>
                            {columns.map(({ head, of, isMinor }) => (
                                <td key={head} class={isMinor ? 'figure minor' : 'figure'} title={`${whole(of(row))} bytes`}>
                                    {of(row) ? size(of(row)) : '–'}
                                </td>
                            ))}
                            <td class="figure share">
                                <span class="share-bar" aria-hidden="true">
                                    <i style={{ width: `${Math.min(100, (100 * row.total) / seen.whole)}%` }} />
                                </span>
                                {wholePercent(row.total, seen.whole)}
                            </td>
                        </tr>
                    ))}
                </tbody>
            </table>
        </section>
    );
}
