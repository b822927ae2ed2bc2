// SPDX-License-Identifier: GPL-2.0-or-later
//
// A waterfall: a sum whose parts stand one after the other, a bar each that begins where the one before has ended.

import { percent, size, whole } from '../base/units.js';

/** A part, added to those before it; a negative one is taken away. `group` is quiet; `text`: instead of its size. */
export type Step = { name: string; group: string; bytes: number; colour: string; text?: string };

/** `steps`: their sum is positive. */
export function Waterfall({ steps, caption, sumName }: { steps: Step[]; caption: string; sumName: string }) {
    const all = steps.reduce((sum, step) => sum + step.bytes, 0);
    // A part that is taken away may have been added beyond the sum.
    let reached = 0;
    const width = steps.reduce((most, step) => Math.max(most, (reached += step.bytes)), all);
    // Changes have no share of a sum.
    const hasShare = steps.every((step) => step.text === undefined);
    let at = 0;
    const placed = steps.map((step) => {
        const begin = Math.max(0, Math.min(at, at + step.bytes));
        at += step.bytes;
        return { step, begin };
    });
    const figures = (n: number, text = size(n)) => [
        <td key="bytes" class="figure" title={`${whole(n)} bytes`}>
            {text}
        </td>,
        hasShare && (
            <td key="share" class="figure">
                {percent(n, all)}
            </td>
        ),
    ];
    const bar = (begin: number, n: number) => ({ left: `${(100 * begin) / width}%`, width: `${(100 * Math.abs(n)) / width}%` });
    return (
        <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
            <table class="waterfall">
                <caption>{caption}</caption>
                <tbody>
                    {placed.map(({ step, begin }) => (
                        <tr key={step.name} data-owner={step.name} data-bytes={step.bytes}>
                            <th scope="row">
                                {step.name}
                                <span class="quiet"> {step.group}</span>
                            </th>
                            <td class="steps" aria-hidden="true">
                                <span
                                    class={step.bytes < 0 ? 'step negative' : 'step'}
                                    style={{ ...bar(begin, step.bytes), background: step.colour }}
                                />
                            </td>
                            {figures(step.bytes, step.text)}
                        </tr>
                    ))}
                </tbody>
                <tfoot>
                    <tr>
                        <th scope="row">{sumName}</th>
                        <td class="steps" aria-hidden="true">
                            <span class="step total" style={bar(0, all)} />
                        </td>
                        {figures(all)}
                    </tr>
                </tfoot>
            </table>
        </div>
    );
}
