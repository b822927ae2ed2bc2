// SPDX-License-Identifier: GPL-2.0-or-later
//
// Storage of translations. The file is a sequence of batches, each appended by one write, so several processes can
// write to it without waiting. A batch is a header, an entry per record (a part of its address' hash, and its offset),
// and the records. Opening the file reads headers and entries and makes an index of the entries, the only part in
// memory. A record is read when its address is requested, and used only after its checksum was verified over a private
// copy.
//
// The file is not trusted: a batch or record that is truncated, damaged or of another key is skipped, and the next
// batch is found by its magic number. A full file is removed by a run that has no use for a quarter of it and could
// fill half.

#include "host/valgrind/code_file.h"
#include "base/checksum.h"
#include "base/kernel.h"
#include "base/options.h"
#include "base/stats.h"
#include "host/valgrind/cache_directory.h"

#define MAGIC          0x3165646f636d6aULL // "jmcode1"
#define SUFFIX         ".code"
#define PENDING_BYTES  (256 * 1024)
#define MAX_ENTRIES    4096 // per batch
#define MAX_CANDIDATES 8    // per address: earlier runs had other code at the same address

typedef struct {
    ULong magic;
    ULong key[2];
    ULong n_bytes; // including this header
    UInt n_records;
    UInt zero;
    ULong checksum; // covers the fields above and the entries
} BatchHeader;

typedef struct {
    UInt tag;
    UInt at; // offset in the batch; in the index, in the file
} Entry;

typedef struct {
    ULong checksum; // covers everything after it
    CodeRecord record;
} RecordHeader; // followed by the program's bytes and the host's

// A record must fit into one window; see read_at().
#define WINDOW_BYTES (32 * 1024)
#define WINDOW_ALIGN 4096
#define MAX_RECORD   (WINDOW_BYTES - WINDOW_ALIGN)

static CodeKey key;
static ULong limit_bytes;
static Int file = -1;
static Bool may_write;
static UInt n_when_full; // records of a file that was full when it was opened, else 0
static ULong file_bytes; // when last read or appended to

static struct {
    UInt found, missing, changed, refused, kept;
} n;

// ---- reading -------------------------------------------------------------------------------------------------

// Read the file in windows: translations are mostly requested in the order of the last run. Several windows, because
// threads and imports interleave.
#define N_WINDOWS 8
static struct {
    ULong start;
    UInt n;
    UChar bytes[WINDOW_BYTES];
} windows[N_WINDOWS];

// Return `n_bytes` at offset `at`, valid until the next call; NULL beyond the file's end.
static const UChar *read_at(ULong at, SizeT n_bytes)
{
    static UInt oldest;
    for (UInt i = 0; i < N_WINDOWS; i++)
        if (windows[i].start <= at && at + n_bytes <= windows[i].start + windows[i].n)
            return windows[i].bytes + (at - windows[i].start);
    UInt i = oldest++ % N_WINDOWS;
    windows[i].start = VG_ROUNDDN(at, WINDOW_ALIGN);
    Long got = jm_cache_read(file, windows[i].bytes, WINDOW_BYTES, windows[i].start);
    windows[i].n = got < 0 ? 0 : got;
    return at + n_bytes <= windows[i].start + windows[i].n ? windows[i].bytes + (at - windows[i].start) : NULL;
}

static ULong record_checksum(const UChar *after_checksum, SizeT n_bytes)
{
    return jm_checksum(after_checksum, n_bytes, key.words[0]);
}

static SizeT bytes_of(const CodeRecord *record)
{
    return sizeof(RecordHeader) + jm_code_record_program_bytes(record) + record->n_host;
}

static Bool is_sound(const CodeRecord *record)
{
    return record->n_host > 0 && record->n_host <= MAX_RECORD && record->n_guest > 0 &&
           record->n_guest <= record->n_compared && bytes_of(record) <= MAX_RECORD;
}

// Read a record, verify its checksum and return the bytes after its header; NULL if it is damaged.
static const UChar *read_record(ULong at, RecordHeader *header)
{
    const UChar *bytes = read_at(at, sizeof *header);
    if (!bytes)
        return NULL;
    jm_words_copy(header, bytes, sizeof *header);
    if (!is_sound(&header->record))
        return NULL;
    SizeT n_bytes = bytes_of(&header->record);
    bytes = read_at(at, n_bytes);
    if (!bytes)
        return NULL;
    const SizeT skip = sizeof header->checksum;
    if (record_checksum(bytes + skip, n_bytes - skip) != header->checksum)
        return NULL;
    return bytes + sizeof *header;
}

