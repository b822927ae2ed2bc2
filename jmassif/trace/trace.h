// SPDX-License-Identifier: GPL-2.0-or-later
//
// The only writer of the trace (docs/trace-format.md): one function per record. trace_file.h has the file behind it.
// Write errors are handled there: these functions always succeed. Times are in the unit of --time-unit; sizes are in
// bytes.

#ifndef JM_TRACE_H
#define JM_TRACE_H

#include "attribution/kind.h"
#include "host/types.h"
#include "trace/trace_file.h"

// Returns a string's id, the same for the same text, and 0 for NULL. With --anonymize=yes the path functions replace
// the home directory by ~.
UInt jm_trace_string(const HChar *text);
ULong jm_trace_text_hash(const HChar *text); // strings with equal hashes count as equal
UInt jm_trace_path_string(const HChar *path);

void jm_trace_manifest(const HChar *key, const HChar *text);
void jm_trace_manifest_paths(const HChar *key, const HChar *paths); // with --anonymize: as jm_trace_path_string
void jm_trace_manifest_uint(const HChar *key, ULong value);
void jm_trace_group(const HChar *owner, const HChar *group);
void jm_trace_frame(UInt id, HChar type, UInt function, UInt object, UInt file, UInt line, Addr address);
void jm_trace_thread(UInt number, UInt name);         // the thread's name from now on
void jm_trace_source(UInt file, const HChar *sha256); // hash of a source file's text
// Nodes and accounts must come in the order of their ids, from 1 on.
void jm_trace_node(UInt id, UInt parent, UInt frame);
void jm_trace_account(UInt id, UInt node, Kind kind, OwnerId owner, const HChar *owner_name);
void jm_trace_role(UInt account, const HChar *role);

void jm_trace_totals(ULong time, ULong host_bytes, ULong device_bytes, ULong max_bytes);
void jm_trace_snapshot_begin(UInt id, ULong time, const HChar *reason, ULong host_bytes, ULong device_bytes);
void jm_trace_balance(UInt account, ULong live_bytes, ULong live_blocks, ULong total_bytes, ULong total_blocks,
                      ULong temporaries);
void jm_trace_pages(UInt account, ULong virtual_bytes, ULong shared_bytes, ULong swapped_bytes);
void jm_trace_peak(const HChar *which, ULong time, ULong host_bytes, ULong device_bytes);
void jm_trace_at_peak(UInt account, ULong live_bytes, ULong live_blocks);
void jm_trace_snapshot_end(UInt id);

void jm_trace_block(ULong time, Addr address, ULong bytes, UInt account);
void jm_trace_block_end(ULong time, Addr address, UInt account);
void jm_trace_large_threshold(ULong time, ULong bytes);

typedef struct {
    Long bytes;
    Long blocks;
} Growth; // one per kind

void jm_trace_scope(UInt id, UInt parent, UInt tid, ULong begin, ULong end, UInt node, UInt name,
                    const Growth growth[N_KINDS]);
void jm_trace_scope_sum(UInt name, ULong count, ULong time, const Growth growth[N_KINDS]);
void jm_trace_failure(UInt name, ULong code, ULong count);
void jm_trace_counter(const HChar *key, ULong count);
void jm_trace_system(ULong time, const HChar *figure, ULong bytes);
void jm_trace_mark(ULong time, UInt name);
void jm_trace_stage(ULong time); // later peaks belong to the new stage
void jm_trace_region(Bool begins, ULong time, UInt tid, UInt name);
void jm_trace_region_sum(UInt name, ULong count, ULong time);
void jm_trace_exhaustion(UInt id, ULong time, UInt tid, UInt account, UInt api, UInt error, ULong bytes, UInt again);
void jm_trace_exhaustion_figure(UInt event, const HChar *figure, ULong bytes);
void jm_trace_outcome(UInt event, ULong time, const HChar *outcome);
void jm_trace_mapped(ULong time, Addr address, ULong bytes, UWord handle);
void jm_trace_unmapped(ULong time, Addr address, ULong bytes);
void jm_trace_object(ULong time, Addr address, SizeT bytes, const HChar *soname, const HChar *path);
void jm_trace_object_end(ULong time, Addr address);
void jm_trace_end(ULong time, const HChar *reason, UInt code);

void jm_trace_stats(void); // writes sizes of tables (stats.h)

#endif
