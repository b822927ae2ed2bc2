// SPDX-License-Identifier: GPL-2.0-or-later
//
// The program, its machine, how it was recorded, and warnings.

import { count, size, whole } from '../base/units.js';
import { Terms } from '../charts/section.js';
import { Table } from '../charts/table.js';
import type { RunHead } from '../runs/data.js';
import type { Page } from '../runs/page.js';

/** Failed calls and warnings, and how often they came. */
const warningsOf = (head: RunHead) => [
    ...head.failures.map(({ name, code, calls }) => ({ name: `${name} failed with error ${code}`, figure: count(calls, 'call') })),
    ...head.counters.map(([key, n]) => ({ name: key, figure: key.endsWith('-bytes') ? size(n) : whole(n) })),
];

/** A table that is folded away. */
const Folded = ({ caption, rows }: { caption: string; rows: [string, string][] }) =>
    rows.length ? (
        <details>
            <summary>{caption}</summary>
            <Table
                caption={caption}
                limit={60}
                columns={[
                    { head: 'key', value: ([key]) => key },
                    { head: 'value', as: 'long', value: ([, value]) => value },
                ]}
                rows={rows}
            />
        </details>
    ) : null;

/** `kept`: nodes of call stacks on the page. */
const pruned = (head: RunHead, kept: number) =>
    kept < head.nodes
        ? `This page has ${whole(kept)} of ${whole(head.nodes)} nodes of call stacks; smaller ones are summed into their callers. All sums are exact.`
        : `This page has all ${whole(head.nodes)} nodes of call stacks.`;

const OPTION = 'option.';

function View({ page }: { page: Page }) {
    const { head, nodes } = page.whole;
    const odd = warningsOf(head);
    const options = head.manifest.filter(([key]) => key.startsWith(OPTION));
    return (
        <>
            <Terms rows={head.facts} />
            {head.notes.map((note) => (
                <p key={note}>{note}</p>
            ))}
            {head.without_size.length > 0 && (
                <p class="without-size">
                    Not counted: driver objects of unknown size ({head.without_size.map(([noun, n]) => count(n, noun)).join(', ')}).
                </p>
            )}
            {(head.truncation || !head.is_complete) && (
                <p class="problem">
                    Incomplete trace: {head.truncation || 'no end record (killed, or still running)'}. The page shows what came before.
                </p>
            )}
            {odd.length > 0 && (
                <Table
                    caption="Failed calls and warnings"
                    columns={[
                        { head: 'what', value: (row) => row.name },
                        { head: 'how often', value: (row) => row.figure },
                    ]}
                    rows={odd}
                />
            )}
            <Folded caption="Manifest" rows={head.manifest.filter(([key]) => !key.startsWith(OPTION))} />
            <Folded caption="The recorder's options" rows={options.map(([key, text]) => [`--${key.slice(OPTION.length)}`, text])} />
            <p class="quiet">{pruned(head, nodes.parent.length - 1)}</p>
        </>
    );
}

export const About = { id: 'about', title: 'About this run', isWhole: true, View };
