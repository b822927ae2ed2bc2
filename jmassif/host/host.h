// SPDX-License-Identifier: GPL-2.0-or-later
//
// Services of a host for the recorder. A host runs the program, intercepts what it does and reports it by
// host/events.h. Each host is a directory beside this file; nothing else depends on which it is.
//
// All functions can be called from inside an event. None of them allocates the program's memory or runs its code.

#pragma once

#include "host/types.h"

// ---- the recorder's own memory -----------------------------------------------------------------------------------

// Never NULL: without memory the host ends the run with one line. `name` is a constant, for statistics by use.
void *host_alloc(const HChar *name, SizeT bytes);
void *host_alloc_zeroed(const HChar *name, SizeT n, SizeT each);
void *host_realloc(const HChar *name, void *p, SizeT bytes); // `p` may be NULL
void host_free(void *p);                                     // `p` may be NULL

// ---- mappings ----------------------------------------------------------------------------------------------------

#if defined(__x86_64__)
#define HOST_PAGE_BYTES ((UWord)4096)
#else
extern UWord host_page_bytes; // of the kernel: 4, 16 or 64 KiB
#define HOST_PAGE_BYTES host_page_bytes
#endif
#define HOST_PAGE_DOWN(address) JM_ROUND_DOWN(address, HOST_PAGE_BYTES)
#define HOST_PAGE_UP(address)   JM_ROUND_UP(address, HOST_PAGE_BYTES)

typedef enum { MAPPED_NOTHING, MAPPED_ANONYMOUS, MAPPED_FILE, MAPPED_SHARED_MEMORY } MappedAs;

typedef struct {
    Addr start, end;
    MappedAs as;
    Bool is_programs; // false: the host's or the recorder's own
    Bool is_readable, is_writable, is_executable;
    Bool is_heap;                // the program's malloc takes blocks from it
    Bool has_code;               // the host has run code in it
    ULong device, inode, offset; // of a file
    const HChar *path;           // of the program's file if known, else NULL; valid until mappings change
} Mapping;

// Find the mapping that holds an address. False if there is none: then `found` is the gap, MAPPED_NOTHING.
Bool host_mapping_at(Addr address, Mapping *found);

// The path of the program's loader while a mapping of the loader's is reported and the stack lacks its frames, because
// the host does not see it map; else NULL.
const HChar *host_unseen_loader(void);

// Report mappings that no hook has seen, such as those of a library that is being loaded.
void host_update_mappings(void);

// Address above which the host's own memory lies, but for the program's main stack, which ends at the same address in
// all processes.
#define HOST_LONGEST_STACK ((Addr)1 << 30)
Addr host_own_memory(void);

// Return whether all of the bytes are mapped for the program and it may read (and write) them.
Bool host_is_readable(Addr address, SizeT bytes);
Bool host_is_writable(Addr address, SizeT bytes);

// ---- the program's heap ------------------------------------------------------------------------------------------

// Map memory for the program's blocks, if the host's malloc takes them from slabs (heap/slab.h); 0 if there is none.
Addr host_map_heap(SizeT bytes);

// Bytes that the program may use of a block of malloc's, at least those it has asked for.
SizeT host_heap_usable(Addr address, SizeT bytes, Bool is_small);

// ---- threads -----------------------------------------------------------------------------------------------------

#define HOST_NO_THREAD 0u

// Return whether other threads of the program run during an event, and may unmap what is being read.
Bool host_others_run(void);

// Call a function of the program that has no arguments and no effect, where others run. 0 elsewhere.
UWord host_call(Addr function);

UInt host_n_threads(void);  // upper bound of thread ids, exclusive
ThreadId host_thread(void); // the one that runs; HOST_NO_THREAD if none does

Addr host_ip(ThreadId tid);
Addr host_sp(ThreadId tid);

// The register that DWARF gives this number on this processor.
UWord host_register(ThreadId tid, UInt dwarf_number);

