// SPDX-License-Identifier: GPL-2.0-or-later
//
// Marks between which tests/bench/steps counts instructions.

#ifndef JM_BENCH_MARK_H
#define JM_BENCH_MARK_H

#define MARK 0x4a4d

#endif
