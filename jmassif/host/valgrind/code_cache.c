// SPDX-License-Identifier: GPL-2.0-or-later
//
// Translations of an earlier run in place of VEX's. The core asks VEX for each translation by one function, and the
// linker leads these calls here (--wrap). The result depends on the program's bytes, their address, and the key
// (code_key.c): VEX keeps no state between translations, host code can lie anywhere, and its helpers are at the
// addresses at which the tool is linked. So a translation is taken from the cache only if the program's bytes are equal
// to those it was made from. Jump targets of an earlier run (indirect.c) are guesses that the code checks itself.
//
// VEX translates all other superblocks: redirected ones (the core puts code before them), self-checking ones, and those
// made while a debugger may set breakpoints, or while the core traces or counts superblocks or follows the stack
// pointer; also code that is not in a file or is writable. With --vex-guest-chase=yes nothing is kept: superblocks go
// on behind jumps and depend on redirections elsewhere. Undecodable code is not kept either: VEX reports it.

#include "host/valgrind/code_cache.h"
#include "base/libc.h"
#include "base/options.h"
#include "host/valgrind/code_file.h"

#define VGDB_FULL 2

static enum { OFF, NOT_OPENED, ON } state;

static Bool chases(void)
{
#if defined(HAVE_VEX_GUEST_CHASE)
    return VG_(clo_vex_control).guest_chase;
#else
    return VG_(clo_vex_control).guest_chase_thresh > 0;
#endif
}

// Return whether only the code and the key shape the translation.
static Bool is_plain(const VexTranslateArgs *args)
{
    return !args->preamble_function && !args->instrument2 && args->traceflags == 0 && !args->addProfInc &&
           VG_(clo_vgdb) != VGDB_FULL && (Addr)args->guest_bytes == args->guest_bytes_addr;
}

// Exclude unnamed and deleted files, memory files and devices: programs put generated code into them.
static Bool is_of_a_library(const NSegment *mapping)
{
    const HChar *name = VG_(am_get_filename)(mapping);
    return name && name[0] == '/' && VG_(strncmp)(name, "/memfd:", 7) != 0 && VG_(strncmp)(name, "/dev/", 5) != 0 &&
           !VG_(strstr)(name, " (deleted)");
}

static Bool is_translatable; // the superblock that VEX is translating

void jm_code_cache_instrumenting(const IRSB *block)
{
    is_translatable = block->jumpkind != Ijk_NoDecode;
}

static void keep(const VexTranslateArgs *args, const VexTranslateResult *result)
{
    const NSegment *mapping = jm_mapped_code(args->guest_bytes_addr); // look it up again: the core moves segments
    if (mapping && is_translatable && result->status == VexTransOK && result->n_sc_extents == 0 &&
        result->offs_profInc == -1 && args->guest_extents->n_used == 1 &&
        args->guest_extents->base[0] == args->guest_bytes_addr && *args->host_bytes_used > 0)
        jm_code_file_add(args, result, mapping);
}

VexTranslateResult __real_LibVEX_Translate(VexTranslateArgs *args);

VexTranslateResult __wrap_LibVEX_Translate(VexTranslateArgs *args)
{
    if (state == NOT_OPENED) {
        ULong key[2];
        state = jm_code_key(key, args) && jm_code_file_open(key, jm_options.code_cache_bytes) ? ON : OFF;
    }
    const NSegment *mapping = state == ON && is_plain(args) ? jm_mapped_code(args->guest_bytes_addr) : NULL;
    if (!mapping)
        return __real_LibVEX_Translate(args);
    const CodeRecord *record = jm_code_file_find(args->guest_bytes_addr, mapping);
    if (record && record->n_host <= (UInt)args->host_bytes_size) {
        memcpy(args->host_bytes, record + 1, record->n_host);
        *args->host_bytes_used = record->n_host;
        *args->guest_extents = (VexGuestExtents){.base = {record->address}, .len = {record->n_guest}, .n_used = 1};
        return record->result;
    }
    const Bool is_kept = is_of_a_library(mapping);
    is_translatable = False;
    VexTranslateResult result = __real_LibVEX_Translate(args);
    if (is_kept)
        keep(args, &result);
    return result;
}

// Stop the cache when a debugger talks to the core: its breakpoints are calls in superblocks that are made from now on.
void __real_server_main(void);

void __wrap_server_main(void)
{
    jm_code_cache_end();
    __real_server_main();
}

void jm_code_cache_init(void)
{
    if (chases())
        jm_options.code_cache = NULL;
    if (jm_options.code_cache)
        state = NOT_OPENED;
}

void jm_code_cache_end(void)
{
    if (state == ON)
        jm_code_file_close();
    state = OFF;
}
