// SPDX-License-Identifier: GPL-2.0-or-later
//
// The only writer of the trace (docs/trace-format.md): one macro or function per record. trace_file.h has the file
// behind it. Write errors are handled there: these always succeed. Times are in the unit of --time-unit; sizes are in
// bytes; names of strings are ids of jm_trace_string.

#pragma once

#include "attribution/kind.h"
#include "trace/records.h"
#include "trace/trace_file.h"

// Writes a record. Each letter of `fields` is the type of a value: u and x a number, x in hexadecimal; c a character;
// n a name; g the growth of each kind; t or p a text that ends the record, p with paths.
void jm_trace_record(Record record, const HChar *fields, const ULong *values);

#define JM_TRACE_RECORD(record, fields, ...) jm_trace_record(RECORD_##record, fields, (const ULong[]){__VA_ARGS__})
#define JM_TRACE_TEXT(text)                  ((UWord)((const HChar *){text}))

typedef struct {
    Long bytes;
    Long blocks;
} Growth; // one per kind

// Returns a string's id, the same for the same text, and 0 for NULL. With --anonymize=yes the path function, and
// fields with paths, replace the home directory by ~.
UInt jm_trace_string(const HChar *text);
ULong jm_trace_text_hash(const HChar *text); // strings with equal hashes count as equal
UInt jm_trace_path_string(const HChar *path);

// Nodes and accounts must come in the order of their ids, from 1 on.
void jm_trace_node(UInt id, UInt parent, UInt frame);
void jm_trace_account(UInt id, UInt node, Kind kind, OwnerId owner, const HChar *owner_name);

#define jm_trace_manifest(key, text)       JM_TRACE_RECORD(MANIFEST, "np", JM_TRACE_TEXT(key), JM_TRACE_TEXT(text))
#define jm_trace_manifest_uint(key, value) JM_TRACE_RECORD(MANIFEST, "nu", JM_TRACE_TEXT(key), value)
#define jm_trace_group(owner, group)       JM_TRACE_RECORD(GROUP, "nn", JM_TRACE_TEXT(owner), JM_TRACE_TEXT(group))
#define jm_trace_frame(id, type, function, object, file, line, address)                                                \
    JM_TRACE_RECORD(FRAME, "ucuuuux", id, type, function, object, file, line, address)
// The frame of an address, without its line: readers find that in a version of the object's file.
#define jm_trace_frame_without_line(id, type, function, object, address, version, line_address)                        \
    JM_TRACE_RECORD(FRAME, "ucuuuuxux", id, type, function, object, 0, 0, address, version, line_address)
// The thread's name from now on.
#define jm_trace_thread(number, name) JM_TRACE_RECORD(THREAD, "uu", number, name)
#define jm_trace_source(file, crc32)  JM_TRACE_RECORD(SOURCE, "ux", file, crc32)
#define jm_trace_role(account, role)  JM_TRACE_RECORD(ROLE, "un", account, JM_TRACE_TEXT(role))

#define jm_trace_totals(time, host, device, max) JM_TRACE_RECORD(TOTALS, "uuuu", time, host, device, max)
#define jm_trace_snapshot_begin(id, time, reason, host, device)                                                        \
    JM_TRACE_RECORD(SNAPSHOT, "uunuu", id, time, JM_TRACE_TEXT(reason), host, device)
#define jm_trace_balance(account, bytes, blocks, total_bytes, total_blocks, temporaries)                               \
    JM_TRACE_RECORD(BALANCES, "uuuuuu", account, bytes, blocks, total_bytes, total_blocks, temporaries)
#define jm_trace_pages(account, virtual, shared, swapped)                                                              \
    JM_TRACE_RECORD(PAGES, "uuuu", account, virtual, shared, swapped)
#define jm_trace_peak(which, time, host, device) JM_TRACE_RECORD(PEAK, "nuuu", JM_TRACE_TEXT(which), time, host, device)
#define jm_trace_at_peak(account, bytes, blocks) JM_TRACE_RECORD(AT_PEAK, "uuu", account, bytes, blocks)
#define jm_trace_snapshot_end(id)                JM_TRACE_RECORD(SNAPSHOT_END, "u", id)

