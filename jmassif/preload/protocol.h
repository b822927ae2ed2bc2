// SPDX-License-Identifier: GPL-2.0-or-later
//
// The protocol between the wrappers in the preload library, which run in the program on the simulated CPU, and the
// tool. A wrapper announces a call, makes it, and reports its result; the tool reads the arguments from the program's
// memory and does the rest. Facts that only the API knows (the current context, a pool's reserve) need a query: the
// tool names a function, and the wrapper calls it.

#pragma once

#define JM_REQ_BASE 0x4a4d0100 // 'J' 'M' and an offset that keeps clear of the public requests in jmassif.h

enum {
    JM_REQ_ENTER = JM_REQ_BASE, // (row, words): a wrapped call begins
    JM_REQ_LEAVE,  // (row, result, words, original address, queries): it has ended. Returns 1: run the queries
    JM_REQ_ANSWER, // (queries): they were run. Returns 1: run the new ones
    JM_REQ_TWIN, // (symbol, address, flags of cuGetProcAddress): returns 1 + row if the address has no wrapper, else 0
    JM_REQ_NVTX, // (call, domain, form, argument): one call of NVTX; returns what the call does
    JM_REQ_NVTX_LIBRARY, // (address, buffer, size): writes the path of the object at the address; returns 1 if NVTX
                         // shall load it
    JM_REQ_CALLOC,   // (number, size of each): this and the next two return the block's address, 0 when out of memory
    JM_REQ_PVALLOC,  // (size)
    JM_REQ_NEW,      // (size, alignment; 0: the default): a failure is not recorded
    JM_REQ_VARIABLE, // (name, value or 0): the program has read its environment
    JM_REQ_EXIT      // (): the program has called exit()
};

// Calls of NVTX; the argument is a text or, for JM_NVTX_END, a range.
enum {
    JM_NVTX_MARK,
    JM_NVTX_PUSH,
    JM_NVTX_POP,
    JM_NVTX_START,
    JM_NVTX_END,
    JM_NVTX_CREATE_DOMAIN,
    JM_NVTX_REGISTER_STRING
};

// Forms of a text.
enum { JM_NVTX_ATTRIBUTES, JM_NVTX_BYTES };

#define JM_MAX_QUERIES 2

// In the wrapper's stack frame; every field is a machine word.
struct jm_query {
    unsigned long function;
    unsigned long args[3]; // may be addresses of `out`
    unsigned long result;
    unsigned long out; // zeroed by the tool
};

struct jm_queries {
    unsigned long n;
    struct jm_query query[JM_MAX_QUERIES];
    unsigned long purpose; // the tool's, to recognise the answer
    unsigned long subject;
};

// The words of a call are its arguments in order; a structure passed by value is spread into its words.
#define JM_MAX_WORDS 12

// Wrapped functions: row numbers.
#define API(library, name, n_args, convention, action, kind, p, s) JM_ROW_##name,
enum {
#include "preload/cuda_api.def"
    JM_N_ROWS
};
#undef API
