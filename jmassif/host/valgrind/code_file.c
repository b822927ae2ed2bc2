// SPDX-License-Identifier: GPL-2.0-or-later
//
// Storage of translations. The file is a sequence of batches, each appended by one write, so several processes can
// write to it without waiting. A batch is a header, records, and an entry per record (a part of its code's hash, and
// its offset). Opening the file reads headers and entries and makes an index of the entries, the only part in memory. A
// record is read when its address is requested, and used only after its checksum was verified over a private copy.
//
// The file is not trusted: a damaged record is skipped, and the file is cut where no batch follows the last. A full
// file is removed by a run that has no use for half of it and could fill half.

#include "host/valgrind/code_file.h"
#include "base/checksum.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "base/table.h"
#include "host/host.h"
#include "host/valgrind/cache_directory.h"

#include <fcntl.h>

#define MAGIC         0x3265646f636d6aULL // "jmcode2"
#define PENDING_BYTES (256 * 1024)
#define MAX_ENTRIES   4096 // per batch

typedef struct {
    ULong magic;
    UInt n_bytes; // of the batch
    UInt n_records;
} BatchHeader;

typedef struct {
    UInt tag;
    UInt at; // offset in the batch; in the index, in the file
} Entry;

static ULong key[2];
static HChar name[40];
static ULong limit_bytes;
static Int file = -1;
static Bool may_write;
static ULong file_bytes; // when last read or appended to
static UInt n_when_full; // records of a file that was full when it was opened, else 0

static struct {
    UInt found, missing, refused, kept;
} n;

const NSegment *jm_mapped_code(Addr address)
{
    const NSegment *segment = VG_(am_find_nsegment)(address);
    return segment && segment->kind == SkFileC && segment->hasR && segment->hasX && !segment->hasW ? segment : NULL;
}

// ---- records -------------------------------------------------------------------------------------------------

// Read the file in windows: translations are mostly requested in the order of the last run. Several windows, because
// threads and imports interleave. A record must fit into one.
#define N_WINDOWS    8
#define WINDOW_BYTES (32 * 1024)
#define WINDOW_ALIGN 4096
#define MAX_RECORD   (WINDOW_BYTES - WINDOW_ALIGN)

static struct {
    UChar bytes[WINDOW_BYTES] __attribute__((aligned(8)));
    ULong start, end;
} windows[N_WINDOWS];

// Return `n_bytes` at offset `at`, valid until the next call; NULL beyond the file's end.
static const void *bytes_at(ULong at, SizeT n_bytes)
{
    static UInt oldest;
    UInt i = 0;
    while (i < N_WINDOWS && !(windows[i].start <= at && at + n_bytes <= windows[i].end))
        i++;
    if (i == N_WINDOWS) {
        i = oldest++ % N_WINDOWS;
        windows[i].start = windows[i].end = VG_ROUNDDN(at, WINDOW_ALIGN);
        Long got = jm_read_at(file, windows[i].bytes, WINDOW_BYTES, windows[i].start);
        windows[i].end += got < 0 ? 0 : got;
    }
    return at + n_bytes <= windows[i].end ? windows[i].bytes + (at - windows[i].start) : NULL;
}

// VEX reads up to this far beyond the start of an instruction: the 16 bytes that announce a client request, and the
// instruction of the request (amd64: 3 bytes; arm64: 4). The instruction itself is among the translated bytes.
#define LOOKED_AHEAD 20

// Count the program's bytes from the address on that a translation depends on; 0 if they cannot be read. Those read
// ahead may lie in a page beyond the file's end.
static SizeT n_to_compare(Addr address, SizeT n_guest, const NSegment *mapping)
{
    const SizeT n_left = mapping->end - address + 1;
    const SizeT n_compared = n_guest + LOOKED_AHEAD < n_left ? n_guest + LOOKED_AHEAD : n_left;
    const Addr last_page = VG_PGROUNDDN(address + n_compared - 1);
    const Bool is_readable = last_page == VG_PGROUNDDN(address) || jm_kernel_can_read(last_page);
    return n_guest && n_guest <= n_compared && is_readable ? n_compared : 0;
}

// All parts of a record begin at a multiple of eight.
static SizeT padded(SizeT n_bytes)
{
    return (n_bytes + 7) & ~(SizeT)7;
}

static UChar *program_of(const CodeRecord *record)
{
    return (UChar *)(record + 1) + padded(record->n_host);
}

