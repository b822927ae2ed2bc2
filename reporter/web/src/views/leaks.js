// SPDX-License-Identifier: GPL-2.0-or-later
//
// Never freed: what was still held when the program exited, by owner, and where most of it came from.

import { table } from '../table.js';
import { percent, size, whole } from '../units.js';

/** @typedef {{name: string, group: string, host: number, device: number, blocks: number}} Row */
/** @typedef {{place: string, owner: string, kind: string, bytes: number, blocks: number}} Place */

const PLACES = 100;

/** @type {import('../page.js').View} */
export const leaks = {
    id: 'leaks',
    title: 'Never freed: held at exit',
    fits: (run) => run.head.at.exit >= 0 && run.moments[run.head.at.exit].host + run.moments[run.head.at.exit].device > 0,
    mount(place, page) {
        const { run } = page;
        const exit = run.head.at.exit;
        const grid = /** @type {ReturnType<typeof table<Row>>} */ (
            table('Held at exit by owner', {
                sum: (rows) => rows.reduce((all, row) => ({ ...all, host: all.host + row.host, device: all.device + row.device, blocks: all.blocks + row.blocks }), { name: 'total', group: '', host: 0, device: 0, blocks: 0 }),
            })
        );
        const places = /** @type {ReturnType<typeof table<Place>>} */ (table('Held at exit by place', { limit: 10 }));
        place.append(grid.element, places.element);
        const sums = run.sums('owner', exit);
        const rows = run.head.owners
            .map((owner, i) => ({ name: owner.name, group: owner.group, host: sums[i].host, device: sums[i].device, blocks: sums[i].hostBlocks + sums[i].deviceBlocks }))
            .filter((row) => row.host || row.device)
            .sort((a, b) => b.host + b.device - a.host - a.device);
        const all = rows.reduce((bytes, row) => bytes + row.host + row.device, 0);
        /** @type {import('../table.js').Column<Row>[]} */
        const columns = [
            { head: 'owner', value: (row) => row.name },
            { head: 'group', value: (row) => row.group },
        ];
        for (const side of /** @type {('host'|'device')[]} */ (['host', 'device'])) {
            if (run.uses(side)) columns.push({ head: side, isFigure: true, value: (row) => row[side], show: (row) => (row[side] ? size(row[side]) : '–') });
        }
        if (!run.head.is_discrete || !run.uses('device')) {
            columns.push({ head: 'share', isFigure: true, value: (row) => (100 * (row.host + row.device)) / all, show: (row) => percent(row.host + row.device, all), title: () => '' });
        }
        columns.push({ head: 'blocks', isFigure: true, value: (row) => row.blocks, show: (row) => whole(row.blocks) });
        grid.show(columns, rows);

        const held = run.at(exit);
        /** @type {Map<string, Place>} */
        const found = new Map();
        for (let cell = 0; cell < run.nCells; cell++) {
            if (run.side[cell] > 1 || !held.bytes[cell]) continue;
            const line = run.cells.line[cell];
            const kind = run.head.kinds[run.cells.kind[cell]].name;
            const owner = run.head.owners[run.cells.owner[cell]].name;
            const site = run.stack(cell).find((label) => !label.includes('vgpreload_')) ?? '(no stack)';
            const name = run.head.lines.path[line] ? `${run.head.lines.label[line]} (${run.head.lines.function[line]})` : run.cells.places[cell] ? `${site} and below` : site;
            const key = JSON.stringify([name, kind, owner]);
            const row = found.get(key) ?? { place: name, owner, kind, bytes: 0, blocks: 0 };
            row.bytes += held.bytes[cell];
            row.blocks += held.blocks[cell];
            found.set(key, row);
        }
        places.show(
            [
                { head: 'size', isFigure: true, value: (row) => row.bytes, show: (row) => size(row.bytes) },
                { head: 'blocks', isFigure: true, value: (row) => row.blocks, show: (row) => whole(row.blocks) },
                { head: 'kind', value: (row) => row.kind },
                { head: 'owner', value: (row) => row.owner },
                { head: 'place', isLong: true, value: (row) => row.place },
            ],
            [...found.values()].sort((a, b) => b.bytes - a.bytes).slice(0, PLACES),
            'Python lines where there are any, else the function that allocated',
        );
        return () => {};
    },
};
