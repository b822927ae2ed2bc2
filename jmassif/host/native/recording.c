// SPDX-License-Identifier: GPL-2.0-or-later
//
// See recording.h. A process is recorded once: the tables of the recorder's modules refer to records of one trace.

#include "host/native/recording.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "base/options.h"
#include "base/text.h"
#include "host/events.h"
#include "host/host.h"
#include "host/native/got.h"
#include "host/native/keeper.h"
#include "host/native/mappings.h"
#include "host/native/process.h"
#include "host/native/signals.h"
#include "host/native/thread.h"
#include "trace/trace_file.h"

#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#define MAX_PATH 4096

static Bool is_waiting, began_late;

void jm_native_wait_for_start(void)
{
    is_waiting = True;
    jm_native_state = NATIVE_IS_OFF;
}

void jm_native_refuse_start(void)
{
    is_waiting = False;
    if (jm_native_state == NATIVE_IS_OFF)
        jm_native_state = NATIVE_HAS_ENDED;
}

Bool jm_native_began_late(void)
{
    return began_late;
}

void jm_native_record(const NativeRegisters *registers)
{
    event_started();
    NativeThread *first = jm_native_new_thread();
    jm_native_mappings_start(began_late);
    jm_native_thread_begins(first, registers);
    jm_native_state = NATIVE_RECORDS;
    jm_native_keeper_start();
}

// ---- the trace's path ----------------------------------------------------------------------------------------

// A relative path is below the present directory; only that of an option is below the first one.
static HChar *whole_path(const HChar *path)
{
    HChar directory[MAX_PATH], whole[3 * MAX_PATH];
    SizeT n = 0;
    if (*path == '/' || jm_is_error(jm_kernel_call(__NR_getcwd, (UWord)directory, sizeof directory, 0, 0, 0)))
        return jm_text_copy("jm.native", path);
    for (const HChar *d = directory; *d; d++) { // as host_expand_path reads it
        if (*d == '%')
            whole[n++] = '%';
        whole[n++] = *d;
    }
    jm_format(whole + n, sizeof whole - n, "/%s", path);
    return jm_text_copy("jm.native", whole);
}

// The recorder would end the program.
static Bool has_bad_escape(const HChar *path)
{
    for (const HChar *p = path; (p = strchr(p, '%')) != NULL; p += 2)
        if (p[1] != 'p' && p[1] != 'n' && p[1] != '%')
            return True;
    return False;
}

// Return why no trace can be written there; 0 if one can.
static Int path_error(void)
{
    HChar *path = host_expand_path("--jmassif-out-file", jm_options.out_file);
    FileStatus status;
    Int file = 0;
    if (!jm_path_status(path, &status) || S_ISREG(status.mode) || S_ISDIR(status.mode)) { // a pipe would wait
        file = jm_open(path, O_CREAT | O_WRONLY, S_IRUSR | S_IWUSR);
        jm_close(file);
    }
    host_free(path);
    return jm_is_error(file) ? -file : 0;
}

// ---- start and stop ------------------------------------------------------------------------------------------

typedef struct {
    const HChar *path;
    const NativeRegisters *registers;
    Int error;
} Start;

static void start(void *job)
{
    Start *s = job;
    const HChar *option = jm_options.out_file;
    if (s->path)
        jm_options.out_file = whole_path(s->path);
    s->error = s->path && has_bad_escape(s->path) ? EINVAL : path_error();
    if (s->error) {
        jm_options.out_file = option;
        return;
    }
    jm_options.keep_going = True; // later errors are messages
    is_waiting = False;
    began_late = True;
    jm_native_record(s->registers);
}

static Int state_error(void)
{
    switch (jm_native_state) {
    case NATIVE_IS_OFF:
        return 0;
    case NATIVE_RECORDS:
        return EALREADY;
    case NATIVE_HAS_ENDED:
        return EBUSY;
    default:
        return ENOTSUP;
    }
}

// Begin the recording of a process that was started with --start=off. NULL: the trace is that of the options. 0 or an
// error: EALREADY if it is recorded now, EBUSY if it was, ENOTSUP without --start=off, EINVAL for a % in the path that
// is not %p, %n or %%, or that of opening the file.
NATIVE_EXPORT Int jmassif_start(const HChar *path);
Int jmassif_start(const HChar *path)
{
    NativeRegisters registers;
    NATIVE_REGISTERS(&registers);
    Start s = {path, &registers, state_error()};
    ULong mask;
    if (s.error)
        return s.error;
    if (!jm_native_is_process()) // a child of vfork
        return ENOTSUP;
    jm_native_patch(); // reads the list of objects
    jm_native_signals_hold(&mask);
    jm_native_lock(jm_thread_id());
    s.error = state_error(); // of two threads, one begins
    if (!s.error)
        jm_native_on_own_stack(start, &s);
    if (s.error)
        jm_native_unlock();
    else
        jm_native_end();
    jm_kernel_call(__NR_rt_sigprocmask, SIG_SETMASK, (UWord)&mask, 0, sizeof mask, 0);
    return s.error;
}

static void stop(void *job)
{
    (void)job;
    if (!jm_native_is_process())
        return;
    jm_native_end_threads();
    event_stopped();
    jm_native_state = NATIVE_HAS_ENDED;
    jm_native_keeper_stop();
}

// End the recording, if there is one; the program goes on.
NATIVE_EXPORT void jmassif_stop(void);
void jmassif_stop(void)
{
    NATIVE_RECORD(stop, NULL);
}

NATIVE_EXPORT Int jmassif_records(void);
Int jmassif_records(void)
{
    return jm_native_state == NATIVE_RECORDS;
}

// ---- fork ----------------------------------------------------------------------------------------------------

void jm_native_wait_in_child(void)
{
    if (!is_waiting || jm_native_is_locked()) // another thread was about to begin
        return;
    jm_native_process_forked();
    jm_native_state = NATIVE_IS_OFF; // the kernel has wiped it
}
