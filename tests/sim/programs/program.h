/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the test programs share: a call that must succeed, and the simulation's figures as text. */
#ifndef JMSIM_PROGRAM_H
#define JMSIM_PROGRAM_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../cuda_abi.h"
#include "../board/jmsim_board.h"
#include "../jmsim.h"

#define NOINLINE __attribute__((noinline))
#define KIB(n)   ((size_t)(n) << 10)
#define MIB(n)   ((size_t)(n) << 20)

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        int must_code_ = (call);                                                                                       \
        if (must_code_ != 0) {                                                                                         \
            fprintf(stderr, "%s:%d: %s: error %d\n", __FILE__, __LINE__, #call, must_code_);                           \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* Of libjmassif.so, where that is preloaded: then a profile has a mark, and so a snapshot, at each point. */
void jmassif_mark(const char *text) __attribute__((weak));

/* Where the board has device nodes: a line with what its kernel has committed. */
static inline void print_books(void)
{
    struct jmsim_books books;
    int board = open(JMSIM_BOARD_NODE, O_RDWR | O_CLOEXEC);
    if (board >= 0 && ioctl(board, JMSIM_BOARD_BOOKS, &books) == 0)
        printf("committed %llu\n", (unsigned long long)books.committed_bytes);
    if (board >= 0)
        close(board);
}

/* Prints "point NAME" and a line "KEY VALUE" for each figure. */
static inline void print_stats(const char *point)
{
    struct jmsim_stats now;
    if (jmassif_mark)
        jmassif_mark(point);
    jmsim_stats(&now);
    printf("point %s\n", point);
#define PRINT_AMOUNT(kind)                                                                                             \
    printf(#kind " %llu\n" #kind "_blocks %llu\n", (unsigned long long)now.kind.bytes,                                 \
           (unsigned long long)now.kind.blocks);
    PRINT_AMOUNT(device)
    PRINT_AMOUNT(array)
    PRINT_AMOUNT(managed)
    PRINT_AMOUNT(pinned)
    PRINT_AMOUNT(pool)
    PRINT_AMOUNT(vmm)
    PRINT_AMOUNT(imported)
    PRINT_AMOUNT(heap)
#undef PRINT_AMOUNT
    printf("pool_used %llu\npool_reserved %llu\n", (unsigned long long)now.pool_used_bytes,
           (unsigned long long)now.pool_reserved_bytes);
    printf("context_device %llu\nslab_reserved %llu\nboard_used %llu\n", (unsigned long long)now.context_device_bytes,
           (unsigned long long)now.slab_reserved_bytes, (unsigned long long)now.board_used_bytes);
    print_books();
}

#endif