// ---- the index -----------------------------------------------------------------------------------------------

// Open addressing by the tag alone. A free slot has offset 0, where a batch begins but no record.
static Entry *slots;
static UInt n_slots, n_used;

static UInt tag_of(Addr address)
{
    return jm_hash(address) >> 32;
}

// Find the slots of a tag, the oldest record first, up to the room of `same`. Return the free slot after them.
static UInt slots_of(UInt tag, UInt same[MAX_CANDIDATES], UInt *n_same)
{
    UInt i = tag & (n_slots - 1);
    for (*n_same = 0; slots[i].at; i = (i + 1) & (n_slots - 1))
        if (slots[i].tag == tag && *n_same < MAX_CANDIDATES)
            same[(*n_same)++] = i;
    return i;
}

// A program under development has other code at one address in each run: replace the oldest record.
static void insert(Entry entry)
{
    UInt same[MAX_CANDIDATES], n_same;
    const UInt free_slot = slots_of(entry.tag, same, &n_same);
    if (n_same < MAX_CANDIDATES) {
        slots[free_slot] = entry;
        n_used++;
        return;
    }
    for (UInt i = 0; i + 1 < n_same; i++)
        slots[same[i]].at = slots[same[i + 1]].at;
    slots[same[n_same - 1]].at = entry.at;
}

static void make_room(UInt for_entries)
{
    UInt wanted = n_slots ? n_slots : 1024;
    while ((ULong)wanted * 4 < (ULong)(n_used + for_entries) * 5)
        wanted *= 2;
    if (wanted == n_slots)
        return;
    Entry *before = slots;
    UInt n_before = n_slots;
    slots = VG_(calloc)("jm.code", wanted, sizeof *slots);
    n_slots = wanted;
    n_used = 0;
    for (UInt i = 0; i < n_before; i++)
        if (before[i].at)
            insert(before[i]);
    if (before)
        VG_(free)(before);
}

// ---- batches -------------------------------------------------------------------------------------------------

static ULong header_checksum(const BatchHeader *header, const Entry *entries)
{
    ULong sum = jm_checksum(header, offsetof(BatchHeader, checksum), key.words[1]);
    return jm_checksum(entries, header->n_records * sizeof *entries, sum);
}

static Bool is_batch(const BatchHeader *header, ULong start)
{
    return header->magic == MAGIC && header->key[0] == key.words[0] && header->key[1] == key.words[1] &&
           header->n_records > 0 && header->n_records <= MAX_ENTRIES &&
           header->n_bytes > sizeof *header + header->n_records * sizeof(Entry) &&
           header->n_bytes <= 2 * PENDING_BYTES && start + header->n_bytes <= file_bytes;
}

// Find the next magic number of a batch from `at` on; the file's end if there is no other.
static ULong find_magic(ULong at)
{
    const ULong magic = MAGIC;
    while (at + sizeof magic <= file_bytes) {
        SizeT n_bytes = file_bytes - at < MAX_RECORD ? file_bytes - at : MAX_RECORD;
        const UChar *bytes = read_at(at, n_bytes);
        if (!bytes)
            break;
        for (SizeT i = 0; i + sizeof magic <= n_bytes; i++)
            if (bytes[i] == (magic & 0xff) && VG_(memcmp)(bytes + i, &magic, sizeof magic) == 0)
                return at + i;
        at += n_bytes - sizeof magic + 1;
    }
    return file_bytes;
}

// Read the header and entries of the batch at `start`; False if no valid batch begins there.
static Bool read_batch(ULong start, BatchHeader *header, Entry *entries)
{
    if (jm_cache_read(file, header, sizeof *header, start) != sizeof *header || !is_batch(header, start))
        return False;
    const SizeT n_bytes = header->n_records * sizeof *entries;
    return jm_cache_read(file, entries, n_bytes, start + sizeof *header) == (Long)n_bytes &&
           header_checksum(header, entries) == header->checksum;
}

