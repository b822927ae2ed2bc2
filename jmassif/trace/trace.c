// SPDX-License-Identifier: GPL-2.0-or-later
//
// Formats the trace's records; see trace.h. Fields are formatted by hand into the file's buffer: every snapshot and
// large block comes here, and a general formatter would format slowly and flush far too often.

#include "trace/trace.h"
#include "base/libc.h"
#include "base/options.h"
#include "base/table.h"
#include "host/host.h"

// ---- fields --------------------------------------------------------------------------------------------------

#define MAX_NUMBER 21 // digits of 2^64, and a sign
#define MAX_NAME   32 // of a kind, an owner or a key; longer texts end a record (put_text)

// Exceeds every record without its final text. The longest is a scope: seven numbers, and for each kind its name and
// two numbers.
#define RECORD_ROOM (2 + 7 * (1 + MAX_NUMBER) + N_KINDS * (1 + MAX_NAME + 2 * (1 + MAX_NUMBER)))

static HChar *cursor; // write position in the buffer, during a record

// Rows: consecutive rows of the same record share a line.
static Record row_record; // 0 if the last record has no rows
static HChar *row_line;   // start of its line
static HChar *row_end;    // end of its line

#define MAX_ROWS_BYTES (32 * 1024) // maximum length of a line

static void begin(Record record)
{
    const Bool has_rows = record == RECORD_BALANCES || record == RECORD_AT_PEAK;
    if (has_rows && record == row_record && row_end - row_line < MAX_ROWS_BYTES &&
        jm_trace_room(RECORD_ROOM) == row_end) {
        cursor = row_end - 1;
        return;
    }
    // All other records may refer to held nodes and accounts.
    if (record != RECORD_STRING && record != RECORD_FRAME && record != RECORD_ACCOUNT_TYPE)
        jm_trace_write_held();
    row_record = has_rows ? record : 0;
    row_line = cursor = jm_trace_room(RECORD_ROOM);
    *cursor++ = record;
}

static inline void put_digits(ULong value, UInt base)
{
    HChar digits[MAX_NUMBER];
    UInt n = 0;
    do {
        digits[n++] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value);
    while (n)
        *cursor++ = digits[--n];
}

static void put_uint(ULong value)
{
    *cursor++ = ' ';
    put_digits(value, 10);
}

static void put_sint(Long value)
{
    *cursor++ = ' ';
    if (value < 0)
        *cursor++ = '-';
    put_digits(value < 0 ? -(ULong)value : (ULong)value, 10);
}

static void put_name(const HChar *name)
{
    *cursor++ = ' ';
    while (*name)
        *cursor++ = *name++;
}

static void put_growth(const Growth *growth)
{
    for (Kind kind = 0; kind < N_KINDS; kind++) {
        if (growth[kind].bytes || growth[kind].blocks) {
            put_name(jm_kind_name(kind));
            put_sint(growth[kind].bytes);
            put_sint(growth[kind].blocks);
        }
    }
}

// A text of any length, escaped, that ends its record.
static void put_text(const HChar *text)
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

static void put_field(HChar type, ULong value)
{
    switch (type) {
    case 'u':
        put_uint(value);
        break;
    case 'x':
        *cursor++ = ' ';
        put_digits(value, 16);
        break;
    case 'c':
        *cursor++ = ' ';
        *cursor++ = (HChar)value;
        break;
    case 'n':
        put_name((const HChar *)value);
        break;
    case 'g':
        put_growth((const Growth *)value);
        break;
    default:
        put_text(type == 'p' ? shown((const HChar *)value) : (const HChar *)value);
    }
}

void jm_trace_record(Record record, const HChar *fields, const ULong *values)
{
    if (record == RECORD_SNAPSHOT_END || record == RECORD_END)
        jm_trace_write_checksum();
    begin(record);
    while (*fields)
        put_field(*fields++, *values++);
    *cursor++ = '\n';
    jm_trace_written(cursor);
    row_end = cursor;
}

// ---- strings -------------------------------------------------------------------------------------------------

// Keeps hashes instead of texts: the texts of a PyTorch run would be megabytes, and the probability that two of a
// million strings share a 64-bit hash is 3e-8.
static Table string_hashes = JM_TABLE("jm.trace.strings", ULong);

static ULong string_hash_of(UInt id)
{
    return *(ULong *)jm_table_at(&string_hashes, id);
}

static Index string_index = JM_INDEX("jm.trace.strings");

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
    IndexSlot *slot = JM_INDEX_FIND(&string_index, h, id, string_hash_of(id) == h);
    if (slot->entry)
        return slot->entry;
    UInt id = jm_index_put(&string_index, slot, jm_table_add(&string_hashes));
    *(ULong *)jm_table_at(&string_hashes, id) = h;
    JM_TRACE_RECORD(STRING, "ut", id, JM_TRACE_TEXT(text));
    return id;
}

UInt jm_trace_path_string(const HChar *file)
{
    return jm_trace_string(shown(file));
}

// ---- nodes and accounts --------------------------------------------------------------------------------------

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
        JM_TRACE_RECORD(ACCOUNT_TYPE, "unn", n_types, JM_TRACE_TEXT(jm_kind_name(kind)), JM_TRACE_TEXT(owner_name));
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

void jm_trace_nonzero(const HChar *key, ULong count)
{
    if (count)
        jm_trace_counter(key, count);
}

void jm_trace_changed(const HChar *key, ULong count, ULong *last)
{
    if (count != *last)
        jm_trace_counter(key, *last = count);
}
