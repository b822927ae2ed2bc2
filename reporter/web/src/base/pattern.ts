// SPDX-License-Identifier: GPL-2.0-or-later
//
// Regular expressions that come from a reader or from an address, which may be anybody's. A browser cannot give up an expression that it
// tries, so those that may take for ever on a long name are not begun: what they cost at worst is estimated from how they are written.

const LONGEST = 200;
// Ways to try on a name: two repetitions of any length, and a few choices.
const MOST = 400 ** 2 * 2 ** 8;

/** One of them; both are nothing for ''. */
export type Pattern = { pattern: RegExp | null; problem: string };

/** How many ways there may be to find a text's end, roughly; Infinity for a repeated group. */
function ways(text: string) {
    const plain = text
        .replace(/\\./gs, 'x')
        .replace(/\[[^\]]*\]/g, 'x')
        .replace(/\(\?(?:<?[=!]|:|<\w+>)/g, '(');
    if (/\)\s*(?:[*+]|\{)/.test(plain) || /\\[1-9k]/.test(text)) return Infinity;
    let depth = 0;
    let found = 1;
    for (const [i, character] of [...plain].entries()) {
        if (character === '(') depth++;
        else if (character === ')') depth--;
        else if (character === '*' || character === '+' || (character === '{' && /^\{\d*,?\d*\}/.test(plain.slice(i)))) found *= 400;
        else if (character === '?' && !/[*+?}]/.test(plain[i - 1] ?? '')) found *= 2;
        else if (character === '|' && depth > 0) found *= 2;
    }
    return found;
}

export function patternOf(text: string): Pattern {
    if (!text) return { pattern: null, problem: '' };
    let pattern;
    try {
        pattern = new RegExp(text, 'i');
    } catch {
        return { pattern: null, problem: 'Invalid regular expression' };
    }
    if (text.length > LONGEST) return { pattern: null, problem: `longer than ${LONGEST} characters` };
    if (ways(text) > MOST) return { pattern: null, problem: 'too many repetitions' };
    return { pattern, problem: '' };
}
