// SPDX-License-Identifier: GPL-2.0-or-later
//
// Allocations that failed for lack of memory: verdict, arithmetic, remedies, device map and call stack of each. Those that a retry
// recovered are a line each.

import { count, moment as time, size } from '../base/units.js';
import { Legend, Words } from '../charts/section.js';
import { type Column, Table } from '../charts/table.js';
import { coloursOf } from '../runs/colours.js';
import type { Incident } from '../runs/data.js';
import type { Page } from '../runs/page.js';
import type { Run } from '../runs/run.js';
import { HoleKey, MapRow } from './device.js';

/** A row a segment, all to one scale. */
function DeviceMap({ run, incident: { map: segments, segments_left_out: others } }: { run: Run; incident: Incident }) {
    const colours = coloursOf(run, 'owner');
    const place = new Map(run.head.owners.map(({ name }, index) => [name, index]));
    const colourOf = (owner: string) => colours[place.get(owner) ?? -1] ?? 'var(--quiet)';
    const widest = segments[0].bytes;
    const used = [...new Set(segments.flatMap(({ parts }) => parts.map(([, owner]) => owner)))].filter((owner) => owner);
    return (
        <div class="map">
            <h4>Device memory at that moment</h4>
            {segments.map(({ address, bytes, free, parts }) => {
                let at = 0;
                return (
                    <MapRow key={address} bytes={bytes} used={bytes - free} widest={widest}>
                        {parts.map(([length, owner], i) => {
                            const text = `${owner || 'hole'}: ${size(length)} at 0x${(BigInt(`0x${address}`) + BigInt(at)).toString(16)}`;
                            at += length;
                            const background = owner ? colourOf(owner) : undefined;
                            const flex = `0 0 ${(100 * length) / bytes}%`;
                            return <span key={i} class={owner ? 'block' : 'hole'} title={text} style={{ flex, background }} />;
                        })}
                    </MapRow>
                );
            })}
            {others > 0 && <p class="quiet">and {count(others, 'smaller one')}</p>}
            <Legend keys={used.map((name) => ({ name, colour: colourOf(name) }))}>
                <HoleKey />
            </Legend>
        </div>
    );
}

const ARITHMETIC: Column<Incident['arithmetic'][number]>[] = [
    { head: 'memory', value: ([label]) => label },
    { head: 'bytes', as: 'bytes', value: ([, bytes]) => bytes },
    { head: 'remark', as: 'long', value: ([, , remark]) => remark },
];

function Failure({ page, incident }: { page: Page; incident: Incident }) {
    const run = page.whole;
    const index = run.moments.findIndex(({ id }) => id !== 0 && id === incident.snapshot);
    return (
        <article class="incident" data-number={incident.number}>
            <h3>
                ({incident.number}) at {time(incident.time, run.head.unit)}: <span class="problem">{incident.verdict}</span>
            </h3>
            <p>
                <Words text={incident.text} />
            </p>
            <Table caption="Arithmetic" columns={ARITHMETIC} rows={incident.arithmetic} />
            {incident.helps.length > 0 && (
                <div>
                    <h4>Remedies</h4>
                    <ul class="helps">
                        {incident.helps.map((text) => (
                            <li key={text}>
                                <Words text={text} />
                            </li>
                        ))}
                    </ul>
                </div>
            )}
            {incident.map.length > 0 && <DeviceMap run={run} incident={incident} />}
            <details>
                <summary>{incident.line ? `Call stack, at ${incident.line}` : 'Call stack'}</summary>
                <ol class="stack">
                    {incident.stack.map((frame, i) => (
                        <li key={i}>{frame}</li>
                    ))}
                </ol>
            </details>
            {index >= 0 && (
                <button type="button" onClick={() => page.select(index)}>
                    Show this moment
                </button>
            )}
        </article>
    );
}

function View({ page }: { page: Page }) {
    const { unit, oom } = page.whole.head;
    const resolved = oom.incidents.filter(({ outcome }) => outcome === 'retried');
    const failed = oom.incidents.filter(({ outcome }) => outcome !== 'retried').reverse();
    return (
        <>
            {failed.map((incident) => (
                <Failure key={incident.number} page={page} incident={incident} />
            ))}
            {resolved.length > 0 && <h3>Earlier failed allocations (recovered)</h3>}
            {resolved.length > 0 && (
                <ul class="resolved">
                    {resolved.map((incident) => (
                        <li key={incident.number}>
                            ({incident.number}) at {time(incident.time, unit)}: {incident.text}
                        </li>
                    ))}
                </ul>
            )}
            {oom.not_shown > 0 && <p class="quiet not-shown">{count(oom.not_shown, 'more failed call')} not on this page</p>}
        </>
    );
}

export const OutOfMemory = {
    id: 'out-of-memory',
    title: 'Failed allocations',
    isWhole: true,
    fits: (run: Run) => run.head.oom.incidents.length > 0,
    View,
};
