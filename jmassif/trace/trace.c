// SPDX-License-Identifier: GPL-2.0-or-later
//
// Formats the trace's records; see trace.h. Fields are formatted by hand into the file's buffer: every snapshot and
// large block comes here, and a general formatter would format slowly and flush far too often.

#include "trace/trace.h"
#include "base/libc.h"
#include "base/options.h"
#include "base/stats.h"
#include "base/table.h"
#include "host/host.h"
#include "trace/records.h"

// ---- fields --------------------------------------------------------------------------------------------------

#define MAX_NUMBER 21 // digits of 2^64, and a sign
#define MAX_NAME   32 // of a kind, an owner or a key; longer texts end a record (end_with_text)

// Exceeds every record without its final text. The longest is a scope: seven numbers, and for each kind its name and
// two numbers.
#define RECORD_ROOM (2 + 7 * (1 + MAX_NUMBER) + N_KINDS * (1 + MAX_NAME + 2 * (1 + MAX_NUMBER)))

static HChar *cursor; // write position in the buffer, during a record

// Rows: consecutive rows of the same record share a line.
static Record row_record; // 0 if the last record has no rows
static HChar *row_line;   // start of its line
static HChar *row_end;    // end of its line

#define MAX_ROWS_BYTES (32 * 1024) // maximum length of a line

static Bool is_referred_to(Record record)
{
    return record == RECORD_STRING || record == RECORD_FRAME || record == RECORD_ACCOUNT_TYPE;
}

static void begin(Record record)
{
    // All other records may refer to held nodes and accounts.
    if (!is_referred_to(record))
        jm_trace_write_held();
    row_record = 0;
    cursor = jm_trace_room(RECORD_ROOM);
    *cursor++ = record;
}

static void begin_row(Record record)
{
    if (record == row_record && row_end - row_line < MAX_ROWS_BYTES && jm_trace_room(RECORD_ROOM) == row_end) {
        cursor = row_end - 1;
    } else {
        begin(record);
        row_record = record;
        row_line = cursor - 1;
    }
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
        // put_uint wrote " 123": insert the sign after the space.
        HChar *space = cursor;
        while (*--space != ' ')
            ;
        memmove(space + 2, space + 1, cursor - space - 1);
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
    jm_trace_written(cursor);
    row_end = cursor;
}

// Ends the record with a text of any length, escaped.
static void end_with_text(const HChar *text)
{
    *cursor++ = ' ';
    jm_trace_written(cursor);
    // At most four bytes per byte, and the end of the line.
    cursor = jm_trace_room(text ? strlen(text) * 4 + 1 : 1);
    for (; text && *text; text++) {
        UChar c = *text;
        if (c < 0x20 || c == 0x7f || c == '\\') {
            *cursor++ = '\\';
            *cursor++ = 'x';
            *cursor++ = "0123456789abcdef"[c >> 4];
            *cursor++ = "0123456789abcdef"[c & 15];
        } else {
            *cursor++ = c;
        }
    }
    end();
}

// ---- strings -------------------------------------------------------------------------------------------------

// Keeps hashes instead of texts: the texts of a PyTorch run would be megabytes, and the probability that two of a
// million strings share a 64-bit hash is 3e-8.
static Table string_hashes = JM_TABLE("jm.trace.strings", ULong);

static ULong string_hash_of(UInt id)
{
    return *(ULong *)jm_table_at(&string_hashes, id);
}

static Index string_index = JM_INDEX("jm.trace.strings", string_hash_of);

ULong jm_trace_text_hash(const HChar *text)
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
    ULong h = jm_trace_text_hash(text);
    UInt *slot = JM_INDEX_FIND(&string_index, h, id, string_hash_of(id) == h);
    if (*slot)
        return *slot;
    UInt id = jm_index_put(&string_index, slot, jm_table_add(&string_hashes));
    *(ULong *)jm_table_at(&string_hashes, id) = h;
    begin(RECORD_STRING);
    put_uint(id);
    end_with_text(text);
    return id;
}

