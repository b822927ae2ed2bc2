// SPDX-License-Identifier: GPL-2.0-or-later
//
// The trace's file: its name and buffer, the tail, fork and exec, and write errors. Errors must not disturb a running
// program, so signals of failed writes are suppressed.

#include "trace/trace_file.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "base/options.h"
#include "base/text.h"
#include "host/host.h"
#include "trace/records.h"

#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#define FORMAT_VERSION     "jmassif-trace 4\n"
#define BUFFER_BYTES       (256 * 1024)
#define SMALL_BUFFER_BYTES (32 * 1024) // --low-footprint

static HChar *buffer;
static SizeT capacity;
static SizeT used;
static SizeT summed; // bytes of the buffer that are in the checksum
static UInt checksum = 1;
static UInt settled_checksum; // checksum without the tail
static Int fd = -1;
static ULong device, inode; // of the file
static ULong file_bytes;    // without the tail
static Bool is_regular;
static Bool in_tail; // the buffer's records belong to the tail
static SizeT tail_bytes;
static Bool is_created;
static Bool given_up;
static Bool is_program_started;
static HChar *path;

// State of a forked child's file before it exists.
static Bool is_pending;
static HChar *parent_path;
static Long parent_bytes;    // size of the parent's file at the fork
static Bool is_parents_file; // a regular file, so the child can copy from it
static Bool is_parents_sink; // a character device such as /dev/null
static Int parent_pid;
static Int own_pid; // the native host also writes from a process that shares this one's memory

// Errors of a path or a full disk.
static const struct {
    Int error;
    const HChar *text;
} reasons[] = {
    {EACCES, "permission denied"}, {EISDIR, "it is a directory"},        {ENOENT, "no such directory"},
    {ENOTDIR, "not a directory"},  {EROFS, "read-only file system"},     {ENOSPC, "no space left on device"},
    {EFBIG, "file size limit"},    {EPIPE, "nothing reads it any more"}, {EBADF, "the program has closed it"}};

static void give_up(const HChar *what, Int error)
{
    if (given_up)
        return;
    given_up = True;
    HChar reason[32];
    jm_format(reason, sizeof reason, "errno %d", error);
    for (UInt i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].error == error)
            strcpy(reason, reasons[i].text);
    if (!is_program_started && !jm_options.keep_going)
        jm_usage_error("cannot %s %s: %s; nothing was run (--keep-going=yes runs it unrecorded)", what, path, reason);
    jm_message("jmassif: cannot %s %s: %s; the program goes on without being recorded\n", what, path, reason);
}

// Formats "m process PID.STARTTIME\n". exec keeps both; a process with a recycled pid has another start time.
static void process_key(Int pid, HChar *key, UInt size)
{
    HChar name[64];
    jm_format(name, sizeof name, "/proc/%d/stat", pid);
    HChar *stat = jm_text_read_file(name, 4096);
    const HChar *p = stat ? strrchr(stat, ')') : NULL;
    // Field 22 of proc(5) stat is starttime; the name in parentheses is field 2.
    for (UInt field = 2; p && field < 22; field++) {
        p = strchr(p + 1, ' ');
    }
    ULong start = p ? jm_text_number(p + 1, NULL) : 0;
    jm_format(key, size, "m process %d.%llu\n", pid, start);
    host_free(stat);
}

// Returns the pid of the running process that writes the trace `file`; this process, if it did so before exec. 0 if the
// file may be overwritten.
static Int holder_of(const HChar *file)
{
    FileStatus st;
    if (!jm_path_status(file, &st) || !S_ISREG(st.mode))
        return 0;
    HChar *text = jm_text_read_file(file, 256);
    const HChar *record = text ? strstr(text, "m process ") : NULL;
    Int pid = 0;
    if (record) {
        HChar key[64];
        pid = jm_text_number(record + strlen("m process "), NULL);
        process_key(pid, key, sizeof key);
        if (strncmp(record, key, strlen(key)) != 0)
            pid = 0;
    }
    host_free(text);
    return pid;
}

static HChar *with_number(const HChar *name, UInt number)
{
    HChar *numbered = host_alloc("jm.trace", strlen(name) + 16);
    jm_format(numbered, strlen(name) + 16, "%s.%u", name, number);
    return numbered;
}

static void put_bytes(const HChar *bytes, SizeT n);

static void create_file(void)
{
    HChar key[64];
    process_key(own_pid, key, sizeof key);
    // The name has no %p if another process of the run uses it.
    Int holder = holder_of(path);
    if (holder && holder != own_pid)
        path = with_number(path, own_pid);
    HChar *base = path;
    for (UInt i = 2; holder_of(path); i++)
        path = with_number(base, i);
    Int res = jm_open(path, O_CREAT | O_TRUNC | O_WRONLY, S_IRUSR | S_IWUSR);
    if (jm_is_error(res)) {
        give_up("create", -res);
        return;
    }
    fd = host_keep_descriptor(res);
    FileStatus st = {0};
    is_regular = jm_file_status(fd, &st) && S_ISREG(st.mode);
    device = st.dev;
    inode = st.ino;
    is_created = True;
    file_bytes = 0;
    tail_bytes = 0;
    put_bytes(FORMAT_VERSION, sizeof FORMAT_VERSION - 1);
    put_bytes(key, strlen(key));
}

