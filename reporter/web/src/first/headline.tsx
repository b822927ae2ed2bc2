// SPDX-License-Identifier: GPL-2.0-or-later
//
// The first screen above the timeline: the figure and its moment, what is the matter and what to do, and the bar from the figure
// that the reader saw elsewhere to the one that the framework prints.

import { count, growth, size, whole } from '../base/units.js';
import { Words } from '../charts/section.js';
import type { Statement } from '../runs/data.js';
import type { Page } from '../runs/page.js';
import { failureOf } from '../tabs.js';
import type { Bar, Part, Seen } from './seen.js';

/** Moments that have a name, each once. */
export function namedMoments({ run }: Page): [string, number][] {
    const { at, peaks } = run.head;
    const found: [string, number][] = [
        ['Failure', failureOf(run)],
        ['Peak', at.peak],
        ['Host peak', peaks.host?.moment ?? -1],
        ['Device peak', run.uses('device') ? (peaks.device?.moment ?? -1) : -1],
        ['Start', 0],
        ['End', at.end < 0 ? run.moments.length - 1 : at.end],
    ];
    return found.filter(([, index], i) => index >= 0 && found.findIndex((each) => each[1] === index) === i);
}

function MomentControl({ page }: { page: Page }) {
    const { run, moment } = page;
    const step = (by: number, name: string, sign: string) => (
        <button type="button" aria-label={name} title={name} onClick={() => page.select(page.chosen + by)}>
            {sign}
        </button>
    );
    return (
        <div class="moment" role="toolbar" aria-label="Moment">
            {step(-1, 'Previous snapshot', '‹')}
            <span class="segments">
                {namedMoments(page).map(([name, index]) => (
                    <button
                        key={name}
                        type="button"
                        class={name.includes(' ') ? 'minor' : ''}
                        aria-pressed={index === moment}
                        onClick={() => page.select(index)}
                    >
                        {name}
                    </button>
                ))}
            </span>
            <output id="chosen" title={`${count(run.moments.length, 'moment')}; moment ${moment + 1}`}>
                {run.label(moment)}
            </output>
            {step(1, 'Next snapshot', '›')}
        </div>
    );
}

/** The earlier moment, by how much the later one has grown, and the way out. */
function Comparison({ page }: { page: Page }) {
    const { run, moment, other } = page;
    if (other === null) return null;
    const total = (i: number) => run.moments[i].host + run.moments[i].device;
    return (
        <p class="comparison">
            vs. {run.label(other)}
            {!(run.head.is_discrete && run.uses('device')) && `: ${growth(total(moment) - total(other))}`}{' '}
            <button type="button" onClick={() => page.compare(null)}>
                Stop comparing
            </button>
        </p>
    );
}

/** A finding: what is the matter, and what to do. */
function Finding({ said: { text, action }, isFirst }: { said: Statement; isFirst: boolean }) {
    const what = action && text.endsWith(action) ? text.slice(0, -action.length).trim() : text;
    const [, first, why] = /^(.*?[.])(?: (.*))?$/s.exec(what) ?? [];
    return (
        <p class={`statement finding ${isFirst ? 'main' : ''}`}>
            <b>
                <Words text={first ?? what} />
            </b>{' '}
            <Words text={why ?? ''} />
            {what !== text && (
                <span class="action">
                    <Words text={action} />
                </span>
            )}
        </p>
    );
}

const capital = (text: string) => text.slice(0, 1).toUpperCase() + text.slice(1);

const Said = ({ said, children }: { said: Statement; children?: preact.ComponentChildren }) => (
    <p class={`statement ${said.about} ${said.severity}`}>
        <Words text={said.text} />
        {children}
    </p>
);

function Statements({ page, seen }: { page: Page; seen: Seen }) {
    const findings = seen.statements.filter(({ about }) => about === 'finding');
    const others = seen.statements.filter(({ about }) => about !== 'finding');
    const verdict = others.find(({ about }) => about === 'verdict');
    const [loud, quiet] = [true, false].map((isLoud) => others.filter((said) => (said.severity !== 'note') === isLoud && said !== verdict));
    // The figure says what the verdict of a run says that went well.
    const isShown = verdict && (verdict.severity === 'alarm' || !findings.length || !!page.whole.parts.together);
    const hasDetails = verdict?.severity === 'alarm' && page.run.head.oom.incidents.length > 0;
    return (
        <div class="said">
            {seen.saidOf && findings.length > 0 && <p class="quiet of-moment">Of the {seen.saidOf.replace(/^at the /, '')}:</p>}
            {isShown && (
                // The title names the program.
                <Said said={{ ...verdict, text: capital(verdict.text.replace(`${page.data.title}: `, '')) }}>
                    {hasDetails && (
                        <>
                            {' '}
                            <a href="#out-of-memory">Details</a>
                        </>
                    )}
                </Said>
            )}
            {loud.map((said) => (
                <Said key={said.text} said={said} />
            ))}
            {findings.map((said, i) => (
                <Finding key={said.text} said={said} isFirst={!i} />
            ))}
            {quiet.map((said) => (
                <Said key={said.text} said={said} />
            ))}
        </div>
    );
}

