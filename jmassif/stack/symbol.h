// SPDX-License-Identifier: GPL-2.0-or-later
//
// Code addresses to frames. An address is symbolised once, when it is first seen (its library may be unloaded later),
// and becomes one frame, or several where the compiler inlined calls. When a library is unmapped its addresses are
// forgotten, so that another one at the same place gets frames of its own.

#ifndef JM_SYMBOL_H
#define JM_SYMBOL_H

#include "base/compat.h"
#include "stack/owner.h"

typedef UInt FrameId;

// What stands at a code address.
typedef struct {
    Addr ip;
    FrameId *inlined; // all frames, innermost first, if there is more than one
    FrameId frame;    // the innermost
    UShort n_frames;
    Bool is_forgotten;
    Bool is_allocator : 1;  // its frames are not shown: the preload library, and what --alloc-fn names
    Bool is_ignored : 1;    // --ignore-fn names it
    Bool has_object : 1;    // it lies in a mapped object file
    Bool is_evaluator : 1;  // CPython's evaluation loop
    Bool is_below_main : 1; // start-up code that calls main, or nothing that is code
} Location;

// Holds until the next call.
const Location *jm_symbol_locate(Addr ip);

// The code of the preload libraries, ours and the core's.
typedef struct {
    Addr start;
    SizeT bytes;
} Preload;
#define JM_N_PRELOADS 2
extern Preload jm_preloads[JM_N_PRELOADS];

// Whether a file is one of them, by its name.
Bool jm_symbol_is_preload_library(const HChar *path);

// Whether the address lies there, which most of a deep stack's are asked about.
static inline Bool jm_symbol_is_preload(Addr ip)
{
    Bool is_inside = False;
    for (UInt i = 0; i < JM_N_PRELOADS; i++)
        is_inside |= ip - jm_preloads[i].start < jm_preloads[i].bytes;
    return is_inside;
}

// The frame of a Python function at a line.
FrameId jm_symbol_python_frame(const HChar *function, const HChar *file, UInt line);

// The frame that stands for a mapped file: an object file's function is called "mapped", that of other files
// "mapped-data".
FrameId jm_symbol_mapped_frame(const HChar *path, Bool is_object);

// The frame that stands for a thread, by its number; 0: threads that are not told apart. A new one each time.
FrameId jm_symbol_thread_frame(UInt number);

// The owner that the rules give to a frame; JM_OWNER_NONE: none.
OwnerId jm_symbol_host_owner(FrameId frame);
OwnerId jm_symbol_device_owner(FrameId frame);
OwnerId jm_symbol_driver_owner(FrameId frame);
RoleId jm_symbol_role(FrameId frame);
Code jm_symbol_code(FrameId frame);

// An executable mapping came. If it is a file's, it becomes an object, to be told by a later call of `tell`: the core
// reads its soname and symbols only after the last of the file's mappings, and of some files never (`all`: these too).
void jm_symbol_object_mapped(Addr start, SizeT bytes);
void jm_symbol_tell_objects(Bool all);

// Called with each object that is told and where its code starts. `soname` may be NULL; both names belong to the core
// and do not last.
void jm_symbol_on_object(void (*callback)(const HChar *soname, const HChar *path, Addr code));

// What was at these addresses is there no more.
void jm_symbol_forget(Addr start, SizeT bytes);

// Memory was unmapped. True if code was, and so addresses were forgotten.
Bool jm_symbol_unmapped(Addr start, SizeT bytes);

void jm_symbol_stats(void); // tells what it keeps (stats.h)

#endif
