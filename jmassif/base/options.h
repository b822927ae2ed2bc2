// SPDX-License-Identifier: GPL-2.0-or-later
//
// All options of the recorder, parsed in one place. The rest of the tool reads `jm_options`.

#pragma once

#include "base/array.h"

typedef enum { TIME_INSTRUCTIONS, TIME_MS, TIME_BYTES } TimeUnit;
typedef enum { MEMORY_AUTO, MEMORY_UNIFIED, MEMORY_DISCRETE } MemoryModel;

typedef struct {
    Bool heap;
    Bool anonymize;
    Bool low_footprint;
    Bool threads;      // begin each stack with its thread
    Bool pages;        // sample resident pages
    Bool driver;       // follow ioctls of GPU drivers
    Bool python;       // look for Python frames
    Bool nvtx;         // act as NVTX's tool library
    Int heap_admin;    // bytes of header assumed per heap block
    Int depth;         // frames kept per stack, innermost first; 0: all
    Int max_snapshots; // per tenfold growth of the running time
    Int interval_ms;   // minimum between two snapshots
    ULong large_bytes; // blocks of this size and more get block records
    Int low_memory;    // percent of total memory; take a snapshot when less is left; 0: never
    TimeUnit time_unit;
    MemoryModel memory;
    const HChar *out_file;
    Bool keep_going;          // run the program even without a trace
    const HChar *owners_file; // NULL: built-in rules only
    const HChar *code_cache;  // directory of the translation cache; "yes": the default one; NULL: no cache
    ULong code_cache_bytes;   // limit of the cache
    const HChar *board_root;  // prefix of paths of the board's files; "": no prefix
    // Set by the host.
    Bool show_below_main; // keep start-up code in stacks
    Array *alloc_fns;     // of HChar*
    Array *ignore_fns;    // of HChar*
} Options;

extern Options jm_options;

// Set the defaults. Call once, before any option is parsed.
void jm_options_init(void);

// For the host: an option of the command line, and the list of --help.
Bool jm_options_process(const HChar *arg);
Bool jm_options_is_own(const HChar *arg); // without an effect
void jm_options_print_usage(void);

// Compute derived options.
void jm_options_finish(void);

// Print one line with the problem, its place and the remedy to stderr, and exit with status 2.
__attribute__((noreturn)) void jm_usage_error(const HChar *format, ...) __attribute__((format(printf, 1, 2)));
