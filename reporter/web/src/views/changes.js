// SPDX-License-Identifier: GPL-2.0-or-later
//
// How much more or less the columns hold than the one they are compared with, and which owners make the difference.

import { comparisonOf, held, isBeyond } from '../comparison.js';
import { REST, groupColour } from '../colours.js';
import { append, h, replace } from '../dom.js';
import { growth, size, whole } from '../units.js';
import { waterfall } from '../waterfall.js';

/** @typedef {import('../comparison.js').Comparison} Comparison */
/** @typedef {import('../comparison.js').Pool} Pool */
/** @typedef {import('../comparison.js').Table} Table */

const MOST_STEPS = 14;

/** @param {number} before @param {number} now */
export function percentOf(before, now) {
    if (!before || !now) return now ? 'new' : before ? 'gone' : '';
    const text = before > 0 ? `${now > before ? '+' : ''}${((100 * (now - before)) / before).toFixed(1)} %` : '';
    return text === '+0.0 %' || text === '-0.0 %' || text === '0.0 %' ? '' : text;
}

/** From the total of one column to that of the other, owner by owner. @param {Comparison} run @param {Table} table @param {Pool} pool @param {number} from @param {number} to */
function steps(run, table, pool, from, to) {
    const groups = new Map(run.head.owners.map(({ name, group }) => [name, group]));
    const rows = [...table.rows, ...[table.other, table.remainder].filter((row) => row !== null)];
    const all = rows
        .map((row) => ({ name: row.name, group: groups.get(row.name) ?? '', bytes: held(row.cells[to], pool) - held(row.cells[from], pool) }))
        .filter(({ bytes }) => bytes)
        .sort((a, b) => Math.abs(b.bytes) - Math.abs(a.bytes));
    const small = all.splice(MOST_STEPS);
    if (small.length) all.push({ name: `${whole(small.length)} smaller changes`, group: '', bytes: small.reduce((sum, { bytes }) => sum + bytes, 0) });
    const first = { name: run.label(from), group: 'total', bytes: held(table.total.cells[from], pool), colour: REST };
    return [first, ...all.map((step) => ({ ...step, text: growth(step.bytes), colour: groupColour(step.group || 'other') }))];
}

/** @type {import('../page.js').View} */
export const changes = {
    id: 'changes',
    title: 'What has changed',
    mount(place, page) {
        const run = comparisonOf(page);
        const { difference } = run;
        const tables = difference.views.filter(({ by }) => by !== 'scope');
        const tiles = h('div', { class: 'tiles' });
        const falls = h('div', {});
        place.append(h('p', { class: 'quiet' }, `At ${difference.moment}.`), tiles, falls);
        if (run.hasRanges) {
            place.append(
                h('p', { class: 'quiet' }, 'Figures of repeated runs are medians. Spread is between the smallest and the largest; beyond is what differs by more: the ranges of both columns have nothing in common.'),
            );
        }
        return () => {
            replace(tiles);
            replace(falls);
            if (!tables.length) return;
            const table = tables[0];
            for (const pool of run.pools(table)) {
                const name = pool === 'bytes' ? '' : `, ${pool}`;
                difference.columns.forEach(({ label }, column) => {
                    const bytes = held(table.total.cells[column], pool);
                    const before = page.other === null || page.other === column ? null : held(table.total.cells[page.other], pool);
                    const { ranges } = table.total.cells[column];
                    const beyond = page.other !== null && isBeyond(run, table.total, page.other, column);
                    const tile = h('button', { type: 'button', class: 'tile', 'data-column': column, 'data-pool': pool, 'data-bytes': bytes, 'aria-pressed': String(column === page.moment), onclick: () => page.select(column) });
                    append(tile, h('span', {}, `${label}${name}`), h('span', { class: 'large', title: `${whole(bytes)} bytes` }, size(bytes)));
                    const change = before === null ? '' : [growth(bytes - before), percentOf(before, bytes), beyond ? 'beyond the spread' : ''].filter(Boolean).join(', ');
                    const spread = difference.columns[column].runs.length > 1 ? `spread ${size(ranges[pool][1] - ranges[pool][0])}` : '';
                    append(tile, h('span', { class: 'change' }, change || (page.other === column ? 'compared with' : ' ')), spread && h('span', { class: 'quiet' }, spread));
                    tiles.append(tile);
                });
                const owners = tables.find(({ by }) => by === 'owner');
                if (owners && page.other !== null && held(owners.total.cells[page.other], pool) + held(owners.total.cells[page.moment], pool) > 0) {
                    falls.append(waterfall(steps(run, owners, pool, page.other, page.moment), `From ${run.label(page.other)} to ${run.label(page.moment)}, by owner${name}`, run.label(page.moment)));
                }
            }
        };
    },
};
