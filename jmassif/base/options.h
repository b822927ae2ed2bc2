// SPDX-License-Identifier: GPL-2.0-or-later
//
// Every option of the recorder, parsed and checked in one place. The rest of the tool reads `jm_options`.

#ifndef JM_OPTIONS_H
#define JM_OPTIONS_H

#include "base/compat.h"

typedef enum { TIME_MS, TIME_INSTRUCTIONS, TIME_BYTES } TimeUnit;
typedef enum { MEMORY_AUTO, MEMORY_UNIFIED, MEMORY_DISCRETE } MemoryModel;

typedef struct {
    Bool heap;
    Bool stacks;
    Bool check_unwinding; // against the core's
    Bool anonymize;
    Bool low_footprint;
    Bool threads;      // stacks begin with their thread
    Bool pages;        // sample what is resident
    Bool driver;       // follow ioctls of GPU drivers
    Bool python;       // look for Python frames
    Bool nvtx;         // be NVTX's tool library
    Int heap_admin;    // bytes of header assumed per heap block
    Int depth;         // frames kept per stack, innermost first; 0: all
    Int max_snapshots; // per tenfold growth of the running time
    Int detailed_freq;
    Int interval_ms;           // least time between two snapshots
    ULong large_bytes;         // blocks of this size and more get block records
    double threshold;          // percent; for the reports only
    UInt low_memory_per_mille; // of the memory: with less left a snapshot is due; 0: never
    TimeUnit time_unit;
    MemoryModel memory;
    const HChar *out_file;
    Bool keep_going;          // run the program when there is no trace
    const HChar *owners_file; // NULL: built-in rules only
    const HChar *code_cache;  // the directory of what is kept between runs, "yes": the usual one; NULL: nothing is kept
    ULong code_cache_bytes;   // at most
    const HChar *board_root;  // before the paths of the board's files; "": none
    XArray *alloc_fns;        // of HChar*
    XArray *ignore_fns;       // of HChar*
} Options;

extern Options jm_options;

// Sets the defaults. Called once, before any option is read.
void jm_options_init(void);

// VG_(needs_command_line_options) callbacks.
Bool jm_options_process(const HChar *arg);
void jm_options_print_usage(void);
void jm_options_print_debug_usage(void);

// Checks what depends on more than one option, and prints the notes about options that massif has and jmassif does
// differently. Exits with status 2 on a contradiction.
void jm_options_finish(void);

// One line on stderr and exit status 2: what, where, the mend.
__attribute__((noreturn)) void jm_usage_error(const HChar *format, ...) PRINTF_CHECK(1, 2);

#endif
