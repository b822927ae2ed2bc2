// SPDX-License-Identifier: GPL-2.0-or-later
//
// dlopen, dlmopen, dlclose, dlsym and dlvsym. The C library knows the caller by the return address: $ORIGIN,
// RUNPATH and RTLD_NEXT are the caller's. So each of them begins with a few instructions that change nothing, and a
// function that decides where to go on: in a hook, where the caller does not matter, else in the C library's function,
// which returns to the caller itself.

#define _GNU_SOURCE
#include "base/kernel.h"
#include "base/libc.h"
#include "base/text.h"
#include "host/native/cuda_functions.h"
#include "host/native/got.h"
#include "host/native/loaded.h"
#include "host/native/loader.h"
#include "host/native/mappings.h"
#include "host/native/pending.h"
#include "host/native/requests.h"
#include "host/native/stubs.h"
#include "host/native/thread.h"

#include "preload/protocol.h"

#include <dlfcn.h>

enum { DLOPEN, DLMOPEN, DLCLOSE, DLSYM, DLVSYM, N_ORIGINALS };

// The C library's function. Never by dlsym, which libraries of the program replace, too: two that ask each other never
// end.
static Addr original(UInt which)
{
    static const HChar *const names[] = {"dlopen", "dlmopen", "dlclose", "dlsym", "dlvsym"};
    static Addr originals[N_ORIGINALS];
    if (UNLIKELY(!originals[which]))
        originals[which] = jm_native_next(names[which]);
    return originals[which];
}

// ---- dlopen --------------------------------------------------------------------------------------------------

static Bool is_patch_due; // a library has been loaded whose entries have no stubs yet

static void find_changes(void *job)
{
    (void)job;
    jm_native_mappings_changed();
}

// Objects have come or gone.
static void objects_changed(void)
{
    if (!jm_native_patch())
        __atomic_store_n(&is_patch_due, True, __ATOMIC_RELEASE);
    NATIVE_RECORD(find_changes, NULL);
}

void jm_native_patch_if_due(void)
{
    if (__atomic_load_n(&is_patch_due, __ATOMIC_RELAXED) && __atomic_exchange_n(&is_patch_due, False, __ATOMIC_ACQ_REL))
        objects_changed();
}

static void settle_at(void *place)
{
    jm_native_pending_settle(*(CallPlace *)place);
}

static void settle(CallPlace *place)
{
    if (jm_native_n_pending)
        NATIVE_RECORD(settle_at, place);
}

#define PATH_BYTES 4096

typedef struct {
    const HChar *name;
    Addr caller;
    NativeObject from; // the caller's object
    Bool is_found, is_program, is_loaded;
    Bool has_rpath, has_rpath_from_start; // any object but the program
} Wanted;

static Bool look_at_object(NativeObject *o, void *context)
{
    Wanted *w = context;
    const Bool is_program = !o->path[0];
    if (w->caller >= o->start && w->caller < o->end) {
        w->from = *o;
        w->is_found = True;
        w->is_program = is_program;
    }
    if (jm_text_equal(w->name, o->path) || (o->soname && jm_text_equal(w->name, o->soname)))
        w->is_loaded = True;
    if (!is_program && o->rpath && !o->runpath) {
        w->has_rpath = True;
        w->has_rpath_from_start |= o->is_from_start;
    }
    return False;
}

// The directory of an object's file, with a slash.
static void find_origin(const NativeObject *object, HChar *to, SizeT size)
{
    Long n = 0;
    if (object->path[0])
        jm_text_cut(to, object->path, size);
    else if ((n = jm_read_link("/proc/self/exe", to, size - 1)) >= 0)
        to[n] = '\0';
    HChar *name = strrchr(to, '/');
    (name ? name + 1 : to)[0] = '\0';
}

static Bool is_there(const HChar *directory, const HChar *name)
{
    HChar path[PATH_BYTES];
    FileStatus status;
    jm_format(path, sizeof path, "%s/%s", directory, name);
    return jm_path_status(path, &status);
}

// Return whether a file of this name, or a directory with variants for processors, is in the object's RUNPATH.
// Variables besides $ORIGIN count as such a directory.
static Bool may_be_in_runpath(const NativeObject *object, const HChar *name)
{
    static const HChar *const origins[] = {"$ORIGIN", "${ORIGIN}"};
    HChar origin[PATH_BYTES] = "", element[PATH_BYTES], directory[PATH_BYTES];
    find_origin(object, origin, sizeof origin);
    for (const HChar *d = object->runpath; *d;) {
        const HChar *end = strchr(d, ':');
        SizeT n = end ? (SizeT)(end - d) : strlen(d);
        jm_text_cut(element, d, n < sizeof element ? n + 1 : sizeof element);
        jm_text_cut(directory, element, sizeof directory);
        for (UInt i = 0; i < 2; i++)
            if (strncmp(element, origins[i], strlen(origins[i])) == 0)
                jm_format(directory, sizeof directory, "%s%s", origin, element + strlen(origins[i]));
        if (strchr(directory, '$') || is_there(directory, name) || is_there(directory, "glibc-hwcaps") ||
            is_there(directory, "tls"))
            return True;
        d += n + (end != NULL);
    }
    return False;
}

