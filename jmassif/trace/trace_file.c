// SPDX-License-Identifier: GPL-2.0-or-later
//
// The trace's file: its name and buffer, the tail, fork and exec, and write errors. Errors must not disturb a running
// program, so signals of failed writes are suppressed.

#include "trace/trace_file.h"
#include "base/kernel.h"
#include "base/options.h"
#include "base/stats.h"
#include "base/text.h"
#include "trace/records.h"

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
static ULong file_bytes; // without the tail
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

// ---- the file ------------------------------------------------------------------------------------------------

// Text for errors of a path or a full disk; NULL for other errors.
static const HChar *error_text(Int error)
{
    switch (error) {
    case VKI_EACCES:
        return "permission denied";
    case VKI_EISDIR:
        return "it is a directory";
    case VKI_ENOENT:
        return "no such directory";
    case VKI_ENOTDIR:
        return "not a directory";
    case VKI_EROFS:
        return "read-only file system";
    case VKI_ENOSPC:
        return "no space left on device";
    case VKI_EFBIG:
        return "file size limit";
    case VKI_EPIPE:
        return "nothing reads it any more";
    default:
        return NULL;
    }
}

static void give_up(const HChar *what, Int error)
{
    if (given_up)
        return;
    given_up = True;
    HChar number[32];
    VG_(snprintf)(number, sizeof number, "errno %d", error);
    const HChar *reason = error_text(error) ? error_text(error) : number;
    if (!is_program_started && !jm_options.keep_going)
        jm_usage_error("cannot %s %s: %s; nothing was run (--keep-going=yes runs it unrecorded)", what, path, reason);
    VG_(umsg)("jmassif: cannot %s %s: %s; the program goes on without being recorded\n", what, path, reason);
}

// Formats "m process PID.STARTTIME\n". exec keeps both; a process with a recycled pid has another start time.
static void process_key(Int pid, HChar *key, UInt size)
{
    HChar name[64];
    VG_(snprintf)(name, sizeof name, "/proc/%d/stat", pid);
    HChar *stat = jm_text_read_file(name, 4096);
    const HChar *p = stat ? VG_(strrchr)(stat, ')') : NULL;
    // Field 22 of proc(5) stat is starttime; the name in parentheses is field 2.
    for (UInt field = 2; p && field < 22; field++) {
        p = VG_(strchr)(p + 1, ' ');
    }
    ULong start = p ? VG_(strtoull10)(p + 1, NULL) : 0;
    VG_(snprintf)(key, size, "m process %d.%llu\n", pid, start);
    if (stat)
        VG_(free)(stat);
}

// Returns the pid of the running process that writes the trace `file`; this process, if it did so before exec. 0 if the
// file may be overwritten.
static Int holder_of(const HChar *file)
{
    struct vg_stat st;
    if (sr_isError(VG_(stat)(file, &st)) || !VKI_S_ISREG(st.mode))
        return 0;
    HChar *text = jm_text_read_file(file, 256);
    const HChar *record = text ? VG_(strstr)(text, "m process ") : NULL;
    Int pid = 0;
    if (record) {
        HChar key[64];
        pid = VG_(strtoull10)(record + VG_(strlen)("m process "), NULL);
        process_key(pid, key, sizeof key);
        if (VG_(strncmp)(record, key, VG_(strlen)(key)) != 0)
            pid = 0;
    }
    if (text)
        VG_(free)(text);
    return pid;
}

static HChar *with_number(const HChar *name, UInt number)
{
    HChar *numbered = VG_(malloc)("jm.trace", VG_(strlen)(name) + 16);
    VG_(sprintf)(numbered, "%s.%u", name, number);
    return numbered;
}

static void put_bytes(const HChar *bytes, SizeT n);

static void create_file(void)
{
    HChar key[64];
    process_key(VG_(getpid)(), key, sizeof key);
    // The name has no %p if another process of the run uses it.
    Int holder = holder_of(path);
    if (holder && holder != VG_(getpid)())
        path = with_number(path, VG_(getpid)());
    HChar *base = path;
    for (UInt i = 2; holder_of(path); i++)
        path = with_number(base, i);
    SysRes res = VG_(open)(path, VKI_O_CREAT | VKI_O_TRUNC | VKI_O_WRONLY, VKI_S_IRUSR | VKI_S_IWUSR);
    if (sr_isError(res)) {
        give_up("create", sr_Err(res));
        return;
    }
    fd = VG_(safe_fd)(sr_Res(res));
    struct vg_stat st;
    is_regular = VG_(fstat)(fd, &st) == 0 && VKI_S_ISREG(st.mode);
    is_created = True;
    file_bytes = 0;
    tail_bytes = 0;
    put_bytes(FORMAT_VERSION, sizeof FORMAT_VERSION - 1);
    put_bytes(key, VG_(strlen)(key));
}

static void stop_writing(Int error)
{
    give_up("write", error);
    is_created = file_bytes > 0;
    VG_(close)(fd);
    fd = -1;
}

#define RLIMIT_FSIZE 1 // asm-generic/resource.h, the same on every machine

// Writes without SIGPIPE: the kernel sends it to this thread if a pipe has no reader left. It is blocked, then consumed
// before the program can see it.
static Int write_quietly(const HChar *bytes, SizeT n)
{
    const ULong pipe_signal = 1ULL << (VKI_SIGPIPE - 1);
    ULong pending_before = 0, mask;
    struct vki_timespec now = {0, 0};
    jm_kernel_call(__NR_rt_sigprocmask, VKI_SIG_BLOCK, (UWord)&pipe_signal, (UWord)&mask, sizeof mask, 0);
    jm_kernel_call(__NR_rt_sigpending, (UWord)&pending_before, sizeof pending_before, 0, 0, 0);
    Int written = VG_(write)(fd, bytes, n);
    if (written == -VKI_EPIPE && !(pending_before & pipe_signal))
        jm_kernel_call(__NR_rt_sigtimedwait, (UWord)&pipe_signal, 0, (UWord)&now, sizeof pipe_signal, 0);
    jm_kernel_call(__NR_rt_sigprocmask, VKI_SIG_SETMASK, (UWord)&mask, 0, sizeof mask, 0);
    return written;
}

