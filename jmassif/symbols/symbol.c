// SPDX-License-Identifier: GPL-2.0-or-later
//
// Symbolise code addresses once and cache their frames; see symbol.h. Frames with the same content are shared, so many
// addresses share one. The core's strings last only until its next query, so each is copied.

#include "symbols/symbol.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/hooks.h"
#include "base/libc.h"
#include "base/options.h"
#include "base/table.h"
#include "base/text.h"
#include "host/host.h"
#include "symbols/elf.h"
#include "symbols/source.h"
#include "trace/trace.h"

typedef struct {
    UInt function; // trace string ids
    UInt object;
    UInt file;
    UInt line;
    Addr start; // identifies a function without a name; else 0
    HChar type;
    UInt version;       // of the object's file, a string id, where readers are to find the line; else 0
    ULong line_address; // then, in that file; else 0
    Ruling ruling;
} Frame;

typedef struct {
    Addr start;
    Addr end;
    ULong time; // when mapped
    Bool is_told;
} CodeObject;

static Table locations = JM_TABLE("jm.location", Location);
static Table frames = JM_TABLE("jm.frame", Frame);
static Array objects = JM_ARRAY("jm.objects", CodeObject); // executable file mappings
static UInt n_untold;

static inline Location *location_at(UInt id)
{
    return jm_table_at(&locations, id);
}

static Index location_index = JM_INDEX("jm.location");

static inline Frame *frame_at(FrameId id)
{
    return jm_table_at(&frames, id);
}

static Bool is_named_in(const Array *names, const HChar *function)
{
    for (Word i = 0; function && i < jm_array_n(names); i++)
        if (jm_text_equal(*(HChar **)jm_array_at(names, i), function))
            return True;
    return False;
}

// Functions that allocate for their callers, by massif's names for them. Those of the preload library are skipped too.
static const HChar allocators[] =
    "malloc|calloc|realloc|memalign|posix_memalign|aligned_alloc|valloc|reallocarray|"
    "operator new(unsigned long)|operator new[](unsigned long)|operator new*(unsigned long, std::nothrow_t const&)|"
    "operator new*(unsigned long, std::align_val_t)|"
    "operator new*(unsigned long, std::align_val_t, std::nothrow_t const&)";

static Bool is_allocator(const HChar *function)
{
    return is_named_in(jm_options.alloc_fns, function) || (function && jm_text_fits_any(allocators, function));
}

static ULong frame_hash_of(UInt id)
{
    const Frame *f = frame_at(id);
    return jm_hash(((ULong)f->function << 32 | f->object) ^ jm_hash(((ULong)f->file << 32 | f->line) ^ f->start) ^
                   jm_hash(f->line_address) ^ f->type);
}

static Index frame_index = JM_INDEX("jm.frame");

static Bool same_frame(const Frame *a, const Frame *b)
{
    return a->function == b->function && a->object == b->object && a->file == b->file && a->line == b->line &&
           a->start == b->start && a->type == b->type && a->version == b->version && a->line_address == b->line_address;
}

static ULong function_hash_of(UInt id)
{
    const Frame *f = frame_at(id);
    return jm_hash((ULong)f->function << 32 | (f->type == 'p' ? f->file : f->object));
}

static Index function_index = JM_INDEX("jm.frame"); // the first frame of each function

// Rules know functions and not their lines.
static Ruling judge(FrameId id, const NamedFrame *named)
{
    const Frame *f = frame_at(id);
    IndexSlot *slot =
        JM_INDEX_FIND(&function_index, function_hash_of(id), known,
                      frame_at(known)->type == f->type && frame_at(known)->function == f->function &&
                          frame_at(known)->object == f->object && (f->type != 'p' || frame_at(known)->file == f->file));
    if (slot->entry)
        return frame_at(slot->entry)->ruling;
    jm_index_put(&function_index, slot, id);
    return jm_owner_judge(named);
}

