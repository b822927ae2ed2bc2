// SPDX-License-Identifier: GPL-2.0-or-later
//
// The core refuses the program's descriptors from its own limit on, and nvmap gives buffers numbers above it. So the
// limit is raised, and what lay above the old one is kept out of the program's reach.

#include "host/valgrind/descriptors.h"
#include "base/kernel.h"
#include "base/text.h"
#include "driver/file.h"
#include "host/host.h"
#include "host/valgrind/compat.h"

#include <asm/resource.h>

// Descriptors above its limit that the core reserves for itself (m_main.c).
#define CORES_OWN 12

static ProcessLimit started_with, raised;

// Descriptors of the core and of the trace, which were above the core's limit until it was raised. The program must not
// close or replace them.
static UWord kept_out[4 * CORES_OWN];
static UInt n_kept_out;
static Int limit_for_all; // the core's limit, while it is lowered for one call; else 0

static void protect(UWord first, UWord end, UWord not_this)
{
    FileStatus found;
    for (UWord fd = first; fd < end && n_kept_out < sizeof kept_out / sizeof kept_out[0]; fd++)
        if (fd != not_this && jm_file_status(fd, &found) && !jm_driver_fd(fd))
            kept_out[n_kept_out++] = fd;
}

static Bool is_kept_out(UWord fd)
{
    for (UInt i = 0; i < n_kept_out; i++)
        if (kept_out[i] == (UInt)fd)
            return True;
    return False;
}

void host_allow_descriptor(UWord fd)
{
    static Bool has_failed;
    ProcessLimit limit;
    if (fd < (UWord)VG_(fd_hard_limit) || has_failed || !jm_limit(RLIMIT_NOFILE, &limit))
        return;
    // At most 2^20, since a program may close every descriptor up to the limit, one by one.
    UWord most = limit.hard < 1 << 20 ? limit.hard : 1 << 20;
    raised = (ProcessLimit){most, limit.hard};
    if (fd + CORES_OWN < most && jm_limit_set(RLIMIT_NOFILE, &raised)) {
        if (!started_with.soft)
            started_with = limit;
        protect(VG_(fd_hard_limit), limit.soft, fd);
        VG_(fd_hard_limit) = most - CORES_OWN;
        return;
    }
    has_failed = True;
    jm_message(
        "jmassif: this board gives buffers the descriptors 1024 and up, and the limit of open files is too low for\n"
        "jmassif: Valgrind to let the program map and close them; run first:  ulimit -n 65536\n");
}

// The core refuses descriptors beyond its limit, so the limit is lowered during a call that would hit a kept_out one.
static Bool hits_kept_out(UInt number, const UWord *args)
{
    switch (number) {
    case __NR_close:
        return is_kept_out(args[0]);
#ifdef __NR_dup2
    case __NR_dup2:
#endif
    case __NR_dup3:
        return is_kept_out(args[1]);
    case __NR_close_range:
        return n_kept_out && (UInt)args[1] >= kept_out[0];
    default:
        return False;
    }
}

void jm_descriptors_before_syscall(UInt number, const UWord *args)
{
    if (!started_with.soft)
        return;
    if (number == __NR_execve || number == __NR_execveat)
        jm_limit_set(RLIMIT_NOFILE, &started_with);
    if (hits_kept_out(number, args)) {
        limit_for_all = VG_(fd_hard_limit);
        VG_(fd_hard_limit) = kept_out[0];
    }
}

// Closes the part of a close_range that the lowered limit kept the core from closing.
static void close_between(UInt first, UInt last, UWord flags)
{
    if (last >= (UInt)VG_(fd_hard_limit))
        last = VG_(fd_hard_limit) - 1;
    UWord from = first > kept_out[0] ? first : kept_out[0];
    for (UInt i = 0; i <= n_kept_out; i++) {
        UWord to = i < n_kept_out ? kept_out[i] : (UWord)last + 1;
        if (to > (UWord)last + 1)
            to = (UWord)last + 1;
        if (from < to)
            jm_kernel_call(__NR_close_range, from, to - 1, flags, 0, 0);
        if (i < n_kept_out && kept_out[i] >= from)
            from = kept_out[i] + 1;
    }
}

void jm_descriptors_after_syscall(UInt number, const UWord *args, Bool has_failed)
{
    if (!started_with.soft)
        return;
    if (number == __NR_execve || number == __NR_execveat)
        jm_limit_set(RLIMIT_NOFILE, &raised); // an exec returns only if it failed
    if (!limit_for_all)
        return;
    VG_(fd_hard_limit) = limit_for_all;
    limit_for_all = 0;
    if (number == __NR_close_range && (!has_failed || (UInt)args[0] >= kept_out[0]))
        close_between((UInt)args[0], (UInt)args[1], args[2]);
}
