// SPDX-License-Identifier: GPL-2.0-or-later
//
// The call tree in a picture: what the reader has before him, from the frame on that he has enlarged.

import { escaped, fitted, MARGIN, number, rgb, title, INK, WIDTH } from './picture.js';

/** @typedef {import('./picture.js').Picture} Picture */
/** @typedef {import('../runs/tree.js').TreeNode} TreeNode */
/** @typedef {{name: string, value: number, node: TreeNode, children: Frame[]}} Frame `value`: as wide as this */
/** @typedef {{colour: (node: TreeNode) => string, about: (node: TreeNode) => string, all: string}} Look `all`: what the root of all is called */

const ROW = 19;
const SIZE = 11.5;
const NARROWEST = 0.6; // pixels
const ALL = '#dfe3e8';

/** @param {Picture} picture @param {Frame} root @param {Frame[]} callers of the root, the outermost first, each as wide as all @param {Look} look */
export function drawFlames(picture, root, callers, look) {
    const room = WIDTH - 2 * MARGIN;
    const scale = room / (root.value || 1);
    const top = picture.top;
    let rows = callers.length;
    /** @param {Frame} node @param {number} x @param {number} width @param {number} depth @param {boolean} isFaded */
    const draw = (node, x, width, depth, isFaded) => {
        const y = top + depth * ROW;
        const words = width > 24 ? fitted(node.name || look.all, width - 6, SIZE) : '';
        const shown = words && `<text x="${number(x + 3)}" y="${number(y + 13)}" font-size="${SIZE}" fill="${INK.text}">${escaped(words)}</text>`;
        const box = `<rect x="${number(x)}" y="${number(y)}" width="${number(width - (width > 2 ? 0.5 : 0))}" height="${ROW - 1}" fill="${node.name ? rgb(look.colour(node.node)) : ALL}"${isFaded ? ' opacity="0.6"' : ''}/>`;
        picture.add(`<g>${title(look.about(node.node))}${box}${shown}</g>`);
    };
    callers.forEach((caller, depth) => draw(caller, MARGIN, room, depth, true));
    /** @type {[Frame, number, number][]} */
    const pending = [[root, MARGIN, callers.length]];
    while (pending.length) {
        const [node, left, depth] = /** @type {[Frame, number, number]} */ (pending.pop());
        const width = node.value * scale;
        if (width < NARROWEST) continue;
        draw(node, left, width, depth, false);
        rows = Math.max(rows, depth + 1);
        let x = left;
        for (const child of node.children) {
            pending.push([child, x, depth + 1]);
            x += child.value * scale;
        }
    }
    picture.top = top + rows * ROW + 10;
}