// Intern the frame of a function and line. All its addresses share one frame: separate call sites would make many times
// more stacks that look the same to a user, as an interpreter's loop calls itself from a hundred places of one line.
// While the line is not known, each address has its own.
static FrameId intern_frame(HChar type, const HostFrame *named, const HChar *object, const HChar *soname, Addr ip)
{
    const HChar *function = named->function, *file = named->file;
    const UInt line = named->line;
    FrameId id = jm_table_add(&frames);
    Frame *fresh = frame_at(id);
    fresh->function = jm_trace_string(function);
    fresh->object = jm_trace_path_string(object);
    fresh->file = jm_trace_path_string(file);
    fresh->line = line;
    fresh->start = function ? 0 : jm_find_unwind_entry(ip, UNWIND_FUNCTION);
    if (!function && !fresh->start)
        fresh->start = ip;
    fresh->type = type;
    fresh->version = jm_trace_string(named->file_version);
    fresh->line_address = named->line_address;
    IndexSlot *slot = JM_INDEX_FIND(&frame_index, frame_hash_of(id), known, same_frame(frame_at(known), fresh));
    if (slot->entry) {
        jm_table_drop_last(&frames);
        return slot->entry;
    }
    jm_index_put(&frame_index, slot, id);
    const NamedFrame judged = {type, type == 'p' ? file : object, soname, function};
    fresh->ruling = judge(id, &judged);
    Bool is_own = fresh->ruling.code == CODE_OWN || fresh->ruling.code == CODE_MAIN;
    const Addr address = fresh->start ? fresh->start : ip;
    if (fresh->line_address)
        jm_trace_frame_without_line(id, type, fresh->function, fresh->object, address, fresh->version,
                                    fresh->line_address);
    else
        jm_trace_frame(id, type, fresh->function, fresh->object, fresh->file, line, address);
    if (type == 'p' && is_own)
        jm_source_seen(file, fresh->file);
    return id;
}

#define MAX_INLINED 64 // per address; calls further out are dropped

Bool jm_symbol_is_preload_library(const HChar *path)
{
    const HChar *name = jm_text_file_name(path);
    return strncmp(name, "vgpreload_", 10) == 0 || jm_text_equal(name, "libjmassif-native.so");
}

// An address, while its functions are named.
typedef struct {
    Location *at;
    FrameId *ids;
    const HChar *object, *soname;
} Naming;

static void name_function(void *context, const HostFrame *frame)
{
    const Naming *n = context;
    Location *at = n->at;
    const HChar *function = frame->function;
    at->is_allocator = at->is_allocator || is_allocator(function);
    at->is_ignored = at->is_ignored || is_named_in(jm_options.ignore_fns, function);
    at->is_below_main = at->is_below_main || (function && !frame->is_inlined && host_is_below_main(function));
    if (at->n_frames < MAX_INLINED)
        n->ids[at->n_frames++] = intern_frame(frame->is_inlined ? 'i' : 'n', frame, n->object, n->soname, at->ip);
}

static void symbolise(Location *at, Addr ip)
{
    const HChar *path, *soname_seen;
    FrameId ids[MAX_INLINED];
    at->ip = ip;
    host_object_at(ip, &path, &soname_seen);
    HChar *object = jm_text_copy("jm.symbol", path), *soname = jm_text_copy("jm.symbol", soname_seen);
    at->has_object = object != NULL;
    at->is_below_main = !object;
    at->is_allocator = object && jm_symbol_is_preload_library(object);
    Naming naming = {at, ids, object, soname};
    host_frames_at(ip, !at->is_allocator, name_function, &naming);
    at->frame = ids[0];
    if (at->n_frames > 1) {
        at->inlined = host_alloc("jm.symbol", at->n_frames * sizeof *ids);
        memcpy(at->inlined, ids, at->n_frames * sizeof *ids);
    }
    host_free(object);
    host_free(soname);
}

// Direct-mapped cache of locations: one load instead of four dependent ones.
#define RECENT_BITS 12
static Location recent[1u << RECENT_BITS];

static const Location *look_up(Addr ip)
{
    IndexSlot *slot = JM_INDEX_FIND(&location_index, jm_hash(ip), id, location_at(id)->ip == ip);
    Location *at =
        location_at(slot->entry ? slot->entry : jm_index_put(&location_index, slot, jm_table_add(&locations)));
    if (at->is_forgotten) { // a library that is loaded again often has the same addresses
        host_free(at->inlined);
        *at = (Location){0};
    }
    if (!at->n_frames)
        symbolise(at, ip);
    return at;
}

