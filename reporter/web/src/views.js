// SPDX-License-Identifier: GPL-2.0-or-later
//
// The sections of the page, in order and in groups. A view is added by one import and one line here.

import { About } from './views/about.js';
import { Blocks } from './views/blocks.js';
import { BooksOfMachine } from './views/books.js';
import { Calls } from './views/calls.js';
import { Changes } from './views/changes.js';
import { compared } from './views/compared.js';
import { DeviceMap } from './views/device.js';
import { Exhaustion } from './views/exhaustion.js';
import { Fragmentation } from './views/fragmentation.js';
import { Leaks } from './views/leaks.js';
import { Libraries } from './views/libraries.js';
import { Lines } from './views/lines.js';
import { BlocksOverTime } from './views/lives.js';
import { Moment } from './views/moment.js';
import { Neighbours } from './views/neighbours.js';
import { Others } from './views/others.js';
import { Owners } from './views/owners.js';
import { Places } from './views/places.js';
import { Range } from './views/range.js';
import { Roles } from './views/roles.js';
import { Scopes } from './views/scopes.js';
import { Sides } from './views/sides.js';
import { Sizes } from './views/sizes.js';
import { Snapshots } from './views/snapshots.js';
import { Temporaries } from './views/temporaries.js';
import { Threads } from './views/threads.js';
import { Timeline } from './views/timeline.js';

/** @typedef {import('./sections.js').Group} Group */

/** Those of a report of runs. @type {Group[]} */
export const groups = [
    { title: '', views: [[Timeline, '']] },
    {
        title: 'Block by block',
        views: [
            [BlocksOverTime, 'each large block, from its allocation to its free'],
            [Blocks, 'what was live at the chosen moment, tensors in their segments'],
            [DeviceMap, 'where blocks and holes lie in device memory'],
            [Fragmentation, 'what segments reserve, and what of it is free in holes'],
        ],
    },
    { title: 'Why memory ran out', views: [[Exhaustion, 'each failed allocation: its arithmetic, what would have helped, the map at that moment']] },
    {
        title: 'Whose it is',
        views: [
            [Moment, 'the chosen moment in a sentence, by group and by owner'],
            [Owners, 'bytes and blocks of each owner'],
            [Roles, 'parameters, gradients, optimizer, activations'],
            [Threads, 'what each thread has allocated'],
            [Libraries, 'what each library allocated, and what it costs to have it mapped'],
        ],
    },
    {
        title: 'Where it was allocated',
        views: [
            [Calls, 'stacks as a flame graph, of all or of one owner, line or block'],
            [Places, 'every stack and block, also those that are too small for this page'],
            [Neighbours, 'who calls one function or line, and whom it calls'],
            [Lines, "what each line of the program's Python caused"],
            [Scopes, 'what it cost to start CUDA and its libraries'],
            [Temporaries, 'allocated and freed again at once'],
            [Sizes, 'how large the blocks are that owners and lines ask for, and who asks most often'],
            [Range, 'what came, what went and what only passed between two moments'],
        ],
    },
    { title: 'What stays', views: [[Leaks, 'held at the end, and what keeps rising']] },
    {
        title: 'The machine and the run',
        views: [
            [BooksOfMachine, 'everything that is in use on it, to the byte'],
            [Others, 'htop, jtop, nvidia-smi, massif: their figures, and what each leaves out'],
            [Snapshots, 'the moments of this page, and what the program named'],
            [About, 'program, machine, versions, options, oddities'],
        ],
    },
];

/** Those of a comparison. @param {import('./runs/data.js').Difference} difference @returns {Group[]} */
export const comparisonGroups = (difference) => [{ title: '', views: [Changes, Sides, Calls, ...difference.views.map(compared)].map((view) => [view, '']) }];
