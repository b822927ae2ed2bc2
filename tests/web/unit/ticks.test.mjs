// SPDX-License-Identifier: GPL-2.0-or-later
//
// Axes: all ticks of one in one unit, and round in it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labels, ticksOf } from '../../../reporter/web/src/base/ticks.js';

const [KIB, GIB] = [2 ** 10, 2 ** 30];
const ticks = (kind, least, most) => labels(kind, ticksOf(kind, least, most, 6), least, most);

test('sizes are in one unit with round steps', () => {
    assert.deepEqual(ticks('B', 0, 3.9 * GIB), ['0', '1 GiB', '2 GiB', '3 GiB']);
    assert.deepEqual(ticks('B', 0, 1.46 * GIB), ['0', '0.5 GiB', '1.0 GiB']);
    assert.deepEqual(ticks('B', 0, 5 * KIB), ['0', '1 KiB', '2 KiB', '3 KiB', '4 KiB', '5 KiB']);
});

test('a zoomed axis of time keeps its unit', () => {
    assert.deepEqual(ticks('ms', 100200, 100300), ['100200 ms', '100220 ms', '100240 ms', '100260 ms', '100280 ms', '100300 ms']);
});

test('from two minutes on times are read as a clock', () => {
    assert.deepEqual(ticks('ms', 0, 70000), ['0', '20 s', '40 s', '60 s']);
    assert.deepEqual(ticks('ms', 0, 320000), ['0:00', '1:00', '2:00', '3:00', '4:00', '5:00']);
    assert.deepEqual(ticks('ms', 0, 10_000_000), ['0:00', '30:00', '1:00:00', '1:30:00', '2:00:00', '2:30:00']);
    assert.deepEqual(ticks('ms', 300_000, 301_000), ['5:00.0', '5:00.2', '5:00.4', '5:00.6', '5:00.8', '5:01.0']);
});

for (const kind of ['B', 'ms', 'i']) {
    test(`any axis of ${kind} has a few ticks that are round and apart`, () => {
        for (let n = 0; n < (kind === 'ms' ? 29 : 90); n++) {
            const texts = ticks(kind, 0, 10 * 1.37 ** n);
            const said = `${n}: ${texts}`;
            assert.ok(texts[0] === '0' && texts.length >= 2 && texts.length <= 7, said);
            const figures = texts.slice(1).map((text) => /^([\d.]+) (\D+)$/.exec(text));
            assert.ok(figures.every(Boolean), said);
            assert.equal(new Set(figures.map(([, , unit]) => unit)).size, 1, said);
            const numbers = figures.map(([, number]) => Number(number));
            numbers.forEach((number, i) => assert.ok(Math.abs(number - numbers[0] * (i + 1)) <= 1e-6 * number, said));
            assert.match(numbers[0].toExponential(), /^[125]e/, said);
        }
    });
}
