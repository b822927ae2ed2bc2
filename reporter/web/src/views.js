// SPDX-License-Identifier: GPL-2.0-or-later
//
// The sections of the page, in order and in groups. A view is added by one import and one line here.

import { About } from './views/about.js';
import { Blocks } from './views/blocks.js';
import { SystemMemory } from './views/balance.js';
import { Calls } from './views/calls.js';
import { Changes, compared, Sides } from './views/compared.js';
import { DeviceMap, Fragmentation } from './views/device.js';
import { OutOfMemory } from './views/oom.js';
import { Leaks } from './views/leaks.js';
import { Libraries } from './views/libraries.js';
import { Lines } from './views/lines.js';
import { BlocksOverTime } from './views/lives.js';
import { Moment } from './views/moment.js';
import { CallersCallees } from './views/callers_callees.js';
import { Others } from './views/others.js';
import { Owners, Roles, Threads } from './views/owners.js';
import { Places } from './views/places.js';
import { Range } from './views/range.js';
import { Scopes } from './views/scopes.js';
import { Sizes } from './views/sizes.js';
import { Snapshots } from './views/snapshots.js';
import { Temporaries } from './views/temporaries.js';
import { Timeline } from './views/timeline.js';

/** @typedef {import('./sections.js').Group} Group */

/** Those of a report of runs. @type {Group[]} */
export const groups = [
    { title: '', views: [[Timeline, '']] },
    {
        title: 'Allocations',
        views: [
            [BlocksOverTime, 'each large block, from allocation to free'],
            [Blocks, 'largest blocks at the chosen moment, and the tensors inside segments'],
            [DeviceMap, 'blocks and holes in device memory'],
            [Fragmentation, 'reserved segments, and the free space in their holes'],
        ],
    },
    { title: 'Out of memory', views: [[OutOfMemory, 'each failed allocation: cause, remedies and the device map']] },
    {
        title: 'Owners',
        views: [
            [Moment, 'peaks, groups and owners at the chosen moment'],
            [Owners, 'bytes and blocks of each owner'],
            [Roles, 'parameters, gradients, optimizer, activations'],
            [Threads, 'bytes allocated by each thread'],
            [Libraries, 'heap, files and device memory of each library, and its mapped size'],
        ],
    },
    {
        title: 'Call sites',
        views: [
            [Calls, 'stacks as a flame graph: all, or one owner, line or block'],
            [Places, 'every stack and block, including those too small for this page'],
            [CallersCallees, 'callers and callees of one function or line'],
            [Lines, 'memory that each line of your Python code allocated'],
            [Scopes, 'memory that starting CUDA and its libraries took'],
            [Temporaries, 'allocated and freed again at once'],
            [Sizes, 'block sizes by owner and line, and the lines that allocate most often'],
            [Range, 'allocated and freed between two moments'],
        ],
    },
    { title: 'Leaks', views: [[Leaks, 'lines that keep growing, and memory still allocated at exit']] },
    {
        title: 'System and run',
        views: [
            [SystemMemory, 'everything in use on the machine, to the byte'],
            [Others, 'figures of htop, jtop, nvidia-smi and massif, and what each does not include'],
            [Snapshots, 'snapshots and peaks, and the regions and marks of the program'],
            [About, 'program, machine, versions, options, warnings'],
        ],
    },
];

/** Those of a comparison. @param {import('./runs/data.js').Difference} difference @returns {Group[]} */
export const comparisonGroups = (difference) => [{ title: '', views: [Changes, Sides, Calls, ...difference.views.map(compared)].map((view) => [view, '']) }];