// Return whether dlopen would do something else for another caller: it searches the RUNPATH of the caller's object; the
// RPATH of that and of the objects by which it came, for the library and for what that needs.
static Bool depends_on_caller(const HChar *name, Addr caller)
{
    if (!name || !*name)
        return False;
    if (strchr(name, '$'))
        return True;
    Wanted w = {.name = name, .caller = caller};
    jm_native_each_object(look_at_object, &w);
    if (w.is_loaded)
        return False;
    if (!w.is_found || (!w.is_program && (w.from.is_from_start ? w.has_rpath_from_start : w.has_rpath)))
        return True;
    return !strchr(name, '/') && w.from.runpath && may_be_in_runpath(&w.from, name);
}

static void *recorded_dlopen(const char *name, int mode)
{
    const UWord words[JM_MAX_WORDS] = {(UWord)name};
    NativeRegisters here;
    NATIVE_REQUEST(JM_REQ_ENTER, JM_ROW_dl_open_worker, words, 0, 0);
    void *handle = ((void *(*)(const char *, int))original(DLOPEN))(name, mode);
    objects_changed();
    NATIVE_REGISTERS(&here);
    jm_native_leave(&here, JM_ROW_dl_open_worker, (UWord)handle, words, original(DLOPEN));
    return handle;
}

typedef struct {
    const HChar *name;
    const CallPlace *place;
    Addr caller;
} Pending;

static void dlopen_begins(void *job)
{
    const Pending *p = job;
    jm_native_pending_begin(p->name, *p->place, p->caller);
}

__attribute__((used)) Addr jm_native_dlopen_way(const HChar *name, UWord mode, UWord unused, Addr caller,
                                                CallPlace *place);
Addr jm_native_dlopen_way(const HChar *name, UWord mode, UWord unused, Addr caller, CallPlace *place)
{
    if (!jm_native_covers_functions())
        return original(DLOPEN);
    settle(place);
    jm_native_patch_if_due();
    if (mode & RTLD_DEEPBIND)
        jm_native_binds_deeply();
    if (!depends_on_caller(name, caller))
        return (Addr)recorded_dlopen;
    __atomic_store_n(&is_patch_due, True, __ATOMIC_RELEASE);
    NATIVE_RECORD(dlopen_begins, &((Pending){name, place, caller}));
    return original(DLOPEN);
}

// With a namespace as the first argument; the objects there are not this library's concern.
__attribute__((used)) Addr jm_native_dlmopen_way(UWord space, const HChar *name, UWord mode, Addr caller,
                                                 CallPlace *place);
Addr jm_native_dlmopen_way(UWord space, const HChar *name, UWord mode, Addr caller, CallPlace *place)
{
    if (jm_native_covers_functions()) {
        settle(place);
        NATIVE_RECORD(dlopen_begins, &((Pending){name, place, caller}));
    }
    return original(DLMOPEN);
}

NATIVE_EXPORT int dlclose(void *handle)
{
    int result = ((int (*)(void *))original(DLCLOSE))(handle);
    if (jm_native_covers_functions())
        objects_changed();
    return result;
}

// ---- dlsym ---------------------------------------------------------------------------------------------------

static void *covered(const char *name, void *found)
{
    Int row = found ? jm_native_row(name) : -1;
    if (row >= 0 && jm_native_is_in((Addr)found, jm_native_functions[row].soname))
        return (void *)jm_native_stub(row, (Addr)found);
    return found;
}

static void *original_dlsym(void *handle, const char *name)
{
    return ((void *(*)(void *, const char *))original(DLSYM))(handle, name);
}

static void *covered_dlsym(void *handle, const char *name)
{
    return covered(name, original_dlsym(handle, name));
}

static void *covered_dlvsym(void *handle, const char *name, const char *version)
{
    return covered(name, ((void *(*)(void *, const char *, const char *))original(DLVSYM))(handle, name, version));
}

