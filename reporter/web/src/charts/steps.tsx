// SPDX-License-Identifier: GPL-2.0-or-later
//
// A list of what the device's allocators did, around one step; choosing another shows the memory right after it.

import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { countUpTo } from '../base/search.js';
import { moment as time, size, whole } from '../base/units.js';
import { type Step, stepsOf } from '../runs/blocks.js';
import type { Run } from '../runs/run.js';
import { CACHE, ownerOf } from '../runs/segments.js';

const AROUND = 12; // steps shown before and after the chosen one

function describe(run: Run, { block, isEnd, time: at }: Step) {
    const { address, bytes, cell } = run.blocks;
    const owner = ownerOf(run, block);
    const role = run.head.roles[run.cells.role[cell[block]]];
    const done = owner === CACHE ? ['reserved', 'released'] : ['allocated', 'freed'];
    const what = owner === CACHE ? 'segment' : role ? `${owner} (${role})` : owner;
    return `${time(at, run.head.unit)}: ${done[isEnd ? 1 : 0]} ${size(bytes[block])} at 0x${address[block].toString(16)}, ${what}`;
}

/** `when`: "step 3 of 40". */
export type Chosen = { step: Step; when: string };

type ListProps = { run: Run; moment: number; choose: (chosen: Chosen) => void };

function List({ run, moment, choose }: ListProps) {
    const steps = useMemo(() => stepsOf(run), [run]);
    const list = useRef<HTMLOListElement>(null);
    // Steps that have been made.
    const [done, make] = useState(() =>
        countUpTo(
            steps.map((step) => step.time),
            run.moments[moment]?.time ?? 0,
        ),
    );
    const go = (to: number) => {
        const next = Math.max(1, Math.min(steps.length, to));
        make(next);
        choose({ step: steps[next - 1], when: `step ${whole(next)} of ${whole(steps.length)}` });
    };
    const first = Math.max(0, done - 1 - AROUND);
    const at = steps[done - 1];
    useLayoutEffect(() => {
        const current = list.current?.children[done - 1 - first];
        if (list.current && current instanceof HTMLElement) list.current.scrollTop = current.offsetTop - list.current.clientHeight / 2;
    }, [done]);
    const button = (by: number, name: string, sign: string) => (
        <button type="button" aria-label={name} title={name} onClick={() => go(done + by)}>
            {sign}
        </button>
    );
    const [left, upTo] = run.head.blocks_left_out;
    return (
        <div>
            <span class="buttons">
                {button(-1, 'Previous step', '◂')}
                {button(1, 'Next step', '▸')}
            </span>{' '}
            <output class="readout" aria-live="polite">
                {at ? `step ${whole(done)} of ${whole(steps.length)}: ${describe(run, at)}` : `before the first of ${whole(steps.length)} steps`}
            </output>
            <ol class="step-list" start={first + 1} ref={list}>
                {steps.slice(first, first + 2 * AROUND + 1).map((step, i) => (
                    <li key={first + i}>
                        <button
                            type="button"
                            class={step.isEnd ? 'end' : ''}
                            aria-current={step === at ? 'step' : undefined}
                            onClick={() => go(first + i + 1)}
                        >
                            {describe(run, step)}
                        </button>
                    </li>
                ))}
            </ol>
            {left > 0 && <p class="quiet">blocks up to {size(upTo)}, and their steps, are not on this page</p>}
        </div>
    );
}

export function StepList(props: ListProps) {
    const [isOpen, open] = useState(false);
    return (
        <details class="step-by-step" onToggle={(event) => open(event.currentTarget.open)}>
            <summary>Step by step</summary>
            {isOpen && <List key={props.moment} {...props} />}
        </details>
    );
}