// With --anonymize replaces the home directory, and with it the user's name, by ~, also in lists of paths.
static const HChar *shown(const HChar *paths)
{
    static HChar short_form[4096];
    const HChar *home = jm_options.anonymize && paths ? host_environment("HOME") : NULL;
    SizeT n = home ? strlen(home) : 0;
    if (n < 2 || !strstr(paths, home))
        return paths;
    SizeT at = 0;
    while (*paths && at + 1 < sizeof short_form) {
        Bool is_home = strncmp(paths, home, n) == 0;
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
    begin(RECORD_MANIFEST);
    put_name(key);
    end_with_text(shown(text));
}

void jm_trace_manifest_paths(const HChar *key, const HChar *paths)
{
    jm_trace_manifest(key, shown(paths));
}

void jm_trace_manifest_uint(const HChar *key, ULong value)
{
    begin(RECORD_MANIFEST);
    put_name(key);
    put_uint(value);
    end();
}

void jm_trace_group(const HChar *owner, const HChar *group)
{
    begin(RECORD_GROUP);
    put_name(owner);
    put_name(group);
    end();
}

void jm_trace_frame(UInt id, HChar type, UInt function, UInt object, UInt file, UInt line, Addr address)
{
    begin(RECORD_FRAME);
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

void jm_trace_thread(UInt number, UInt name)
{
    begin(RECORD_THREAD);
    put_uint(number);
    put_uint(name);
    end();
}

void jm_trace_source(UInt file, const HChar *sha256)
{
    begin(RECORD_SOURCE);
    put_uint(file);
    put_name(sha256);
    end();
}

// Nodes and accounts alternate, by the hundred thousand. Both are held back so that a line has many rows of one record.
typedef struct {
    Record record;
    UInt used;
    HChar rows[8 * 1024];
} Held;

static Held held_nodes = {.record = RECORD_NODES};
static Held held_accounts = {.record = RECORD_ACCOUNTS};

static void write_rows(Held *held)
{
    UInt n = held->used;
    if (!n)
        return;
    held->used = 0;
    row_record = 0;
    HChar *line = jm_trace_room(n + 2);
    line[0] = held->record;
    memcpy(line + 1, held->rows, n);
    line[n + 1] = '\n';
    jm_trace_written(line + n + 2);
}

void jm_trace_write_held(void)
{
    write_rows(&held_nodes);
    write_rows(&held_accounts);
}

UInt jm_trace_held_bytes(void)
{
    return held_nodes.used + held_accounts.used;
}

static void begin_held(Held *held)
{
    if (held->used + 2 * (1 + MAX_NUMBER) > sizeof held->rows)
        jm_trace_write_held();
    cursor = held->rows + held->used;
}

static void end_held(Held *held)
{
    held->used = cursor - held->rows;
}

void jm_trace_node(UInt id, UInt parent, UInt frame)
{
    static UInt n_nodes;
    jm_assert(id == ++n_nodes);
    begin_held(&held_nodes);
    if (parent != id - 1)
        put_sint(-(Long)(id - parent));
    put_uint(frame);
    end_held(&held_nodes);
}

static UInt account_type(Kind kind, OwnerId owner, const HChar *owner_name)
{
    static UShort types[N_KINDS][1 << (8 * sizeof(OwnerId))];
    static UShort n_types;
    if (!types[kind][owner]) {
        types[kind][owner] = ++n_types;
        begin(RECORD_ACCOUNT_TYPE);
        put_uint(n_types);
        put_name(jm_kind_name(kind));
        put_name(owner_name);
        end();
    }
    return types[kind][owner];
}

void jm_trace_account(UInt id, UInt node, Kind kind, OwnerId owner, const HChar *owner_name)
{
    static UInt n_accounts;
    static UInt last_node;
    jm_assert(id == ++n_accounts);
    UInt type = account_type(kind, owner, owner_name);
    begin_held(&held_accounts);
    put_sint((Long)node - last_node);
    put_uint(type);
    end_held(&held_accounts);
    last_node = node;
}

void jm_trace_role(UInt account, const HChar *role)
{
    begin(RECORD_ROLE);
    put_uint(account);
    put_name(role);
    end();
}

void jm_trace_totals(ULong time, ULong host_bytes, ULong device_bytes, ULong max_bytes)
{
    begin(RECORD_TOTALS);
    put_uint(time);
    put_uint(host_bytes);
    put_uint(device_bytes);
    put_uint(max_bytes);
    end();
}

void jm_trace_snapshot_begin(UInt id, ULong time, const HChar *reason, ULong host_bytes, ULong device_bytes)
{
    begin(RECORD_SNAPSHOT);
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
    begin_row(RECORD_BALANCES);
    put_uint(account);
    put_uint(live_bytes);
    put_uint(live_blocks);
    put_uint(total_bytes);
    put_uint(total_blocks);
    put_uint(temporaries);
    end();
}

void jm_trace_pages(UInt account, ULong virtual_bytes, ULong shared_bytes, ULong swapped_bytes)
{
    begin(RECORD_PAGES);
    put_uint(account);
    put_uint(virtual_bytes);
    put_uint(shared_bytes);
    put_uint(swapped_bytes);
    end();
}

void jm_trace_peak(const HChar *which, ULong time, ULong host_bytes, ULong device_bytes)
{
    begin(RECORD_PEAK);
    put_name(which);
    put_uint(time);
    put_uint(host_bytes);
    put_uint(device_bytes);
    end();
}

void jm_trace_at_peak(UInt account, ULong live_bytes, ULong live_blocks)
{
    begin_row(RECORD_AT_PEAK);
    put_uint(account);
    put_uint(live_bytes);
    put_uint(live_blocks);
    end();
}

void jm_trace_snapshot_end(UInt id)
{
    jm_trace_write_checksum();
    begin(RECORD_SNAPSHOT_END);
    put_uint(id);
    end();
}

void jm_trace_block(ULong time, Addr address, ULong bytes, UInt account)
{
    begin(RECORD_BLOCK);
    put_uint(time);
    put_hex(address);
    put_uint(bytes);
    put_uint(account);
    end();
}

void jm_trace_block_end(ULong time, Addr address, UInt account)
{
    begin(RECORD_BLOCK_END);
    put_uint(time);
    put_hex(address);
    put_uint(account);
    end();
}

void jm_trace_large_threshold(ULong time, ULong bytes)
{
    begin(RECORD_LARGE);
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
    begin(RECORD_SCOPE);
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
    begin(RECORD_SCOPE_SUM);
    put_uint(name);
    put_uint(count);
    put_uint(time);
    put_growth(growth);
}

void jm_trace_failure(UInt name, ULong code, ULong count)
{
    begin(RECORD_FAILURE);
    put_uint(name);
    put_uint(code);
    put_uint(count);
    end();
}

void jm_trace_counter(const HChar *key, ULong count)
{
    begin(RECORD_COUNTER);
    put_name(key);
    put_uint(count);
    end();
}

void jm_trace_system(ULong time, const HChar *figure, ULong bytes)
{
    begin(RECORD_SYSTEM);
    put_uint(time);
    put_name(figure);
    put_uint(bytes);
    end();
}

void jm_trace_stage(ULong time)
{
    begin(RECORD_STAGE);
    put_uint(time);
    end();
}

void jm_trace_mark(ULong time, UInt name)
{
    begin(RECORD_MARK);
    put_uint(time);
    put_uint(name);
    end();
}

void jm_trace_region(Bool begins, ULong time, UInt tid, UInt name)
{
    begin(begins ? RECORD_REGION_BEGIN : RECORD_REGION_END);
    put_uint(time);
    put_uint(tid);
    put_uint(name);
    end();
}

void jm_trace_region_sum(UInt name, ULong count, ULong time)
{
    begin(RECORD_REGION_SUM);
    put_uint(name);
    put_uint(count);
    put_uint(time);
    end();
}

void jm_trace_exhaustion(UInt id, ULong time, UInt tid, UInt account, UInt api, UInt error, ULong bytes, UInt again)
{
    begin(RECORD_EXHAUSTION);
    put_uint(id);
    put_uint(time);
    put_uint(tid);
    put_uint(account);
    put_uint(api);
    put_uint(error);
    put_uint(bytes);
    put_uint(again);
    end();
}

void jm_trace_exhaustion_figure(UInt event, const HChar *figure, ULong bytes)
{
    begin(RECORD_EXHAUSTION_FIGURE);
    put_uint(event);
    put_name(figure);
    put_uint(bytes);
    end();
}

void jm_trace_outcome(UInt event, ULong time, const HChar *outcome)
{
    begin(RECORD_OUTCOME);
    put_uint(event);
    put_uint(time);
    put_name(outcome);
    end();
}

void jm_trace_mapped(ULong time, Addr address, ULong bytes, UWord handle)
{
    begin(RECORD_MAPPED);
    put_uint(time);
    put_hex(address);
    put_uint(bytes);
    put_hex(handle);
    end();
}

void jm_trace_unmapped(ULong time, Addr address, ULong bytes)
{
    begin(RECORD_UNMAPPED);
    put_uint(time);
    put_hex(address);
    put_uint(bytes);
    end();
}

void jm_trace_object(ULong time, Addr address, SizeT bytes, const HChar *soname, const HChar *file)
{
    UInt soname_id = jm_trace_string(soname);
    begin(RECORD_OBJECT);
    put_uint(time);
    put_hex(address);
    put_uint(bytes);
    put_uint(soname_id);
    end_with_text(shown(file));
}

void jm_trace_object_end(ULong time, Addr address)
{
    begin(RECORD_OBJECT_END);
    put_uint(time);
    put_hex(address);
    end();
}

void jm_trace_end(ULong time, const HChar *reason, UInt code)
{
    jm_trace_write_checksum();
    begin(RECORD_END);
    put_uint(time);
    put_name(reason);
    put_uint(code);
    end();
}

void jm_trace_stats(void)
{
    jm_stats_table("strings", &string_hashes);
    jm_stats_index(&string_index);
}
