// SPDX-License-Identifier: GPL-2.0-or-later
//
// The trace writer; see trace.h. Fields are formatted by hand: this is on the path of every snapshot and large block,
// and VG_(fprintf) would format, and flush, far too often.

#include "trace.h"
#include "options.h"
#include "table.h"
#include "text.h"

#define FORMAT_VERSION "jmassif-trace 1\n"
#define BUFFER_BYTES   (256 * 1024)

static HChar *buffer;
static SizeT capacity;
static SizeT used;
static Int fd = -1;
static ULong file_bytes;
static Bool is_created;
static Bool given_up;
static HChar *path;

// A forked child's file, until it exists.
static Bool is_pending;
static HChar *parent_path;
static Long parent_bytes; // of the parent's file at the fork
static Int parent_pid;

// ---- the file ------------------------------------------------------------------------------------------------

static void give_up(const HChar *what, Int error)
{
    if (!given_up)
        VG_(umsg)("jmassif: cannot %s %s (errno %d); the program goes on without being recorded\n", what, path, error);
    given_up = True;
}

// "m process PID.STARTTIME\n": exec keeps both, another process with a recycled pid has another start time.
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

// The pid of the running process that writes the trace `file`; it is this process if it did so before it called exec.
// 0: the file is there for the taking.
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
    // A name without %p: other processes of the run have it too.
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
    is_created = True;
    file_bytes = 0;
    put_bytes(FORMAT_VERSION, sizeof FORMAT_VERSION - 1);
    put_bytes(key, VG_(strlen)(key));
}

static void stop_writing(Int error)
{
    give_up("write", error);
    VG_(close)(fd);
    fd = -1;
}

#define RLIMIT_FSIZE 1 // asm-generic/resource.h, and the same on every machine

static void write_out(const HChar *bytes, SizeT n)
{
    // To write beyond the limit is answered with a signal, which would kill the program.
    struct vki_rlimit limit;
    if (n > 0 && fd >= 0 && VG_(getrlimit)(RLIMIT_FSIZE, &limit) == 0 && file_bytes + n > limit.rlim_cur)
        stop_writing(VKI_EFBIG);
    while (n > 0 && fd >= 0) {
        Int written = VG_(write)(fd, bytes, n);
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

// The parts of a parent's trace that its child needs: definitions and the history of blocks.
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
        Int from = 0; // start of a run of bytes to keep
        for (Int i = 0; i < n; i++) {
            if (at_line_start) {
                Bool kept = keep;
                keep = VG_(strchr)("mgsfnar+-l", piece[i]) != NULL;
                if (kept && !keep)
                    write_out(piece + from, i - from);
                else if (!kept && keep)
                    from = i;
            }
            at_line_start = piece[i] == '\n';
        }
        if (keep)
            write_out(piece + from, n - from);
    }
    VG_(close)(in);
}

static void allocate_buffer(void)
{
    buffer = VG_(malloc)("jm.trace", BUFFER_BYTES);
    capacity = BUFFER_BYTES;
    used = 0;
}

static void create_pending(void)
{
    is_pending = False;
    SizeT held = used;
    HChar *held_bytes = buffer;
    allocate_buffer();
    create_file();
    write_out(buffer, used);
    used = 0;
    if (fd >= 0)
        copy_from_parent();
    HChar key[64];
    process_key(VG_(getpid)(), key, sizeof key);
    put_bytes(key, VG_(strlen)(key));
    jm_trace_manifest_uint("pid", VG_(getpid)());
    jm_trace_manifest_uint("ppid", VG_(getppid)());
    jm_trace_manifest_uint("forked-from", parent_pid);
    put_bytes(held_bytes, held);
    VG_(free)(held_bytes);
}

void jm_trace_flush(void)
{
    if (is_pending)
        create_pending();
    write_out(buffer, used);
    used = 0;
}

static void make_room(SizeT n)
{
    if (used + n <= capacity)
        return;
    if (!is_pending)
        jm_trace_flush();
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
    jm_trace_flush(); // an empty file is no trace, and to gather the manifest takes a moment
}

const HChar *jm_trace_path(void)
{
    return is_created ? path : NULL;
}

void jm_trace_before_fork(void)
{
    jm_trace_flush();
    struct vg_stat st;
    parent_bytes = fd >= 0 && VG_(fstat)(fd, &st) == 0 ? st.size : 0;
    parent_pid = VG_(getpid)();
}

