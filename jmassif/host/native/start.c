// SPDX-License-Identifier: GPL-2.0-or-later
//
// The start of a recorded process, and host.h for its arguments, environment, descriptors and output. The command
// `jmassif` preloads this library and gives it options by the environment:
//
//     JMASSIF_NATIVE    options, a line each; without it this library does nothing but call the real functions.
//                       With --help it prints the recorder's options, and the program does not run.

#include "base/array.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "base/options.h"
#include "base/text.h"
#include "host/events.h"
#include "host/host.h"
#include "host/native/got.h"
#include "host/native/hook.h"
#include "host/native/process.h"
#include "host/native/recording.h"
#include "host/native/signals.h"
#include "host/native/thread.h"

#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#define MAX_PATH     4096
#define OPTIONS_NAME "JMASSIF_NATIVE"

static Int n_arguments;
static HChar **arguments, **environment_at_start;
static HChar start_directory[MAX_PATH];
static const HChar *launcher = "";
static Int process_id;
static Bool is_quiet, traces_children, starts_off;

#if !defined(__x86_64__)
UWord host_page_bytes = 4096;
#endif

// ---- arguments and environment -------------------------------------------------------------------------------

const HChar *host_name(void)
{
    return "native";
}

const HChar *host_version(void)
{
    return NULL;
}

UInt host_n_arguments(void)
{
    return n_arguments > 0 ? n_arguments - 1 : 0;
}

const HChar *host_argument(UInt i)
{
    return arguments[1 + i];
}

const HChar *host_program(void)
{
    return n_arguments > 0 ? arguments[0] : "";
}

HChar **host_program_environment(void)
{
    return environment_at_start;
}

static const HChar *value_of(HChar **environment, const HChar *name)
{
    SizeT n = strlen(name);
    for (HChar **e = environment; e && *e; e++)
        if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
            return *e + n + 1;
    return NULL;
}

const HChar *host_environment(const HChar *name)
{
    return value_of(environment_at_start, name);
}

const HChar *host_start_directory(void)
{
    return start_directory;
}

const HChar *host_launcher(void)
{
    return launcher;
}

void host_inherit_option(const HChar *option)
{
    for (HChar **e = environment_at_start; e && *e; e++)
        if (strncmp(*e, OPTIONS_NAME "=", sizeof OPTIONS_NAME) == 0) {
            SizeT bytes = strlen(*e) + strlen(option) + 2;
            HChar *longer = host_alloc("jm.native", bytes);
            jm_format(longer, bytes, "%s\n%s", *e, option);
            *e = longer;
        }
}

// Copy a name's value from the environment, for %q{NAME}.
static const HChar *expand_variable(const HChar *option, const HChar *at, HChar *to, SizeT room)
{
    HChar name[256];
    const HChar *end = strchr(at, '}');
    if (*at != '{' || !end || end - at > (Word)sizeof name)
        host_bad_option(option, "%q must be followed by a variable's name in braces");
    jm_text_cut(name, at + 1, end - at);
    const HChar *value = host_environment(name);
    if (!value)
        host_bad_option(option, "%q names a variable that is not set");
    jm_text_cut(to, value, room);
    return end + 1;
}

HChar *host_expand_path(const HChar *option, const HChar *path)
{
    static UInt n_files;
    HChar expanded[2 * MAX_PATH];
    SizeT n = 0;
    expanded[0] = 0;
    if (*path != '/')
        jm_format(expanded, sizeof expanded, "%s/", start_directory);
    n = strlen(expanded);
    for (const HChar *at = path; *at && n + 32 < sizeof expanded; n = strlen(expanded)) {
        if (*at != '%') {
            expanded[n] = *at++;
            expanded[n + 1] = 0;
            continue;
        }
        switch (at[1]) {
        case 'p':
            jm_format(expanded + n, sizeof expanded - n, "%d", jm_process_id());
            break;
        case 'n':
            jm_format(expanded + n, sizeof expanded - n, "%u", n_files++);
            break;
        case '%':
            jm_format(expanded + n, sizeof expanded - n, "%%");
            break;
        case 'q':
            at = expand_variable(option, at + 2, expanded + n, sizeof expanded - n);
            continue;
        default:
            host_bad_option(option, "expected %p, %n, %q{VARIABLE} or %%");
        }
        at += 2;
    }
    return jm_text_copy("jm.native", expanded);
}

// ---- descriptors ---------------------------------------------------------------------------------------------

static Int own_descriptor = -1;

void host_allow_descriptor(UWord fd)
{
    (void)fd; // the program's limit is the kernel's
}

// High up, where programs do not look, and closed by exec.
Int host_keep_descriptor(Int fd)
{
    ProcessLimit limit;
    UWord most = jm_limit(RLIMIT_NOFILE, &limit) && limit.soft < MAX_OWN_DESCRIPTOR ? limit.soft : MAX_OWN_DESCRIPTOR;
    Long high = jm_kernel_call(__NR_fcntl, fd, F_DUPFD_CLOEXEC, most > 64 ? most - 32 : most / 2, 0, 0);
    if (!jm_is_error(high)) {
        jm_close(fd);
        fd = high;
    }
    return own_descriptor = fd;
}

