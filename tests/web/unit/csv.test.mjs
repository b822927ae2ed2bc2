// SPDX-License-Identifier: GPL-2.0-or-later
//
// Tables that are taken into a spreadsheet: each text is text there, whatever a program's names say.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { csv, tabbed } from '../../../reporter/web/src/charts/csv.js';

for (const name of ['=1+1', '+1', '-1+1', '@SUM(A1)', '\t=1', '\r=1', '\n=1']) {
    const rows = [
        ['line', 'bytes'],
        [name, -5],
        ['main', 5],
    ];

    test(`no cell of a file is a formula: ${JSON.stringify(name)}`, () => {
        const lines = csv(rows).split('\r\n');
        assert.ok(lines[1].replace(/^"/, '').startsWith("'"));
        assert.ok(lines[1].endsWith(',-5')); // numbers stay numbers
        assert.deepEqual(lines.slice(2), ['main,5', '']);
    });

    test(`no cell of the clipboard is a formula: ${JSON.stringify(name)}`, () => {
        const lines = tabbed(rows).split('\n');
        assert.match(lines[1], /^'.*\t-5$/);
        assert.deepEqual(lines.slice(2), ['main\t5', '']);
    });
}

test('fields with separators are quoted in a file, and lose them on the clipboard', () => {
    assert.equal(csv([['a,b', 'say "c"', 'd\ne', 1.5]]), '"a,b","say ""c""","d\ne",1.5\r\n');
    assert.equal(tabbed([['a\tb', 'c\nd', 'e\rf', 2]]), 'a b\tc d\te f\t2\n');
});