static void stop_writing(Int error)
{
    give_up("write", error);
    is_created = file_bytes > 0;
    jm_close(fd);
    fd = -1;
}

static Bool is_the_file(Int at)
{
    FileStatus st;
    return jm_file_status(at, &st) && st.dev == device && st.ino == inode;
}

// The program may have closed all descriptors, and have another file there now.
static void find_file(void)
{
    if (fd < 0 || is_the_file(fd))
        return;
    fd = is_regular ? jm_open(path, O_WRONLY, 0) : -EBADF;
    if (fd >= 0 && is_the_file(fd)) {
        fd = host_keep_descriptor(fd);
        jm_kernel_call(__NR_lseek, fd, file_bytes, SEEK_SET, 0, 0);
        return;
    }
    jm_close(fd);
    fd = -1;
    give_up("write", EBADF);
}

// Writes without SIGPIPE: the kernel sends it to this thread if a pipe has no reader left. It is blocked, then consumed
// before the program can see it.
static Int write_quietly(const HChar *bytes, SizeT n)
{
    const ULong pipe_signal = 1ULL << (SIGPIPE - 1);
    ULong pending_before = 0, mask;
    struct timespec now = {0, 0};
    jm_kernel_call(__NR_rt_sigprocmask, SIG_BLOCK, (UWord)&pipe_signal, (UWord)&mask, sizeof mask, 0);
    jm_kernel_call(__NR_rt_sigpending, (UWord)&pending_before, sizeof pending_before, 0, 0, 0);
    Int written = jm_write(fd, bytes, n);
    if (written == -EPIPE && !(pending_before & pipe_signal))
        jm_kernel_call(__NR_rt_sigtimedwait, (UWord)&pipe_signal, 0, (UWord)&now, sizeof pipe_signal, 0);
    jm_kernel_call(__NR_rt_sigprocmask, SIG_SETMASK, (UWord)&mask, 0, sizeof mask, 0);
    return written;
}

// Adler-32 (RFC 1950), as in zlib.
static UInt adler32(UInt sum, const HChar *bytes, SizeT n)
{
    UInt low = sum & 0xffff, high = sum >> 16;
    while (n) {
        SizeT some = n < 5552 ? n : 5552; // the largest number that cannot overflow, as in zlib
        n -= some;
        for (; some; some--) {
            low += (UChar)*bytes++;
            high += low;
        }
        low %= 65521;
        high %= 65521;
    }
    return high << 16 | low;
}

static void add_to_checksum(void)
{
    checksum = adler32(checksum, buffer + summed, used - summed);
    summed = used;
}

static void empty_buffer(void)
{
    used = summed = 0;
}

static void drop_tail(void)
{
    find_file();
    if (fd >= 0 && tail_bytes)
        jm_kernel_call(__NR_ftruncate, fd, file_bytes, 0, 0, 0);
    tail_bytes = 0;
}

// A partly written tail ends in an incomplete group, which readers drop.
static void write_tail(void)
{
    add_to_checksum();
    find_file();
    if (fd >= 0 && used && !jm_is_beyond_limit(file_bytes + tail_bytes + used))
        jm_kernel_call(__NR_pwrite64, fd, (UWord)buffer, used, file_bytes + tail_bytes, 0);
    tail_bytes += used;
    empty_buffer();
}

static void write_out(const HChar *bytes, SizeT n)
{
    if (n > 0)
        drop_tail();
    if (n > 0 && fd >= 0 && jm_is_beyond_limit(file_bytes + n))
        stop_writing(EFBIG);
    while (n > 0 && fd >= 0) {
        Int written = write_quietly(bytes, n);
        if (written <= 0) {
            if (-written == EINTR)
                continue;
            stop_writing(-written);
            return;
        }
        bytes += written;
        n -= written;
        file_bytes += written;
    }
}

#define INHERITED(name, letter, is_inherited) [letter] = is_inherited,
static const Bool inherited[256] = {JM_RECORDS(INHERITED)};

static void copy_out(const HChar *bytes, SizeT n)
{
    checksum = adler32(checksum, bytes, n);
    write_out(bytes, n);
}

// Copies the inherited records of the parent's trace.
static void copy_from_parent(void)
{
    Int in = jm_open(parent_path, O_RDONLY, 0);
    if (in < 0) {
        jm_message("jmassif: cannot read %s, so the trace of its child %d is not written\n", parent_path, own_pid);
        given_up = True;
        return;
    }
    static HChar piece[64 * 1024];
    Bool at_line_start = True, keep = False;
    Long left = parent_bytes;
    while (left > 0) {
        Int n = jm_read(in, piece, left < (Long)sizeof piece ? left : (Long)sizeof piece);
        if (n <= 0)
            break;
        left -= n;
        Int from = 0; // start of a run of kept bytes
        for (Int i = 0; i < n; i++) {
            if (at_line_start) {
                Bool kept = keep;
                keep = inherited[(UChar)piece[i]];
                if (kept && !keep)
                    copy_out(piece + from, i - from);
                else if (!kept && keep)
                    from = i;
            }
            at_line_start = piece[i] == '\n';
        }
        if (keep)
            copy_out(piece + from, n - from);
    }
    jm_close(in);
}