static SizeT bytes_of(const CodeRecord *record)
{
    return sizeof *record + padded(record->n_host) + padded(record->n_compared);
}

static ULong checksum_of(const CodeRecord *record)
{
    return jm_checksum(&record->address, bytes_of(record) - offsetof(CodeRecord, address), key[0]);
}

// Return the record at an offset if it is of the code that is at the address now.
static const CodeRecord *record_at(ULong at, Addr address, const NSegment *mapping)
{
    const CodeRecord *record = bytes_at(at, sizeof *record);
    if (!record || record->address != address)
        return NULL;
    if (record->n_host > MAX_RECORD || bytes_of(record) > MAX_RECORD || !(record = bytes_at(at, bytes_of(record))) ||
        record->checksum != checksum_of(record)) {
        n.refused++;
        return NULL;
    }
    const Bool is_same = record->n_compared == n_to_compare(address, record->n_guest, mapping) &&
                         memcmp((const void *)address, program_of(record), record->n_compared) == 0;
    return is_same ? record : NULL;
}

// ---- the index -----------------------------------------------------------------------------------------------

static Table entries = JM_TABLE("jm.code", Entry);

static Entry *entry(UInt i)
{
    return jm_table_at(&entries, i);
}

static Index by_tag = JM_INDEX("jm.code");

// Hash the address and the first word there: programs have other code at one address. Words do not cross pages.
static UInt tag_of(Addr address)
{
    const Bool is_whole = address % VKI_PAGE_SIZE <= VKI_PAGE_SIZE - sizeof(ULong);
    return jm_hash(address ^ jm_hash(is_whole ? *(const UnalignedWord *)address : *(const UChar *)address)) >> 32;
}

static IndexSlot *slot_of(UInt tag)
{
    return JM_INDEX_FIND(&by_tag, tag, i, entry(i)->tag == tag);
}

// Add a batch's entries. The newest record of a tag counts.
static void add_entries(const Entry *added, UInt n_added, ULong start)
{
    for (UInt i = 0; i < n_added; i++) {
        IndexSlot *slot = slot_of(added[i].tag);
        if (!slot->entry)
            jm_index_put(&by_tag, slot, jm_table_add(&entries));
        *entry(slot->entry) = (Entry){added[i].tag, start + added[i].at};
    }
}

// Add all batches to the index.
static void read_batches(void)
{
    FileStatus status;
    file_bytes = jm_file_status(file, &status) ? status.size : 0;
    Entry *added = host_alloc("jm.code", MAX_ENTRIES * sizeof *added);
    BatchHeader header = {.n_bytes = 0};
    ULong at = 0;
    for (; at < file_bytes; at += header.n_bytes) {
        if (jm_read_at(file, &header, sizeof header, at) != sizeof header || header.magic != MAGIC ||
            header.n_records > MAX_ENTRIES || header.n_bytes < sizeof header + header.n_records * sizeof *added ||
            header.n_bytes % 8 != 0 || at + header.n_bytes > file_bytes || at + header.n_bytes >= ~0u)
            break;
        const SizeT n_bytes = header.n_records * sizeof *added;
        if (jm_read_at(file, added, n_bytes, at + header.n_bytes - n_bytes) != (Long)n_bytes)
            break;
        add_entries(added, header.n_records, at);
    }
    host_free(added);
    if (may_write && at < file_bytes)
        jm_kernel_call(__NR_ftruncate, file, at, 0, 0, 0);
    file_bytes = at;
}

// End of the record found last. The next request is mostly for the record there, in the order of the run that wrote it;
// look-ups in the index miss all caches of the processor, and took 1.4 % of the time of `import torch`.
static ULong next_at;

const CodeRecord *jm_code_file_find(Addr address, const NSegment *mapping)
{
    ULong at = next_at;
    const CodeRecord *record = record_at(at, address, mapping);
    if (!record) {
        const UInt i = slot_of(tag_of(address))->entry;
        at = i ? entry(i)->at : 0; // 0: a batch begins there, and no record
        record = record_at(at, address, mapping);
    }
    n.found += record != NULL;
    n.missing += record == NULL;
    if (record)
        next_at = at + bytes_of(record);
    return record;
}

// ---- writing -------------------------------------------------------------------------------------------------

static UChar *pending; // the next batch; NULL until the first record is kept
static SizeT n_pending_bytes;
static Entry pending_entries[MAX_ENTRIES];
static UInt n_pending;

