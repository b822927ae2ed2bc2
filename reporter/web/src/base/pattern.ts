// SPDX-License-Identifier: GPL-2.0-or-later
//
// Regular expressions that come from a reader or from an address.

const LONGEST = 200;

/** One of them; both are nothing for ''. */
export type Pattern = { pattern: RegExp | null; problem: string };

export function patternOf(text: string): Pattern {
    if (!text) return { pattern: null, problem: '' };
    if (text.length > LONGEST) return { pattern: null, problem: `longer than ${LONGEST} characters` };
    try {
        return { pattern: new RegExp(text, 'i'), problem: '' };
    } catch {
        return { pattern: null, problem: 'Invalid regular expression' };
    }
}