#define jm_trace_block(time, address, bytes, account) JM_TRACE_RECORD(BLOCK, "uxuu", time, address, bytes, account)
#define jm_trace_block_end(time, address, account)    JM_TRACE_RECORD(BLOCK_END, "uxu", time, address, account)
#define jm_trace_large_threshold(time, bytes)         JM_TRACE_RECORD(LARGE, "uu", time, bytes)

#define jm_trace_scope(id, parent, tid, begin, end, node, name, growth)                                                \
    JM_TRACE_RECORD(SCOPE, "uuuuuuug", id, parent, tid, begin, end, node, name, (UWord)(growth))
#define jm_trace_scope_sum(name, count, time, growth)                                                                  \
    JM_TRACE_RECORD(SCOPE_SUM, "uuug", name, count, time, (UWord)(growth))
#define jm_trace_failure(name, code, count) JM_TRACE_RECORD(FAILURE, "uuu", name, code, count)
#define jm_trace_counter(key, count)        JM_TRACE_RECORD(COUNTER, "nu", JM_TRACE_TEXT(key), count)
void jm_trace_nonzero(const HChar *key, ULong count);              // a counter, unless it is 0
void jm_trace_changed(const HChar *key, ULong count, ULong *last); // a counter, unless it is what was written last
#define jm_trace_system(time, figure, bytes) JM_TRACE_RECORD(SYSTEM, "unu", time, JM_TRACE_TEXT(figure), bytes)
#define jm_trace_mark(time, name)            JM_TRACE_RECORD(MARK, "uu", time, name)
// Later peaks belong to the new stage.
#define jm_trace_stage(time)                   JM_TRACE_RECORD(STAGE, "u", time)
#define jm_trace_region_begin(time, tid, name) JM_TRACE_RECORD(REGION_BEGIN, "uuu", time, tid, name)
#define jm_trace_region_end(time, tid, name)   JM_TRACE_RECORD(REGION_END, "uuu", time, tid, name)
#define jm_trace_region_sum(name, count, time) JM_TRACE_RECORD(REGION_SUM, "uuu", name, count, time)
#define jm_trace_exhaustion(id, time, tid, account, api, error, bytes, again)                                          \
    JM_TRACE_RECORD(EXHAUSTION, "uuuuuuuu", id, time, tid, account, api, error, bytes, again)
#define jm_trace_exhaustion_figure(event, figure, bytes)                                                               \
    JM_TRACE_RECORD(EXHAUSTION_FIGURE, "unu", event, JM_TRACE_TEXT(figure), bytes)
#define jm_trace_outcome(event, time, outcome) JM_TRACE_RECORD(OUTCOME, "uun", event, time, JM_TRACE_TEXT(outcome))
// Held twice from that time on, by two accounts; copied by a third one's stack, and registered by that of another (0:
// not).
#define jm_trace_copy(id, time, host, device, copied_by, pinned_by, bytes, from, to)                                   \
    JM_TRACE_RECORD(COPY, "uuuuuuuxx", id, time, host, device, copied_by, pinned_by, bytes, from, to)
// Until that time; id 0: all that have not ended.
#define jm_trace_copy_end(id, time)            JM_TRACE_RECORD(COPY_END, "uu", id, time)
#define jm_trace_copied(account, count, bytes) JM_TRACE_RECORD(COPY_SUM, "uuu", account, count, bytes)
// `of_type` of the elements are of that type; a variable of the holder, which is a module, class, instance or function.
#define jm_trace_container(account, elements, of_type, container, type, variable, sort, holder)                        \
    JM_TRACE_RECORD(CONTAINER, "uuuuuunu", account, elements, of_type, container, type, variable, JM_TRACE_TEXT(sort), \
                    holder)
#define jm_trace_mapped(time, address, bytes, handle) JM_TRACE_RECORD(MAPPED, "uxux", time, address, bytes, handle)
#define jm_trace_unmapped(time, address, bytes)       JM_TRACE_RECORD(UNMAPPED, "uxu", time, address, bytes)
#define jm_trace_object(time, address, bytes, soname, file)                                                            \
    JM_TRACE_RECORD(OBJECT, "uxuup", time, address, bytes, jm_trace_string(soname), JM_TRACE_TEXT(file))
#define jm_trace_object_end(time, address) JM_TRACE_RECORD(OBJECT_END, "ux", time, address)
#define jm_trace_end(time, reason, code)   JM_TRACE_RECORD(END, "unu", time, JM_TRACE_TEXT(reason), code)
