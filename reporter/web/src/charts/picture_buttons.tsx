// SPDX-License-Identifier: GPL-2.0-or-later
//
// The buttons that save what is shown as a picture.

import { useState } from 'preact/hooks';
import { download } from '../base/download.js';
import { png } from './picture.js';

/** `what`: "timeline"; `draw`: the file of an SVG. */
export function PictureButtons({ what, draw }: { what: string; draw: () => string }) {
    const [problem, setProblem] = useState('');
    const name = `jmassif-${what.replaceAll(' ', '-')}`;
    const fail = (error: unknown) => setProblem(` ${error instanceof Error ? error.message : String(error)}`);
    const asSvg = () => download(`${name}.svg`, new Blob([draw()], { type: 'image/svg+xml' }));
    const asPng = () => void png(draw()).then((blob) => download(`${name}.png`, blob), fail);
    const button = (kind: string, onClick: () => void) => (
        <button type="button" aria-label={`Save the ${what} as ${kind}`} onClick={onClick}>
            {kind}
        </button>
    );
    return (
        <span class="tools buttons">
            <span class="quiet">Picture: </span>
            {button('SVG', asSvg)}
            {button('PNG', asPng)}
            <span class="problem" role="status">
                {problem}
            </span>
        </span>
    );
}
