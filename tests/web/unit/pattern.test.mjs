// SPDX-License-Identifier: GPL-2.0-or-later
//
// Regular expressions from a reader or an address.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { patternOf } from '../../../reporter/web/src/base/pattern.js';
import { expressionOf, problemOf } from '../../../reporter/web/src/runs/filter.js';

test('what is no expression, or too long a one, is said so', () => {
    assert.equal(patternOf('(').problem, 'Invalid regular expression');
    assert.equal(patternOf('a'.repeat(200)).problem, '');
    assert.equal(patternOf('a'.repeat(201)).problem, 'longer than 200 characters');
});

test('nothing is no expression', () => assert.deepEqual(patternOf(''), { pattern: null, problem: '' }));

test('a word before a colon names the field to look into', () => {
    assert.deepEqual(expressionOf('file:net'), { fields: ['file'], pattern: /net/i, problem: '' });
    assert.deepEqual(expressionOf('owner:^(tensor|app)$').fields, ['owner']);
    const all = ['function', 'file', 'owner', 'thread'];
    assert.deepEqual(expressionOf('std::vector'), { fields: all, pattern: /std::vector/i, problem: '' });
    assert.deepEqual(expressionOf('forward').fields, all);
});

test('the problem of a filter is that of either expression', () => {
    assert.equal(problemOf({ only: 'file:(', except: '', isGiven: true }), 'Invalid regular expression');
    assert.equal(problemOf({ only: 'a', except: '(', isGiven: true }), 'Invalid regular expression');
    assert.equal(problemOf({ only: 'a', except: 'b', isGiven: true }), '');
});