void jm_trace_after_fork_in_child(void)
{
    if (fd >= 0)
        VG_(close)(fd); // the parent's description stays open in the parent
    fd = -1;
    used = 0;
    if (given_up)
        return;
    parent_path = path;
    path = VG_(expand_file_name)("--jmassif-out-file", jm_options.out_file);
    // Without %p the name is the parent's, or a sibling's.
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

// ---- fields --------------------------------------------------------------------------------------------------

#define MAX_NUMBER  21  // decimal digits of 2^64, and a sign
#define RECORD_ROOM 512 // more than any record needs besides its text

static HChar *cursor; // in the buffer, while a record is being written

static void begin(HChar letter)
{
    make_room(RECORD_ROOM);
    cursor = buffer + used;
    *cursor++ = letter;
}

static void put_uint(ULong value)
{
    HChar digits[MAX_NUMBER];
    UInt n = 0;
    do {
        digits[n++] = '0' + value % 10;
        value /= 10;
    } while (value);
    *cursor++ = ' ';
    while (n)
        *cursor++ = digits[--n];
}

static void put_sint(Long value)
{
    if (value < 0) {
        put_uint(-(ULong)value);
        // put_uint wrote " 123"; the sign goes between the space and the digits.
        HChar *space = cursor;
        while (*--space != ' ')
            ;
        VG_(memmove)(space + 2, space + 1, cursor - space - 1);
        space[1] = '-';
        cursor++;
    } else {
        put_uint(value);
    }
}

static void put_hex(ULong value)
{
    HChar digits[MAX_NUMBER];
    UInt n = 0;
    do {
        digits[n++] = "0123456789abcdef"[value & 15];
        value >>= 4;
    } while (value);
    *cursor++ = ' ';
    while (n)
        *cursor++ = digits[--n];
}

static void put_name(const HChar *name)
{
    *cursor++ = ' ';
    while (*name)
        *cursor++ = *name++;
}

static void end(void)
{
    *cursor++ = '\n';
    used = cursor - buffer;
}

// Ends the record with a text of any length.
static void end_with_text(const HChar *text)
{
    *cursor++ = ' ';
    used = cursor - buffer;
    for (; text && *text; text++) {
        UChar c = *text;
        make_room(8);
        if (c < 0x20 || c == 0x7f || c == '\\') {
            buffer[used++] = '\\';
            buffer[used++] = 'x';
            buffer[used++] = "0123456789abcdef"[c >> 4];
            buffer[used++] = "0123456789abcdef"[c & 15];
        } else {
            buffer[used++] = c;
        }
    }
    buffer[used++] = '\n';
}

// ---- strings -------------------------------------------------------------------------------------------------

// Only hashes are kept, not the texts: two of a million strings share a 64-bit hash with a probability of 3e-8, and the
// texts of a PyTorch run would be megabytes.
static Table string_hashes = JM_TABLE("jm.trace.strings", ULong);
static Index string_index = JM_INDEX("jm.trace.strings");

static ULong string_hash_of(UInt id)
{
    return *(ULong *)jm_table_at(&string_hashes, id);
}

static ULong hash_text(const HChar *text)
{
    ULong h = 0xcbf29ce484222325ULL; // FNV-1a, finished by jm_hash
    for (; *text; text++)
        h = (h ^ (UChar)*text) * 0x100000001b3ULL;
    return jm_hash(h);
}

UInt jm_trace_string(const HChar *text)
{
    if (!text)
        return 0;
    ULong h = hash_text(text);
    jm_index_reserve(&string_index, string_hash_of);
    UInt slot = (UInt)h & string_index.mask;
    while (string_index.slots[slot]) {
        UInt id = string_index.slots[slot];
        if (string_hash_of(id) == h)
            return id;
        slot = (slot + 1) & string_index.mask;
    }
    UInt id = jm_table_add(&string_hashes);
    *(ULong *)jm_table_at(&string_hashes, id) = h;
    string_index.slots[slot] = id;
    string_index.used++;
    begin('s');
    put_uint(id);
    end_with_text(text);
    return id;
}

// With --anonymize the home directory, and with it the user's name, is shown as ~, also in lists of paths.
static const HChar *shown(const HChar *paths)
{
    static HChar short_form[4096];
    const HChar *home = jm_options.anonymize && paths ? VG_(getenv)("HOME") : NULL;
    SizeT n = home ? VG_(strlen)(home) : 0;
    if (n < 2 || !VG_(strstr)(paths, home))
        return paths;
    SizeT at = 0;
    while (*paths && at + 1 < sizeof short_form) {
        Bool is_home = VG_(strncmp)(paths, home, n) == 0;
        short_form[at++] = is_home ? '~' : *paths;
        paths += is_home ? n : 1;
    }
    short_form[at] = 0;
    return short_form;
}

UInt jm_trace_path_string(const HChar *file)
{
    return jm_trace_string(shown(file));
}

// ---- records -------------------------------------------------------------------------------------------------

void jm_trace_manifest(const HChar *key, const HChar *text)
{
    begin('m');
    put_name(key);
    end_with_text(shown(text));
}

void jm_trace_manifest_paths(const HChar *key, const HChar *paths)
{
    jm_trace_manifest(key, shown(paths));
}

void jm_trace_manifest_uint(const HChar *key, ULong value)
{
    begin('m');
    put_name(key);
    put_uint(value);
    end();
}

void jm_trace_group(const HChar *owner, const HChar *group)
{
    begin('g');
    put_name(owner);
    put_name(group);
    end();
}

void jm_trace_frame(UInt id, HChar type, UInt function, UInt object, UInt file, UInt line, Addr address)
{
    begin('f');
    put_uint(id);
    *cursor++ = ' ';
    *cursor++ = type;
    put_uint(function);
    put_uint(object);
    put_uint(file);
    put_uint(line);
    put_hex(address);
    end();
}

void jm_trace_node(UInt id, UInt parent, UInt frame)
{
    begin('n');
    put_uint(id);
    put_uint(parent);
    put_uint(frame);
    end();
}

void jm_trace_account(UInt id, UInt node, Kind kind, const HChar *owner)
{
    begin('a');
    put_uint(id);
    put_uint(node);
    put_name(jm_kind_name(kind));
    put_name(owner);
    end();
}

void jm_trace_role(UInt account, const HChar *role)
{
    begin('r');
    put_uint(account);
    put_name(role);
    end();
}

void jm_trace_totals(ULong time, ULong host_bytes, ULong device_bytes, ULong max_bytes)
{
    begin('t');
    put_uint(time);
    put_uint(host_bytes);
    put_uint(device_bytes);
    put_uint(max_bytes);
    end();
}

void jm_trace_snapshot_begin(UInt id, ULong time, const HChar *reason, ULong host_bytes, ULong device_bytes)
{
    begin('S');
    put_uint(id);
    put_uint(time);
    put_name(reason);
    put_uint(host_bytes);
    put_uint(device_bytes);
    end();
}

void jm_trace_balance(UInt account, ULong live_bytes, ULong live_blocks, ULong total_bytes, ULong total_blocks,
                      ULong temporaries)
{
    begin('c');
    put_uint(account);
    put_uint(live_bytes);
    put_uint(live_blocks);
    put_uint(total_bytes);
    put_uint(total_blocks);
    put_uint(temporaries);
    end();
}

void jm_trace_peak(const HChar *which, ULong time, ULong host_bytes, ULong device_bytes)
{
    begin('P');
    put_name(which);
    put_uint(time);
    put_uint(host_bytes);
    put_uint(device_bytes);
    end();
}

void jm_trace_at_peak(UInt account, ULong live_bytes, ULong live_blocks)
{
    begin('d');
    put_uint(account);
    put_uint(live_bytes);
    put_uint(live_blocks);
    end();
}

void jm_trace_snapshot_end(UInt id)
{
    begin('E');
    put_uint(id);
    end();
}

void jm_trace_block(ULong time, Addr address, ULong bytes, UInt account)
{
    begin('+');
    put_uint(time);
    put_hex(address);
    put_uint(bytes);
    put_uint(account);
    end();
}

void jm_trace_block_end(ULong time, Addr address, UInt account)
{
    begin('-');
    put_uint(time);
    put_hex(address);
    put_uint(account);
    end();
}

void jm_trace_large_threshold(ULong time, ULong bytes)
{
    begin('l');
    put_uint(time);
    put_uint(bytes);
    end();
}

static void put_growth(const Growth growth[N_KINDS])
{
    for (Kind kind = 0; kind < N_KINDS; kind++) {
        if (growth[kind].bytes || growth[kind].blocks) {
            put_name(jm_kind_name(kind));
            put_sint(growth[kind].bytes);
            put_sint(growth[kind].blocks);
        }
    }
    end();
}

void jm_trace_scope(UInt id, UInt parent, UInt tid, ULong begin_time, ULong end_time, UInt node, UInt name,
                    const Growth growth[N_KINDS])
{
    begin('x');
    put_uint(id);
    put_uint(parent);
    put_uint(tid);
    put_uint(begin_time);
    put_uint(end_time);
    put_uint(node);
    put_uint(name);
    put_growth(growth);
}

void jm_trace_scope_sum(UInt name, ULong count, ULong time, const Growth growth[N_KINDS])
{
    begin('X');
    put_uint(name);
    put_uint(count);
    put_uint(time);
    put_growth(growth);
}

void jm_trace_failure(UInt name, ULong code, ULong count)
{
    begin('e');
    put_uint(name);
    put_uint(code);
    put_uint(count);
    end();
}

void jm_trace_counter(const HChar *key, ULong count)
{
    begin('k');
    put_name(key);
    put_uint(count);
    end();
}

void jm_trace_mark(ULong time, const HChar *text)
{
    begin('M');
    put_uint(time);
    end_with_text(text);
}

void jm_trace_region(Bool begins, ULong time, UInt tid, const HChar *text)
{
    begin(begins ? 'B' : 'D');
    put_uint(time);
    put_uint(tid);
    end_with_text(text);
}

void jm_trace_object(ULong time, Addr address, SizeT bytes, const HChar *soname, const HChar *file)
{
    UInt soname_id = jm_trace_string(soname);
    begin('L');
    put_uint(time);
    put_hex(address);
    put_uint(bytes);
    put_uint(soname_id);
    end_with_text(shown(file));
}

void jm_trace_object_end(ULong time, Addr address)
{
    begin('U');
    put_uint(time);
    put_hex(address);
    end();
}

void jm_trace_end(ULong time, const HChar *reason, UInt code)
{
    begin('Z');
    put_uint(time);
    put_name(reason);
    put_uint(code);
    end();
}