// The registers that lead from a frame to its caller; `link` is 0 on x86-64, where a call pushes the return address.
typedef struct {
    Addr ip, sp, fp, link;
} HostFrameRegisters;
HostFrameRegisters host_frame(ThreadId tid);

// The thread pointer: FS on x86-64, TPIDR_EL0 on arm64.
UWord host_thread_pointer(ThreadId tid);

// One step from a frame to its caller, by tables that only the host has read (.debug_frame). `ip` is a return address
// less one. False if it has none.
Bool host_may_step(Addr ip);
Bool host_step(HostFrameRegisters *frame, Addr stack_end);

// ---- symbols -----------------------------------------------------------------------------------------------------

// A function at an instruction. The names hold during the call of `add`.
typedef struct {
    Bool is_inlined;
    const HChar *function; // demangled, without a symbol's version; NULL if it is not known
    const HChar *file;     // source file, as the compiler was given it; NULL
    UInt line;
    // A host may leave lines and inlined calls to readers of the trace. If it does and the object has line tables: the
    // address in the object's file, and a text that identifies this version of the file. Else 0 and NULL.
    ULong line_address;
    const HChar *file_version;
} HostFrame;

// Call `add` for the function at an instruction; before it, innermost first, for those inlined there if wanted.
void host_frames_at(Addr ip, Bool with_inlined, void (*add)(void *context, const HostFrame *frame), void *context);

// The object file at an instruction; both NULL if there is none. The names hold until the next call.
void host_object_at(Addr ip, const HChar **path, const HChar **soname);

// Return whether the host has the symbols of the object with its code at [start, end), and its soname or NULL.
Bool host_knows_object(Addr start, Addr end, const HChar **soname);

// Name of the function that begins at an address; NULL if none does.
const HChar *host_function_entry(Addr address);

// Return whether a function is start-up code, outside of which nothing is the program's.
Bool host_is_below_main(const HChar *function);

// ---- the process -------------------------------------------------------------------------------------------------

const HChar *host_name(void);    // "native" or "valgrind"
const HChar *host_version(void); // of Valgrind; NULL for another host
UInt host_n_arguments(void);     // without the program
const HChar *host_argument(UInt i);
const HChar *host_program(void);
const HChar *host_environment(const HChar *name); // of the host's start; NULL if it is not set
HChar **host_program_environment(void);           // "NAME=value", ends with NULL; may be NULL
const HChar *host_start_directory(void);
const HChar *host_launcher(void); // path of the command that was typed; "" if it is not known

// Replace %p, %n and %q{VAR} in a file's name; a relative one is below the directory of the start. The caller frees it.
HChar *host_expand_path(const HChar *option, const HChar *path);

// Let the program use a descriptor that a driver has given it, whatever the host's own limit is.
void host_allow_descriptor(UWord fd);

// Move a descriptor out of the program's reach, closed at exec; returns the new one.
Int host_keep_descriptor(Int fd);

// The program has called exit(), and most of its handlers have run.
void host_exit_called(void);

// The program that a process of the machine records, or keeps the recorder of; 0: none.
Int host_recorded_by(Int pid);

// Programs that this one executes are recorded with this option too.
void host_inherit_option(const HChar *option);

// ---- output ------------------------------------------------------------------------------------------------------

typedef enum { HOST_WARNING, HOST_NOTE, HOST_USAGE, HOST_MONITOR } HostOutput;

// Print a text for the user as it is, on the stream of its kind. HOST_NOTE is silent with -q.
void host_print(HostOutput kind, const HChar *text);

// A mistake of the user: print a line and end with exit status 2.
void host_usage_error(const HChar *text) __attribute__((noreturn));

// An option of the command line that is wrong: print it with a text, and end.
void host_bad_option(const HChar *option, const HChar *text) __attribute__((noreturn));

// A broken invariant of the recorder: print it and end.
void host_fail(const HChar *condition, const HChar *file, UInt line, const HChar *function) __attribute__((noreturn));

#define jm_assert(condition) (LIKELY(condition) ? (void)0 : host_fail(#condition, __FILE__, __LINE__, __func__))