// Find the start of the next batch. After a batch that was truncated because its writer was killed, others lie where
// its rest would be.
static ULong after_batch(ULong start, const BatchHeader *header)
{
    ULong word;
    const ULong end = start + header->n_bytes;
    if (end == file_bytes || (jm_cache_read(file, &word, sizeof word, end) == sizeof word && word == MAGIC))
        return end;
    return find_magic(start + sizeof *header);
}

// Add the records of all batches to the index.
static void read_batches(void)
{
    struct vg_stat st;
    file_bytes = VG_(fstat)(file, &st) == 0 ? st.size : 0;
    Entry *entries = VG_(malloc)("jm.code", MAX_ENTRIES * sizeof *entries);
    for (ULong at = 0; at + sizeof(BatchHeader) < file_bytes && at < ~0u;) {
        BatchHeader header;
        if (!read_batch(at, &header, entries)) {
            at = find_magic(at + 1);
            continue;
        }
        make_room(header.n_records);
        for (UInt i = 0; i < header.n_records; i++)
            insert((Entry){entries[i].tag, at + entries[i].at});
        at = after_batch(at, &header);
    }
    VG_(free)(entries);
}

// ---- look-up -------------------------------------------------------------------------------------------------

typedef enum { IS_RIGHT, IS_OTHERS, IS_CHANGED, IS_DAMAGED } Verdict;

// Compare the record at an offset with the code at `address`; if it is right, set `*host` to its host code.
static Verdict judge(ULong at, Addr address, const NSegment *mapping, RecordHeader *header, const UChar **host)
{
    const UChar *bytes = read_record(at, header);
    if (!bytes)
        return IS_DAMAGED;
    if (header->record.address != address)
        return IS_OTHERS;
    if (!jm_code_record_is_same_program(&header->record, mapping, bytes))
        return IS_CHANGED;
    *host = bytes + jm_code_record_program_bytes(&header->record);
    return IS_RIGHT;
}

// End of the record found last. The next request is mostly for the record there, in the order of the run that wrote it;
// that saves a look-up in the index, which misses all caches of the processor.
static ULong next_at;

static Bool is_next(Addr address)
{
    const UChar *bytes = next_at ? read_at(next_at, sizeof(RecordHeader)) : NULL;
    return bytes && *(const UnalignedWord *)(bytes + offsetof(RecordHeader, record.address)) == address;
}

static const UChar *found(ULong at, const RecordHeader *header, const UChar *host, CodeRecord *record)
{
    n.found++;
    *record = header->record;
    next_at = at + bytes_of(record);
    return host;
}

const UChar *jm_code_file_find(Addr address, const NSegment *mapping, CodeRecord *record)
{
    RecordHeader header;
    const UChar *host;
    if (is_next(address) && judge(next_at, address, mapping, &header, &host) == IS_RIGHT)
        return found(next_at, &header, host, record);
    Verdict worst = IS_OTHERS;
    UInt same[MAX_CANDIDATES], left = 0;
    if (n_slots)
        slots_of(tag_of(address), same, &left);
    while (left-- > 0) {
        const UInt at = slots[same[left]].at;
        const Verdict verdict = judge(at, address, mapping, &header, &host);
        if (verdict == IS_RIGHT)
            return found(at, &header, host, record);
        if (verdict > worst)
            worst = verdict;
    }
    if (worst == IS_DAMAGED)
        n.refused++;
    else if (worst == IS_CHANGED)
        n.changed++;
    else
        n.missing++;
    return NULL;
}

// ---- writing -------------------------------------------------------------------------------------------------

static UChar *pending; // records of the next batch; NULL until the first is kept
static SizeT n_pending_bytes;
static struct {
    BatchHeader header;
    Entry entries[MAX_ENTRIES];
} front; // of the next batch

static void forget_pending(void)
{
    n_pending_bytes = 0;
    front.header.n_records = 0;
}

