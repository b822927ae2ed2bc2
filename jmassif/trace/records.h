// SPDX-License-Identifier: GPL-2.0-or-later
//
// Letters of the trace's records (docs/trace-format.md). A forked child's trace starts with copies of its parent's
// definitions and block history: the `inherited` records.

#pragma once

#define JM_RECORDS(X) /* name, letter, inherited */                                                                    \
    X(MANIFEST, 'm', True)                                                                                             \
    X(GROUP, 'g', True)                                                                                                \
    X(STRING, 's', True)                                                                                               \
    X(FRAME, 'f', True)                                                                                                \
    X(SOURCE, 'h', True)                                                                                               \
    X(NODES, 'n', True)                                                                                                \
    X(ACCOUNT_TYPE, 'K', True)                                                                                         \
    X(ACCOUNTS, 'a', True)                                                                                             \
    X(THREAD, 'T', True)                                                                                               \
    X(ROLE, 'r', True)                                                                                                 \
    X(TOTALS, 't', False)                                                                                              \
    X(SNAPSHOT, 'S', False)                                                                                            \
    X(BALANCES, 'c', False)                                                                                            \
    X(PAGES, 'v', False)                                                                                               \
    X(SNAPSHOT_END, 'E', False)                                                                                        \
    X(PEAK, 'P', False)                                                                                                \
    X(AT_PEAK, 'd', False)                                                                                             \
    X(CHECKSUM, '#', False)                                                                                            \
    X(BLOCK, '+', True)                                                                                                \
    X(BLOCK_END, '-', True)                                                                                            \
    X(LARGE, 'l', True)                                                                                                \
    X(SCOPE, 'x', False)                                                                                               \
    X(SCOPE_SUM, 'X', False)                                                                                           \
    X(FAILURE, 'e', False)                                                                                             \
    X(COUNTER, 'k', False)                                                                                             \
    X(SYSTEM, 'y', False)                                                                                              \
    X(MARK, 'M', False)                                                                                                \
    X(STAGE, 'A', False)                                                                                               \
    X(REGION_BEGIN, 'B', False)                                                                                        \
    X(REGION_END, 'D', False)                                                                                          \
    X(REGION_SUM, 'R', False)                                                                                          \
    X(EXHAUSTION, 'O', False)                                                                                          \
    X(EXHAUSTION_FIGURE, 'o', False)                                                                                   \
    X(COPY, 'I', False)                                                                                                \
    X(COPY_END, 'i', False)                                                                                            \
    X(COPY_SUM, 'C', False)                                                                                            \
    X(CONTAINER, 'H', False)                                                                                           \
    X(OUTCOME, 'q', False)                                                                                             \
    X(MAPPED, 'W', False)                                                                                              \
    X(UNMAPPED, 'w', False)                                                                                            \
    X(OBJECT, 'L', False)                                                                                              \
    X(OBJECT_END, 'U', False)                                                                                          \
    X(END, 'Z', False)

#define JM_RECORD_ENUM(name, letter, inherited) RECORD_##name = letter,
typedef enum { JM_RECORDS(JM_RECORD_ENUM) } Record;
#undef JM_RECORD_ENUM