Bool jm_native_is_own_descriptor(Int fd)
{
    return fd >= 0 && fd == own_descriptor && jm_native_state == NATIVE_RECORDS;
}

void jm_native_lose_descriptor(Int fd)
{
    if (fd == own_descriptor && jm_native_is_process())
        own_descriptor = -1;
}

Bool jm_native_is_process(void)
{
    return jm_process_id() == process_id;
}

void jm_native_process_forked(void)
{
    process_id = jm_process_id();
    own_descriptor = -1; // the parent's
}

// ---- output --------------------------------------------------------------------------------------------------

static FileStatus error_output; // at the start

// The program may have another file at this descriptor by now.
void host_print(HostOutput kind, const HChar *text)
{
    FileStatus now = error_output;
    if (kind == HOST_NOTE && is_quiet)
        return;
    if (kind != HOST_USAGE && jm_file_status(2, &now) && (now.dev != error_output.dev || now.ino != error_output.ino))
        return;
    jm_write(kind == HOST_USAGE ? 1 : 2, text, strlen(text));
}

__attribute__((noreturn)) static void leave(Int status)
{
    jm_kernel_call(__NR_exit_group, status, 0, 0, 0, 0);
    __builtin_unreachable();
}

void host_usage_error(const HChar *text)
{
    jm_message("jmassif: %s\n", text);
    leave(2);
}

void host_bad_option(const HChar *option, const HChar *text)
{
    jm_message("jmassif: bad option %s: %s\n", option, text);
    leave(2);
}

void host_fail(const HChar *condition, const HChar *file, UInt line, const HChar *function)
{
    jm_message("jmassif: %s:%u (%s): %s: this is a bug; the program is ended\n", file, line, function, condition);
    leave(99);
}

void host_exit_called(void) {}

// ---- the start -----------------------------------------------------------------------------------------------

// Take a variable out of the program's environment: what it executes is not recorded, nor does it see us.
static void hide_variable(HChar **environment, const HChar *name)
{
    SizeT n = strlen(name);
    HChar **to = environment;
    for (HChar **e = environment; *e; e++)
        if (strncmp(*e, name, n) != 0 || (*e)[n] != '=')
            *to++ = *e;
    *to = NULL;
}

// The user's own preloads stay. Ours is the first in the list.
static void hide_preload(HChar **environment)
{
    HChar *list = (HChar *)value_of(environment, "LD_PRELOAD");
    if (!list)
        return;
    HChar *rest = strpbrk(list, ": ");
    if (rest)
        memmove(list, rest + 1, strlen(rest + 1) + 1);
    else
        hide_variable(environment, "LD_PRELOAD");
}

static void take_option(HChar *option)
{
    if (strcmp(option, "--trace-children=yes") == 0)
        traces_children = True;
    else if (strcmp(option, "--quiet") == 0)
        is_quiet = True;
    else if (strcmp(option, "--show-below-main=yes") == 0)
        jm_options.show_below_main = True;
    else if (strcmp(option, "--start=off") == 0)
        starts_off = True;
    else if (strcmp(option, "--help") == 0) {
        jm_options_print_usage();
        leave(0);
    } else if (strncmp(option, "--launcher=", 11) == 0)
        launcher = option + 11;
    else if (!jm_options_process(option))
        host_bad_option(option, "unknown option");
}

static void take_options(const HChar *lines)
{
    HChar *line = jm_text_copy("jm.native", lines); // options keep pointers into it
    while (line && *line) {
        HChar *end = strchr(line, '\n');
        if (end)
            *end = 0;
        if (strstr(line, " --"))
            jm_note("jmassif: " OPTIONS_NAME " has one option per line, so this is one: %s\n", line);
        if (*line)
            take_option(line);
        line = end ? end + 1 : NULL;
    }
    jm_options_finish();
    if (jm_options.time_unit == TIME_INSTRUCTIONS)
        host_usage_error("--time-unit=i needs Valgrind, which counts instructions: add --valgrind");
}

static void find_start_directory(void)
{
    if (jm_is_error(jm_kernel_call(__NR_getcwd, (UWord)start_directory, sizeof start_directory, 0, 0, 0)))
        strcpy(start_directory, "/");
}

// The C library calls constructors with main's arguments.
static __attribute__((constructor(101))) void start(Int argc, HChar **argv, HChar **environment)
{
    const HChar *options = value_of(environment, OPTIONS_NAME);
    if (!options)
        return;
    n_arguments = argc;
    arguments = argv;
    environment_at_start = environment;
    process_id = jm_process_id();
    jm_file_status(2, &error_output);
    find_start_directory();
    jm_options_init();
    take_options(options);
    if (!traces_children) {
        hide_variable(environment, OPTIONS_NAME);
        hide_preload(environment);
    }
    if (!jm_options.heap)
        jm_native_pass_heap_by();
    NativeRegisters registers;
    NATIVE_REGISTERS(&registers);
    jm_native_lock(jm_thread_id());
    jm_native_own_stack_start();
    jm_native_state_start();
    jm_native_watch_process();
    jm_native_watch_signals();
    if (starts_off) {
        jm_native_wait_for_start();
        jm_native_unlock();
    } else {
        jm_native_record(&registers);
        jm_native_end();
    }
    jm_native_patch();
}
