// SPDX-License-Identifier: GPL-2.0-or-later
//
// The sections of the page, in order. A view is added by one line here.

import { about } from './views/about.js';
import { blocks } from './views/blocks.js';
import { books } from './views/books.js';
import { calls } from './views/calls.js';
import { changes } from './views/changes.js';
import { compared } from './views/compared.js';
import { device } from './views/device.js';
import { exhaustion } from './views/exhaustion.js';
import { fragmentation } from './views/fragmentation.js';
import { headline } from './views/headline.js';
import { leaks } from './views/leaks.js';
import { libraries } from './views/libraries.js';
import { lines } from './views/lines.js';
import { lives } from './views/lives.js';
import { owners } from './views/owners.js';
import { roles } from './views/roles.js';
import { scopes } from './views/scopes.js';
import { sides } from './views/sides.js';
import { snapshots } from './views/snapshots.js';
import { temporaries } from './views/temporaries.js';
import { timeline } from './views/timeline.js';

/** Those of a report of runs. @type {import('./page.js').View[]} */
export const views = [
    headline,
    timeline,
    exhaustion,
    books,
    calls,
    owners,
    lines,
    libraries,
    roles,
    device,
    fragmentation,
    lives,
    blocks,
    leaks,
    temporaries,
    scopes,
    snapshots,
    about,
];

/** Those of a comparison. @param {import('./comparison.js').Difference} difference @returns {import('./page.js').View[]} */
export const comparisonViews = (difference) => [changes, sides, calls, ...difference.views.map(compared)];
