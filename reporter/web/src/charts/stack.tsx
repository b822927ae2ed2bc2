// SPDX-License-Identifier: GPL-2.0-or-later
//
// The call stack of a block, in a box below the view that the block was chosen in.

import type { Run } from '../runs/run.js';

/** `block`: its place among the run's blocks; -1: none. */
export const StackBox = ({ run, block }: { run: Run; block: number }) => (
    <div class="detail" aria-live="polite" hidden={block < 0}>
        <h3>Allocated by</h3>
        <ol class="stack">
            {block >= 0 &&
                run.frames(run.blocks.cell[block]).map((frame, i) => (
                    <li key={i} title={run.around(frame) || undefined}>
                        {run.head.frames.label[frame]}
                    </li>
                ))}
        </ol>
    </div>
);