static void allocate_buffer(void)
{
    capacity = jm_options.low_footprint ? SMALL_BUFFER_BYTES : BUFFER_BYTES;
    buffer = host_alloc("jm.trace", capacity);
    empty_buffer();
}

static void flush_buffer(void)
{
    add_to_checksum();
    write_out(buffer, used);
    empty_buffer();
}

static void create_pending(void)
{
    is_pending = False;
    // A pipe cannot be copied from, and two writers would corrupt it.
    if (!is_parents_file && !is_parents_sink)
        jm_message("jmassif: %s is not a regular file, so the trace of child %d is not written\n", parent_path,
                   own_pid);
    if (!is_parents_file) {
        given_up = True;
        empty_buffer();
        return;
    }
    SizeT kept = used, kept_summed = summed;
    UInt kept_checksum = checksum;
    HChar *kept_bytes = buffer;
    allocate_buffer();
    checksum = 1;
    create_file();
    flush_buffer();
    if (fd >= 0)
        copy_from_parent();
    // Overrides the parent's values in the copied records.
    HChar own[256];
    process_key(own_pid, own, sizeof own);
    put_bytes(own, strlen(own));
    jm_format(own, sizeof own, "m pid %d\nm ppid %d\nm forked-from %d\n", own_pid, parent_pid, parent_pid);
    put_bytes(own, strlen(own));
    jm_trace_write_checksum();
    flush_buffer();
    put_bytes(kept_bytes, kept);
    summed = kept_summed;
    checksum = kept_checksum;
    host_free(kept_bytes);
}

void jm_trace_flush(void)
{
    jm_trace_write_held();
    if (is_pending)
        create_pending();
    flush_buffer();
}

Bool jm_trace_begin_tail(void)
{
    jm_trace_flush();
    if (fd < 0 || !is_regular)
        return False;
    drop_tail();
    in_tail = True;
    settled_checksum = checksum;
    return True;
}

void jm_trace_end_tail(void)
{
    write_tail();
    in_tail = False;
    checksum = settled_checksum;
}

static void make_room(SizeT n)
{
    if (used + n <= capacity)
        return;
    if (in_tail)
        write_tail();
    else if (!is_pending)
        flush_buffer();
    if (used + n > capacity) {
        capacity = (used + n) * 2;
        buffer = host_realloc("jm.trace", buffer, capacity);
    }
}

static void put_bytes(const HChar *bytes, SizeT n)
{
    make_room(n);
    memcpy(buffer + used, bytes, n);
    used += n;
}

void jm_trace_open(void)
{
    own_pid = jm_process_id();
    path = host_expand_path("--jmassif-out-file", jm_options.out_file);
    allocate_buffer();
    create_file();
    jm_trace_flush(); // an empty file is not a valid trace, and gathering the manifest takes a moment
    is_program_started = True;
    // Programs that this one executes inherit this: a missing trace must not end a run under way.
    host_inherit_option("--keep-going=yes");
}

const HChar *jm_trace_path(void)
{
    return is_created ? path : NULL;
}

void jm_trace_before_fork(void)
{
    jm_trace_flush();
    FileStatus st;
    find_file();
    Bool is_known = fd >= 0 && jm_file_status(fd, &st);
    parent_bytes = file_bytes;
    is_parents_file = is_known && S_ISREG(st.mode);
    is_parents_sink = is_known && S_ISCHR(st.mode);
    parent_pid = jm_process_id();
}

void jm_trace_after_fork_in_child(void)
{
    jm_close(fd); // the parent's copy stays open
    fd = -1;
    empty_buffer();
    checksum = 1;
    tail_bytes = 0;
    own_pid = jm_process_id();
    if (given_up)
        return;
    parent_path = path;
    path = host_expand_path("--jmassif-out-file", jm_options.out_file);
    // Without %p the name would be the parent's, or a sibling's.
    if (!strstr(jm_options.out_file, "%p"))
        path = with_number(path, own_pid);
    is_pending = True;
    is_created = False;
}

Bool jm_trace_is_pending(void)
{
    return is_pending;
}

void jm_trace_close(void)
{
    jm_trace_flush();
    find_file();
    jm_close(fd);
    fd = -1;
}

ULong jm_trace_bytes(void)
{
    return file_bytes + used + jm_trace_held_bytes();
}

void jm_trace_write_checksum(void)
{
    jm_trace_write_held();
    add_to_checksum();
    HChar line[16];
    line[0] = RECORD_CHECKSUM;
    jm_format(line + 1, sizeof line - 1, " %x\n", checksum);
    put_bytes(line, strlen(line));
    summed = used;
    checksum = 1;
}

HChar *jm_trace_room(SizeT bytes)
{
    make_room(bytes);
    return buffer + used;
}

void jm_trace_written(const HChar *end)
{
    used = end - buffer;
    jm_assert(used <= capacity);
}