// With RTLD_NEXT, the caller wants to be called in place of the function, and has been patched itself. With
// RTLD_DEFAULT the search begins with the program's own objects, whoever calls; what only the caller can see, it finds
// by itself.
static Bool is_to_cover(void *handle, const HChar *name, CallPlace *place)
{
    if (!jm_native_covers_functions())
        return False;
    settle(place);
    jm_native_patch_if_due();
    return name && handle != RTLD_NEXT && jm_native_row(name) >= 0 &&
           (handle != RTLD_DEFAULT || original_dlsym(handle, name));
}

__attribute__((used)) Addr jm_native_dlsym_way(void *handle, const HChar *name, UWord unused, Addr caller,
                                               CallPlace *place);
Addr jm_native_dlsym_way(void *handle, const HChar *name, UWord unused, Addr caller, CallPlace *place)
{
    return is_to_cover(handle, name, place) ? (Addr)covered_dlsym : original(DLSYM);
}

__attribute__((used)) Addr jm_native_dlvsym_way(void *handle, const HChar *name, UWord unused, Addr caller,
                                                CallPlace *place);
Addr jm_native_dlvsym_way(void *handle, const HChar *name, UWord unused, Addr caller, CallPlace *place)
{
    return handle != RTLD_DEFAULT && is_to_cover(handle, name, place) ? (Addr)covered_dlvsym : original(DLVSYM);
}

// ---- ways in -------------------------------------------------------------------------------------------------

// clang-format off
#if defined(__x86_64__)
#define WAY_IN(name)                                      \
    __asm__(".text\n"                                     \
            ".balign 16\n"                                \
            ".globl " #name "\n"                          \
            ".type " #name ", @function\n"                \
            #name ":\n"                                   \
            ".cfi_startproc\n"                            \
            "    endbr64\n"                               \
            "    movq (%rsp), %rcx\n"                     \
            "    leaq 8(%rsp), %rax\n"                    \
            "    pushq %rdi\n"                            \
            "    .cfi_adjust_cfa_offset 8\n"              \
            "    pushq %rsi\n"                            \
            "    .cfi_adjust_cfa_offset 8\n"              \
            "    pushq %rdx\n"                            \
            "    .cfi_adjust_cfa_offset 8\n"              \
            "    pushq %rbp\n" /* a CallPlace */          \
            "    .cfi_adjust_cfa_offset 8\n"              \
            "    pushq %rax\n"                            \
            "    .cfi_adjust_cfa_offset 8\n"              \
            "    movq %rsp, %r8\n"                        \
            "    call jm_native_" #name "_way\n"          \
            "    addq $16, %rsp\n"                        \
            "    .cfi_adjust_cfa_offset -16\n"            \
            "    popq %rdx\n"                             \
            "    .cfi_adjust_cfa_offset -8\n"             \
            "    popq %rsi\n"                             \
            "    .cfi_adjust_cfa_offset -8\n"             \
            "    popq %rdi\n"                             \
            "    .cfi_adjust_cfa_offset -8\n"             \
            "    jmp *%rax\n"                             \
            ".cfi_endproc\n"                              \
            ".size " #name ", .-" #name "\n")
#elif defined(__aarch64__)
#define WAY_IN(name)                                      \
    __asm__(".text\n"                                     \
            ".balign 16\n"                                \
            ".globl " #name "\n"                          \
            ".type " #name ", %function\n"                \
            #name ":\n"                                   \
            ".cfi_startproc\n"                            \
            "    hint #34\n"                              \
            "    mov x16, sp\n"                           \
            "    mov x17, x29\n"                          \
            "    stp x29, x30, [sp, #-64]!\n"             \
            "    .cfi_def_cfa_offset 64\n"                \
            "    .cfi_offset x29, -64\n"                  \
            "    .cfi_offset x30, -56\n"                  \
            "    mov x29, sp\n"                           \
            "    stp x0, x1, [sp, #16]\n"                 \
            "    str x2, [sp, #32]\n"                     \
            "    stp x16, x17, [sp, #40]\n" /* a CallPlace */ \
            "    mov x3, x30\n"                           \
            "    add x4, sp, #40\n"                       \
            "    bl jm_native_" #name "_way\n"            \
            "    mov x16, x0\n"                           \
            "    ldp x0, x1, [sp, #16]\n"                 \
            "    ldr x2, [sp, #32]\n"                     \
            "    ldp x29, x30, [sp], #64\n"               \
            "    .cfi_restore x29\n"                      \
            "    .cfi_restore x30\n"                      \
            "    .cfi_def_cfa_offset 0\n"                 \
            "    br x16\n"                                \
            ".cfi_endproc\n"                              \
            ".size " #name ", .-" #name "\n")
#endif
// clang-format on

WAY_IN(dlopen);
WAY_IN(dlmopen);
WAY_IN(dlsym);
WAY_IN(dlvsym);
