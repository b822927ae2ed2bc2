// SPDX-License-Identifier: GPL-2.0-or-later
//
// The program, its machine, how it was recorded, and warnings.

import { Terms, Words } from '../charts/section.js';
import type { Page } from '../runs/page.js';
import { ReadyTables } from './ready.js';

const View = ({ page: { whole } }: { page: Page }) => (
    <>
        <Terms rows={whole.head.facts} />
        {whole.head.notes.map(({ text, severity }) => (
            <p key={text} class={severity === 'note' ? 'quiet' : 'problem'}>
                <Words text={text} />
            </p>
        ))}
        <ReadyTables run={whole} id={About.id} />
    </>
);

export const About = { id: 'about', title: 'About this run', isWhole: true, View };