const Location *jm_symbol_locate(Addr ip)
{
    Location *at = &recent[jm_place(ip, RECENT_BITS)];
    if (at->ip != ip || !at->n_frames)
        *at = *look_up(ip);
    return at;
}

FrameId jm_symbol_python_frame(const HChar *function, const HChar *file, UInt line)
{
    const HostFrame named = {.function = function, .file = file, .line = line};
    return intern_frame('p', &named, NULL, NULL, 0);
}

FrameId jm_symbol_mapped_frame(const HChar *path, Bool is_object)
{
    const HostFrame named = {.function = is_object ? "mapped" : "mapped-data"};
    return intern_frame('m', &named, path, NULL, 0);
}

// Skip the owner rules: the owner does not depend on the thread.
FrameId jm_symbol_thread_frame(UInt number)
{
    FrameId id = jm_table_add(&frames);
    *frame_at(id) = (Frame){.type = 't', .line = number};
    jm_trace_frame(id, 't', 0, 0, 0, number, 0);
    return id;
}

const Ruling *jm_symbol_ruling(FrameId frame)
{
    return &frame_at(frame)->ruling;
}

Preload jm_preloads[JM_N_PRELOADS];

static void add_preload(Addr start, SizeT bytes)
{
    for (UInt i = 0; i < JM_N_PRELOADS; i++)
        if (jm_preloads[i].bytes == 0 || jm_preloads[i].start == start) {
            jm_preloads[i] = (Preload){start, bytes};
            return;
        }
}

void jm_symbol_object_mapped(Addr start, SizeT bytes)
{
    Mapping mapping;
    if (!host_mapping_at(start, &mapping) || mapping.as != MAPPED_FILE)
        return;
    // Skip the tool's own file: one page of it, the core's trampolines, is mapped executable for the program.
    const HChar *path = mapping.path;
    if (path && jm_text_fits("jmassif-*-linux", 0, jm_text_file_name(path)))
        return;
    if (path && jm_symbol_is_preload_library(path))
        add_preload(start, bytes);
    else if (!mapping.is_programs)
        return;
    CodeObject object = {start, start + bytes, jm_clock_cached(), False};
    jm_array_add(&objects, &object);
    n_untold++;
}

void jm_symbol_tell_objects(Bool all)
{
    for (Word i = 0; n_untold && i < jm_array_n(&objects); i++) {
        CodeObject *object = jm_array_at(&objects, i);
        if (object->is_told)
            continue;
        const HChar *soname = NULL;
        if (!host_knows_object(object->start, object->end, &soname) && !all)
            continue;
        object->is_told = True;
        n_untold--;
        Mapping mapping;
        if (!host_mapping_at(object->start, &mapping) || !mapping.path)
            continue;
        jm_trace_object(object->time, object->start, object->end - object->start, soname, mapping.path);
        jm_hooks.object_found(soname, mapping.path, object->start);
    }
}

void jm_symbol_forget(Addr start, SizeT bytes)
{
    for (UInt id = 1; id < locations.n; id++) {
        Location *at = location_at(id);
        if (at->ip >= start && at->ip < start + bytes)
            at->is_forgotten = True;
    }
    memset(recent, 0, sizeof recent);
}

Bool jm_symbol_unmapped(Addr start, SizeT bytes)
{
    Bool was_code = False;
    for (Word i = jm_array_n(&objects) - 1; i >= 0; i--) {
        CodeObject *object = jm_array_at(&objects, i);
        if (object->start < start + bytes && start < object->end) {
            if (object->is_told)
                jm_trace_object_end(jm_clock_cached(), object->start);
            else
                n_untold--;
            jm_array_remove(&objects, i);
            was_code = True;
        }
    }
    for (UInt i = 0; i < JM_N_PRELOADS; i++)
        if (jm_preloads[i].start < start + bytes && start < jm_preloads[i].start + jm_preloads[i].bytes)
            jm_preloads[i].bytes = 0;
    if (was_code)
        jm_symbol_forget(start, bytes);
    return was_code;
}