const LEAST_LABELLED = 0.15; // of the bar: there is room for a name

const titleOf = ({ name, bytes }: Part) => `${name}: ${whole(bytes)} bytes`;

function BarRow({ bar }: { bar: Bar }) {
    const { top, above, parts, bottom, program, ladder } = bar;
    const all = [...above, ...parts].reduce((sum, { bytes }) => sum + bytes, 0) || 1;
    const piece = (part: Part) => (
        <span
            key={part.key}
            class={`piece of-${part.group}`}
            style={{ flexGrow: part.bytes / all }}
            data-key={part.key}
            data-bytes={part.bytes}
            title={titleOf(part)}
        >
            {part.bytes / all >= LEAST_LABELLED && (
                <span class="label">
                    {part.name} <b>{size(part.bytes)}</b>
                </span>
            )}
        </span>
    );
    const said = [...above, ...parts].map(({ name, bytes }) => `${name} ${size(bytes)}`).join(', ');
    const share = above.reduce((sum, { bytes }) => sum + bytes, 0) / all;
    return (
        <figure class="ladder" aria-label={ladder?.title ?? `Memory of the program${bar.pool && `, ${bar.pool}`}`}>
            <div class="bar-row">
                <span class="end-label">
                    {bar.pool && <span class="quiet">{bar.pool} </span>}
                    {top.name} <b>{size(top.bytes)}</b>
                </span>
                <div class="stack-bar" role="img" aria-label={said}>
                    {above.map(piece)}
                    {parts.map(piece)}
                    {above.length > 0 && (
                        <span class="bracket" style={{ left: `${100 * share}%` }}>
                            the program <b>{size(program)}</b>
                        </span>
                    )}
                </div>
                {bottom && (
                    <span class="end-label">
                        <b>{size(bottom.bytes)}</b> {bottom.name}
                    </span>
                )}
            </div>
            <ul class="legend">
                {[...above, ...parts].map((part) => (
                    <li key={part.key} class={`key ${part.bytes / all >= LEAST_LABELLED ? 'labelled' : ''}`} data-group={part.group}>
                        <i class={`of-${part.group}`} />
                        {part.name} <b>{size(part.bytes)}</b>
                    </li>
                ))}
                {ladder?.rows.map(
                    ({ key, role, label, bytes }) =>
                        role === 'plus' && (
                            <li key={key} class="key">
                                {label} <b>{size(bytes)}</b>
                            </li>
                        ),
                )}
                {ladder && (
                    <li>
                        <details>
                            <summary>in numbers</summary>
                            <table>
                                <caption>{ladder.title}</caption>
                                <tbody>
                                    {ladder.rows.map(({ key, role, label, number, bytes }) => (
                                        <tr key={key} class={role === 'less' || role === 'plus' ? 'part' : 'sum'} data-key={key} data-bytes={bytes}>
                                            <th scope="row">{label}</th>
                                            <td class="figure" title={`${whole(bytes)} bytes`}>
                                                {whole(number)}
                                            </td>
                                        </tr>
                                    ))}
                                </tbody>
                            </table>
                            {ladder.note && <p class="quiet">{ladder.note}</p>}
                        </details>
                    </li>
                )}
            </ul>
        </figure>
    );
}

export function Headline({ page, seen }: { page: Page; seen: Seen }) {
    return (
        <section id="headline" aria-label="What to know first">
            <div class="top">
                <p class="size">
                    {seen.figures.map(([space, bytes]) => (
                        <span key={space} title={`${whole(bytes)} bytes`} data-bytes={bytes}>
                            <b>{size(bytes)}</b> {space}{' '}
                        </span>
                    ))}
                    {seen.when || 'This trace has no complete snapshot.'} <span class="quiet">{seen.capacity}</span>
                </p>
                {page.run.moments.length > 0 && <MomentControl page={page} />}
            </div>
            <Comparison page={page} />
            <Statements page={page} seen={seen} />
            {seen.bars.map((bar) => (
                <BarRow key={bar.pool} bar={bar} />
            ))}
        </section>
    );
}