void jm_code_file_add(const CodeRecord *record, const UChar *host)
{
    const SizeT n_bytes = bytes_of(record);
    if (!may_write || !is_sound(record))
        return;
    if (n_pending_bytes + n_bytes > PENDING_BYTES || front.header.n_records == MAX_ENTRIES)
        jm_code_file_flush();
    const SizeT front_bytes = sizeof front.header + (front.header.n_records + 1) * sizeof(Entry);
    if (file_bytes + front_bytes + n_pending_bytes + n_bytes > limit_bytes)
        return;
    if (!pending)
        pending = VG_(malloc)("jm.code", PENDING_BYTES);
    UChar *bytes = pending + n_pending_bytes;
    RecordHeader header;
    VG_(memset)(&header, 0, sizeof header);
    header.record = *record;
    VG_(memcpy)(bytes, &header, sizeof header);
    jm_code_record_copy_program(record, bytes + sizeof header);
    jm_words_copy(bytes + n_bytes - record->n_host, host, record->n_host);
    header.checksum = record_checksum(bytes + sizeof header.checksum, n_bytes - sizeof header.checksum);
    VG_(memcpy)(bytes, &header.checksum, sizeof header.checksum);
    front.entries[front.header.n_records++] = (Entry){tag_of(record->address), n_pending_bytes};
    n_pending_bytes += n_bytes;
    n.kept++;
}

void jm_code_file_flush(void)
{
    BatchHeader *header = &front.header;
    if (!may_write || header->n_records == 0)
        return;
    const SizeT front_bytes = sizeof *header + header->n_records * sizeof(Entry);
    header->magic = MAGIC;
    header->key[0] = key.words[0];
    header->key[1] = key.words[1];
    header->n_bytes = front_bytes + n_pending_bytes;
    for (UInt i = 0; i < header->n_records; i++)
        front.entries[i].at += front_bytes;
    header->checksum = header_checksum(header, front.entries);
    const CachePiece pieces[2] = {{&front, front_bytes}, {pending, n_pending_bytes}};
    ULong at;
    may_write = jm_cache_append(file, pieces, &at);
    if (may_write && at + header->n_bytes < ~0u) {
        file_bytes = at + header->n_bytes;
        make_room(header->n_records);
        for (UInt i = 0; i < header->n_records; i++)
            insert((Entry){front.entries[i].tag, at + front.entries[i].at});
    }
    forget_pending();
}

// ---- opening and closing -------------------------------------------------------------------------------------

static void name_of_file(HChar *name, SizeT size)
{
    VG_(snprintf)(name, size, "%s" SUFFIX, key.hex);
}

Bool jm_code_file_open(const CodeKey *of, ULong limit)
{
    HChar name[sizeof key.hex + 8];
    key = *of;
    limit_bytes = limit;
    name_of_file(name, sizeof name);
    const Int directory = jm_cache_directory();
    if (directory < 0)
        return False;
    may_write = True;
    file = jm_cache_directory_file(directory, name, VKI_O_CREAT | VKI_O_RDWR | VKI_O_APPEND);
    if (file < 0) {
        may_write = False;
        file = jm_cache_directory_file(directory, name, VKI_O_RDONLY);
    }
    if (file < 0)
        return False;
    read_batches();
    n_when_full = file_bytes > limit_bytes / 8 * 7 ? n_used : 0;
    return True;
}

void jm_code_file_close(void)
{
    if (file < 0)
        return;
    const Int directory = jm_cache_directory();
    HChar name[sizeof key.hex + 8];
    name_of_file(name, sizeof name);
    jm_code_file_flush();
    jm_cache_note_use(file);
    if (n.found < n_when_full / 4 * 3 && n.missing > n_when_full / 2)
        jm_cache_remove(directory, name);
    if (n.kept > 0)
        jm_cache_directory_trim(directory, SUFFIX, name, limit_bytes);
    VG_(close)(file);
    file = -1;
    may_write = False;
}

// Reopen the file: its position is shared with the parent, and an append finds its own offset by the position.
void jm_code_file_after_fork_in_child(void)
{
    if (file < 0)
        return;
    forget_pending();
    n.kept = 0;
    Int own = may_write ? jm_cache_reopen(file, VKI_O_RDWR | VKI_O_APPEND) : -1;
    may_write = own >= 0;
    if (own >= 0) {
        VG_(close)(file);
        file = own;
    }
}

void jm_code_file_stats(void)
{
    if (file < 0 && !slots)
        return;
    VG_(dmsg)
    (" jmassif: translations: %u found, %u missing, %u changed, %u refused, %u kept\n", n.found, n.missing, n.changed,
     n.refused, n.kept);
    jm_stats_row("jm.code", "kept translations", n_used,
                 (SizeT)n_slots * sizeof *slots + (pending ? PENDING_BYTES : 0));
}
