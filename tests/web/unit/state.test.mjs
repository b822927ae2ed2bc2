// SPDX-License-Identifier: GPL-2.0-or-later
//
// Addresses: a state is read as it was written, and of a hostile address nothing is read but names and short values.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { read, written } from '../../../reporter/web/src/runs/state.js';

const pairs = (fragment) => [...read(fragment).state];

test('a state is readable', () => {
    const state = new Map([
        ['at', '2'],
        ['open', 'owners,calls'],
        ['line', '/app/run.py:7 (step)'],
    ]);
    assert.equal(written(state, ''), 'at=2&open=owners,calls&line=/app/run.py:7+(step)');
    assert.equal(written(state, 'libraries'), `libraries&${written(state, '')}`);
    assert.equal(written(new Map(), ''), '');
});

for (const value of ['a b', 'a+b', 'a&b=c', '#', '%', '%2B', 'ä€😀', '<b>"\'', 'a\n\0b', '=', '?x@y:z/']) {
    test(`a value is read as it was written: ${JSON.stringify(value)}`, () => {
        const fragment = written(
            new Map([
                ['owner', value],
                ['calls.search', value],
            ]),
            'calls',
        );
        assert.match(fragment, /^[^#\s<>"]*$/);
        const { anchor, state } = read(fragment);
        assert.deepEqual([anchor, ...state], ['calls', ['owner', value], ['calls.search', value]]);
    });
}

test('half a character is left out', () => assert.equal(written(new Map([['owner', 'a\ud800b']]), ''), 'owner=ab'));

test('parts that cannot be read are passed over', () => {
    assert.deepEqual(read('%E0%A4%A&at=%ZZ&owner=x'), { anchor: '', state: new Map([['owner', 'x']]) });
    assert.deepEqual(pairs('&&&===&a=b=c&=&.=.&at'), [['a', 'b=c']]);
    assert.deepEqual(pairs('__proto__=1&Owner=1&0=1&at=1&at=2'), [['at', '1']]);
    assert.deepEqual(pairs(`at=${'9'.repeat(401)}&with=${'9'.repeat(400)}`), [['with', '9'.repeat(400)]]);
});

test('too long an address is none', () => {
    assert.deepEqual(pairs(`at=1&${'a'.repeat(7995)}`), [['at', '1']]);
    assert.deepEqual(read(`at=1&${'a'.repeat(7996)}`), { anchor: '', state: new Map() });
});
