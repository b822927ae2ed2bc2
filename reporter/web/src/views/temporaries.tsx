// SPDX-License-Identifier: GPL-2.0-or-later
//
// Blocks that are freed before their thread allocates anything else, by call site: work that a program can save.

import { Table } from '../charts/table.js';
import type { Page } from '../runs/page.js';
import type { Run } from '../runs/run.js';

const View = ({ page }: { page: Page }) => (
    <Table
        caption="Temporaries"
        note="freed before their thread allocated anything else; in the whole run"
        limit={15}
        columns={[
            { head: 'temporaries', as: 'number', value: (row) => row.temporaries },
            { head: 'of blocks', as: 'number', value: (row) => row.blocks },
            {
                head: 'share',
                as: 'percent',
                value: (row) => (100 * row.temporaries) / row.blocks,
            },
            { head: 'bytes in all', as: 'bytes', value: (row) => row.bytes },
            { head: 'allocated by', as: 'long', value: (row) => row.site },
        ]}
        rows={page.whole.head.temporaries}
    />
);

export const Temporaries = {
    id: 'temporaries',
    title: 'Temporaries',
    isWhole: true,
    fits: (run: Run) => run.head.temporaries.length > 0,
    View,
};
