// SPDX-License-Identifier: GPL-2.0-or-later
//
// A chip with what the call tree is narrowed to, and the way back: one owner, one Python line, one block's place.

import type { Page } from '../runs/page.js';

const KINDS = { owner: 'owner', line: 'line', cell: 'allocated by' };

export function Chip({ page }: { page: Page }) {
    const { only } = page;
    const what = only && `${KINDS[only.dimension]} ${only.name}`;
    return (
        <span class="chips" role="status">
            {what && (
                <button type="button" class="chip" aria-label={`The call tree shows only ${what}: reset`} onClick={() => page.narrow(null)}>
                    only {what} <span aria-hidden="true">✕</span>
                </button>
            )}
        </span>
    );
}