// Writing beyond the limit would raise SIGXFSZ, which kills the program.
static Bool is_beyond_limit(ULong bytes)
{
    struct vki_rlimit limit;
    return VG_(getrlimit)(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur;
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
    if (tail_bytes)
        jm_kernel_call(__NR_ftruncate, fd, file_bytes, 0, 0, 0);
    tail_bytes = 0;
}

// A partly written tail ends in an incomplete group, which readers drop.
static void write_tail(void)
{
    add_to_checksum();
    if (used && !is_beyond_limit(file_bytes + tail_bytes + used))
        jm_kernel_call(__NR_pwrite64, fd, (UWord)buffer, used, file_bytes + tail_bytes, 0);
    tail_bytes += used;
    empty_buffer();
}

static void write_out(const HChar *bytes, SizeT n)
{
    if (n > 0 && fd >= 0)
        drop_tail();
    if (n > 0 && fd >= 0 && is_beyond_limit(file_bytes + n))
        stop_writing(VKI_EFBIG);
    while (n > 0 && fd >= 0) {
        Int written = write_quietly(bytes, n);
        if (written <= 0) {
            if (-written == VKI_EINTR)
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
#undef INHERITED

static void copy_out(const HChar *bytes, SizeT n)
{
    checksum = adler32(checksum, bytes, n);
    write_out(bytes, n);
}

// Copies the inherited records of the parent's trace.
static void copy_from_parent(void)
{
    Int in = VG_(fd_open)(parent_path, VKI_O_RDONLY, 0);
    if (in < 0) {
        VG_(umsg)("jmassif: cannot read %s, so the trace of its child %d is not written\n", parent_path, VG_(getpid)());
        given_up = True;
        return;
    }
    static HChar piece[64 * 1024];
    Bool at_line_start = True, keep = False;
    Long left = parent_bytes;
    while (left > 0) {
        Int n = VG_(read)(in, piece, left < (Long)sizeof piece ? left : (Long)sizeof piece);
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
    VG_(close)(in);
}

static void allocate_buffer(void)
{
    capacity = jm_options.low_footprint ? SMALL_BUFFER_BYTES : BUFFER_BYTES;
    buffer = VG_(malloc)("jm.trace", capacity);
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
    Int pid = VG_(getpid)();
    if (!is_parents_file && !is_parents_sink)
        VG_(umsg)("jmassif: %s is not a regular file, so the trace of child %d is not written\n", parent_path, pid);
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
    process_key(VG_(getpid)(), own, sizeof own);
    put_bytes(own, VG_(strlen)(own));
    VG_(snprintf)
    (own, sizeof own, "m pid %d\nm ppid %d\nm forked-from %d\n", VG_(getpid)(), VG_(getppid)(), parent_pid);
    put_bytes(own, VG_(strlen)(own));
    jm_trace_write_checksum();
    flush_buffer();
    put_bytes(kept_bytes, kept);
    summed = kept_summed;
    checksum = kept_checksum;
    VG_(free)(kept_bytes);
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
        buffer = VG_(realloc)("jm.trace", buffer, capacity);
    }
}

static void put_bytes(const HChar *bytes, SizeT n)
{
    make_room(n);
    VG_(memcpy)(buffer + used, bytes, n);
    used += n;
}

void jm_trace_open(void)
{
    path = VG_(expand_file_name)("--jmassif-out-file", jm_options.out_file);
    allocate_buffer();
    create_file();
    jm_trace_flush(); // an empty file is not a valid trace, and gathering the manifest takes a moment
    is_program_started = True;
    // Programs that this one executes inherit this: a missing trace must not end a run under way.
    const HChar *keep_going = "--keep-going=yes";
    VG_(addToXA)(VG_(args_for_valgrind), &keep_going);
}

const HChar *jm_trace_path(void)
{
    return is_created ? path : NULL;
}

void jm_trace_before_fork(void)
{
    jm_trace_flush();
    struct vg_stat st;
    Bool is_known = fd >= 0 && VG_(fstat)(fd, &st) == 0;
    parent_bytes = file_bytes;
    is_parents_file = is_known && VKI_S_ISREG(st.mode);
    is_parents_sink = is_known && VKI_S_ISCHR(st.mode);
    parent_pid = VG_(getpid)();
}

void jm_trace_after_fork_in_child(void)
{
    if (fd >= 0)
        VG_(close)(fd); // the parent's copy stays open
    fd = -1;
    empty_buffer();
    checksum = 1;
    tail_bytes = 0;
    if (given_up)
        return;
    parent_path = path;
    path = VG_(expand_file_name)("--jmassif-out-file", jm_options.out_file);
    // Without %p the name would be the parent's, or a sibling's.
    if (!VG_(strstr)(jm_options.out_file, "%p"))
        path = with_number(path, VG_(getpid)());
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
    if (fd >= 0)
        VG_(close)(fd);
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
    VG_(snprintf)(line, sizeof line, "%c %x\n", RECORD_CHECKSUM, checksum);
    put_bytes(line, VG_(strlen)(line));
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
    tl_assert(used <= capacity);
}

void jm_trace_file_stats(void)
{
    jm_stats_row("jm.trace", "bytes of the buffer in use", used, capacity);
}
