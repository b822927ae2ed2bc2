// SPDX-License-Identifier: GPL-2.0-or-later
//
// The sections of the page, in order. A view is added by one import and one name here.

import { About } from './views/about.js';
import { Blocks } from './views/blocks.js';
import { BooksOfMachine } from './views/books.js';
import { Calls } from './views/calls.js';
import { Changes } from './views/changes.js';
import { compared } from './views/compared.js';
import { DeviceMap } from './views/device.js';
import { Exhaustion } from './views/exhaustion.js';
import { Fragmentation } from './views/fragmentation.js';
import { Headline } from './views/headline.js';
import { Leaks } from './views/leaks.js';
import { Libraries } from './views/libraries.js';
import { Lines } from './views/lines.js';
import { BlocksOverTime } from './views/lives.js';
import { Owners } from './views/owners.js';
import { Roles } from './views/roles.js';
import { Scopes } from './views/scopes.js';
import { Sides } from './views/sides.js';
import { Snapshots } from './views/snapshots.js';
import { Temporaries } from './views/temporaries.js';
import { Timeline } from './views/timeline.js';

/** Those of a report of runs. @type {import('./views/view.js').ViewClass[]} */
export const views = [
    Headline,
    Timeline,
    Exhaustion,
    BooksOfMachine,
    Calls,
    Owners,
    Lines,
    Libraries,
    Roles,
    DeviceMap,
    Fragmentation,
    BlocksOverTime,
    Blocks,
    Leaks,
    Temporaries,
    Scopes,
    Snapshots,
    About,
];

/** Those of a comparison. @param {import('./runs/data.js').Difference} difference @returns {import('./views/view.js').ViewClass[]} */
export const comparisonViews = (difference) => [Changes, Sides, Calls, ...difference.views.map(compared)];