static void forget_pending(void)
{
    n_pending_bytes = sizeof(BatchHeader);
    n_pending = 0;
}

void jm_code_file_add(const VexTranslateArgs *args, const VexTranslateResult *result, const NSegment *mapping)
{
    CodeRecord added;
    memset(&added, 0, sizeof added);
    added.address = args->guest_bytes_addr;
    added.n_host = *args->host_bytes_used;
    added.n_guest = args->guest_extents->len[0];
    added.n_compared = n_to_compare(added.address, added.n_guest, mapping);
    added.result = *result;
    const SizeT n_bytes = bytes_of(&added);
    if (!may_write || !added.n_compared || n_bytes > MAX_RECORD)
        return;
    if (n_pending_bytes + n_bytes + (n_pending + 1) * sizeof(Entry) > PENDING_BYTES || n_pending == MAX_ENTRIES)
        jm_code_file_flush();
    if (file_bytes + n_pending_bytes + n_bytes + (n_pending + 1) * sizeof(Entry) > limit_bytes)
        return;
    if (!pending)
        pending = host_alloc_zeroed("jm.code", 1, PENDING_BYTES);
    CodeRecord *record = (CodeRecord *)(pending + n_pending_bytes);
    *record = added;
    memcpy(record + 1, args->host_bytes, record->n_host);
    memcpy(program_of(record), (const void *)record->address, record->n_compared);
    record->checksum = checksum_of(record);
    pending_entries[n_pending++] = (Entry){tag_of(record->address), n_pending_bytes};
    n_pending_bytes += n_bytes;
    n.kept++;
}

void jm_code_file_flush(void)
{
    if (!may_write || n_pending == 0)
        return;
    memcpy(pending + n_pending_bytes, pending_entries, n_pending * sizeof *pending_entries);
    n_pending_bytes += n_pending * sizeof *pending_entries;
    *(BatchHeader *)pending = (BatchHeader){MAGIC, n_pending_bytes, n_pending};
    FileStatus status;
    may_write = jm_file_status(file, &status) && !jm_is_beyond_limit(status.size + n_pending_bytes) &&
                jm_write(file, pending, n_pending_bytes) == (Long)n_pending_bytes;
    const ULong end = may_write ? jm_kernel_call(__NR_lseek, file, 0, VKI_SEEK_CUR, 0, 0) : 0;
    if (may_write && end < ~0u && end % 8 == 0) {
        file_bytes = end;
        add_entries(pending_entries, n_pending, end - n_pending_bytes);
    }
    forget_pending();
}

// ---- opening and closing -------------------------------------------------------------------------------------

static void open_file(Int directory)
{
    file = jm_cache_open(directory, name, O_CREAT | O_RDWR | O_APPEND);
    may_write = file >= 0;
    if (!may_write)
        file = jm_cache_open(directory, name, O_RDONLY);
}

Bool jm_code_file_open(const ULong of[2], ULong limit)
{
    const Int directory = jm_cache_directory();
    if (directory < 0)
        return False;
    key[0] = of[0];
    limit_bytes = limit;
    VG_(snprintf)(name, sizeof name, "%016llx%016llx" JM_CACHE_SUFFIX, of[0], of[1]);
    forget_pending();
    open_file(directory);
    if (file < 0)
        return False;
    read_batches();
    n_when_full = file_bytes > limit_bytes / 8 * 7 ? by_tag.used : 0;
    return True;
}

void jm_code_file_close(void)
{
    if (file < 0)
        return;
    const Int directory = jm_cache_directory();
    jm_code_file_flush();
    jm_kernel_call(__NR_utimensat, file, 0, 0, 0, 0); // now is the time of its last use
    if (n.found < n_when_full / 2 && n.missing > n_when_full / 2)
        jm_cache_remove(directory, name);
    if (n.kept > 0)
        jm_cache_directory_trim(directory, name, limit_bytes);
    jm_close(file);
    file = -1;
    may_write = False;
}

// The position of the parent's file is shared, and an append finds its own offset by the position.
void jm_code_file_after_fork_in_child(void)
{
    forget_pending();
    n.kept = 0;
    if (file >= 0 && may_write) {
        jm_close(file);
        open_file(jm_cache_directory());
    }
}

void jm_code_file_stats(void)
{
    if (file < 0 && !pending)
        return;
    VG_(dmsg)
    (" jmassif: translations: %u found, %u missing, %u refused, %u kept\n", n.found, n.missing, n.refused, n.kept);
}
