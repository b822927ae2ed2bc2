/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of driver_random share: chance, and complaints. Everything is in static memory: the heap stays still.
 */
#ifndef JMSIM_RANDOM_H
#define JMSIM_RANDOM_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../board/jmsim_board.h"

#define PAGE ((uint64_t)4096)

enum release { R32, R35, R36, R38, RM535, RM580 };
extern enum release release;
extern const char *self; /* the program's path */
extern int board;
extern bool rare; /* operations that no CUDA program is known to do: devices that move, mappings that move */

uint64_t chance(uint64_t n); /* below n */
struct jmsim_books books_now(void);
void run_in_child(void (*work)(void)); /* and waits for it */
void run_in_new_program(void);

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s: error %d\n", __FILE__, __LINE__, #condition, errno);                           \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

/* The call fails, in the way that the documentation says. */
#define FAILS(call, with)                                                                                              \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        MUST((long)(call) == -1 && errno == (with));                                                                   \
    } while (0)

/* One random operation, and what must be committed then by the operations so far. */
const char *nvmap_step(void);
uint64_t nvmap_expected(void);
void nvmap_child(void);
int moved_descriptor(int fd);
void nvmap_before_exec(void);

const char *rm_step(void);
uint64_t rm_expected(void);
uint64_t rm_expected_managed(void);
void rm_child(void);

#endif
