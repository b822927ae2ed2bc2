// SPDX-License-Identifier: GPL-2.0-or-later
//
// Code addresses to frames. An address is symbolised once, when it is first seen, because its library may be unloaded
// later. It yields one frame, or several where the compiler inlined calls. Unmapping a library drops its addresses, so
// that another library at the same place gets frames of its own.

#pragma once

#include "attribution/owner.h"

typedef UInt FrameId;

// A symbolised code address.
typedef struct {
    Addr ip;
    FrameId *inlined; // all frames, innermost first; NULL if there is only one
    FrameId frame;    // the innermost frame
    UShort n_frames;
    Bool is_forgotten;
    Bool is_allocator : 1;  // hidden: the preload library, and functions of --alloc-fn
    Bool is_ignored : 1;    // a function of --ignore-fn
    Bool has_object : 1;    // inside a mapped object file
    Bool is_below_main : 1; // start-up code that calls main, or not in an object
} Location;

// Symbolise an address. The result is valid until the next call.
const Location *jm_symbol_locate(Addr ip);

// Code of the preload libraries, ours and the core's.
typedef struct {
    Addr start;
    SizeT bytes;
} Preload;
#define JM_N_PRELOADS 2
extern Preload jm_preloads[JM_N_PRELOADS];

Bool jm_symbol_is_preload_library(const HChar *path);

// True if the address is in a preload library. It is inline because deep stacks check most of their frames.
static inline Bool jm_symbol_is_preload(Addr ip)
{
    Bool is_inside = False;
    for (UInt i = 0; i < JM_N_PRELOADS; i++)
        is_inside |= ip - jm_preloads[i].start < jm_preloads[i].bytes;
    return is_inside;
}

FrameId jm_symbol_python_frame(const HChar *function, const HChar *file, UInt line);

// The frame of a mapped file. Its function is "mapped" for an object file, "mapped-data" for others.
FrameId jm_symbol_mapped_frame(const HChar *path, Bool is_object);

// A new frame for a thread, by its number; 0 for all threads that share one.
FrameId jm_symbol_thread_frame(UInt number);

// What the rules of owners say of a frame.
const Ruling *jm_symbol_ruling(FrameId frame);

// Record an executable mapping. A mapped file becomes an object, written to the trace by a later
// jm_symbol_tell_objects(): the core reads soname and symbols only after the last of a file's mappings, and for some
// files never. `all` writes these too.
void jm_symbol_object_mapped(Addr start, SizeT bytes);
void jm_symbol_tell_objects(Bool all);

// Forget the symbols of these addresses: the code there is gone.
void jm_symbol_forget(Addr start, SizeT bytes);

// Handle unmapped memory. True if it held code, so addresses were forgotten.
Bool jm_symbol_unmapped(Addr start, SizeT bytes);
