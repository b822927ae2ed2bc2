// SPDX-License-Identifier: GPL-2.0-or-later
//
// Symbolise code addresses once and cache their frames; see symbol.h. Frames with the same content are shared, so many
// addresses share one. The core's strings last only until its next query, so each is copied.

#include "symbols/symbol.h"
#include "symbols/source.h"
#include "symbols/elf.h"
#include "base/clock.h"
#include "base/options.h"
#include "base/stats.h"
#include "base/table.h"
#include "trace/trace.h"

typedef struct {
    UInt function; // trace string ids
    UInt object;
    UInt file;
    UInt line;
    Addr start; // identifies a function without a name; else 0
    HChar type;
    FrameOwners owners;
    RoleId role;
    UChar code; // a Code (owner.h)
} Frame;

typedef struct {
    Addr start;
    Addr end;
    ULong time; // when mapped
    Bool is_told;
} CodeObject;

static Table locations = JM_TABLE("jm.location", Location);
static Index location_index = JM_INDEX("jm.location");
static Table frames = JM_TABLE("jm.frame", Frame);
static Index frame_index = JM_INDEX("jm.frame");
static UInt n_inlined;  // entries in all locations' lists
static XArray *objects; // executable file mappings (CodeObject)
static UInt n_untold;
static void (*object_callback)(const HChar *soname, const HChar *path, Addr code);

static ULong location_hash_of(UInt id)
{
    return jm_hash(((Location *)jm_table_at(&locations, id))->ip);
}

static Bool is_named_in(const XArray *names, const HChar *function)
{
    for (Word i = 0; function && i < VG_(sizeXA)(names); i++)
        if (VG_STREQ(*(HChar **)VG_(indexXA)(names, i), function))
            return True;
    return False;
}

static ULong frame_hash_of(UInt id)
{
    const Frame *f = jm_table_at(&frames, id);
    return jm_hash(((ULong)f->function << 32 | f->object) ^ jm_hash(((ULong)f->file << 32 | f->line) ^ f->start) ^
                   f->type);
}

static Bool same_frame(const Frame *a, const Frame *b)
{
    return a->function == b->function && a->object == b->object && a->file == b->file && a->line == b->line &&
           a->start == b->start && a->type == b->type;
}

static Addr unnamed_function(Addr ip)
{
    Addr start = jm_find_function_start(ip);
    return start ? start : ip;
}

// Intern the frame of a function and line. All its addresses share one frame: separate call sites would make many times
// more stacks that look the same to a user, as an interpreter's loop calls itself from a hundred places of one line.
static FrameId intern_frame(HChar type, const HChar *function, const HChar *object, const HChar *soname,
                            const HChar *file, UInt line, Addr ip)
{
    FrameId id = jm_table_add(&frames);
    Frame *fresh = jm_table_at(&frames, id);
    fresh->function = jm_trace_string(function);
    fresh->object = jm_trace_path_string(object);
    fresh->file = jm_trace_path_string(file);
    fresh->line = line;
    fresh->start = function ? 0 : unnamed_function(ip);
    fresh->type = type;
    jm_index_reserve(&frame_index, frame_hash_of);
    UInt slot = (UInt)frame_hash_of(id) & frame_index.mask;
    while (frame_index.slots[slot]) {
        FrameId known = frame_index.slots[slot];
        if (same_frame(jm_table_at(&frames, known), fresh)) {
            jm_table_drop_last(&frames);
            return known;
        }
        slot = (slot + 1) & frame_index.mask;
    }
    frame_index.slots[slot] = id;
    frame_index.used++;
    const NamedFrame named = {type, type == 'p' ? file : object, soname, function};
    const Ruling ruling = jm_owner_judge(&named);
    fresh->owners = ruling.owners;
    fresh->role = ruling.role;
    fresh->code = ruling.code;
    Bool is_own = fresh->code == CODE_OWN || fresh->code == CODE_MAIN;
    jm_trace_frame(id, type, fresh->function, fresh->object, fresh->file, line, fresh->start ? fresh->start : ip);
    if (type == 'p' && is_own)
        jm_source_seen(file, fresh->file);
    return id;
}

#define MAX_INLINED 64 // per address; calls further out are dropped

static void add_frame(Location *at, FrameId *ids, HChar type, const HChar *function, const HChar *object,
                      const HChar *soname, const HChar *file, UInt line, Addr ip)
{
    at->is_allocator = at->is_allocator || is_named_in(jm_options.alloc_fns, function);
    at->is_ignored = at->is_ignored || is_named_in(jm_options.ignore_fns, function);
    at->is_evaluator = at->is_evaluator || (function && VG_(strncmp)(function, "_PyEval_EvalFrameDefault", 24) == 0);
    if (at->n_frames < MAX_INLINED)
        ids[at->n_frames++] = intern_frame(type, function, object, soname, file, line, ip);
}

// Split "0xADDR: FUNCTION (FILE:LINE)" in place. The core describes inlined calls in no other form.
static Bool split_description(HChar *text, HChar **function, HChar **file, UInt *line)
{
    *function = VG_(strstr)(text, ": ");
    HChar *open = VG_(strrchr)(text, '(');
    if (!*function || !open || open < *function + 3)
        return False;
    *function += 2;
    open[-1] = 0;
    *file = NULL;
    *line = 0;
    if (VG_(strncmp)(open, "(in ", 4) == 0)
        return True; // the object's name instead of a source line
    *file = open + 1;
    HChar *close = VG_(strrchr)(*file, ')');
    HChar *colon = VG_(strrchr)(*file, ':');
    if (close)
        *close = 0;
    if (colon) {
        *colon = 0;
        *line = VG_(strtoull10)(colon + 1, NULL);
    }
    return True;
}

// Add frames of the calls inlined at `ip`, innermost first, then of the function that contains them. False if no call
// was inlined.
static Bool add_inlined(Location *at, FrameId *ids, DiEpoch epoch, Addr ip, const HChar *object, const HChar *soname)
{
    InlIPCursor *cursor = VG_(new_IIPC)(epoch, ip);
    if (!cursor)
        return False;
    Bool any = False;
    HChar *held = NULL;
    for (;;) {
        const HChar *described = VG_(describe_IP)(epoch, ip, cursor);
        HChar *now = VG_(strdup)("jm.symbol", described);
        if (!VG_(next_IIPC)(cursor)) {
            held = now; // the containing function
            break;
        }
        HChar *function, *file;
        UInt line;
        if (split_description(now, &function, &file, &line))
            add_frame(at, ids, 'i', function, object, soname, file, line, ip);
        any = True;
        VG_(free)(now);
    }
    VG_(delete_IIPC)(cursor);
    HChar *function, *file;
    UInt line;
    if (any && split_description(held, &function, &file, &line))
        add_frame(at, ids, 'n', function, object, soname, file, line, ip);
    else
        any = False;
    VG_(free)(held);
    return any;
}

// The name of the function at `ip`, or NULL. The caller frees it.
static HChar *function_name(DiEpoch epoch, Addr ip)
{
    const HChar *text;
    if (!VG_(get_fnname)(epoch, ip, &text))
        return NULL;
    HChar *function = VG_(strdup)("jm.symbol", text);
    // Cut off the symbol's version (dlopen@@GLIBC_2.34): it is not part of the function's name.
    HChar *version = VG_(strchr)(function, '@');
    if (version && version != function)
        *version = 0;
    return function;
}

// The source file and line of `ip`; NULL if unknown. The caller frees the path.
static HChar *source_line(DiEpoch epoch, Addr ip, UInt *line)
{
    const HChar *file, *directory;
    *line = 0;
    if (!VG_(get_filename_linenum)(epoch, ip, &file, &directory, line))
        return NULL;
    // Both strings belong to the debug info, so copy them before its next query.
    HChar *path = VG_(malloc)("jm.symbol", VG_(strlen)(file) + VG_(strlen)(directory) + 2);
    VG_(sprintf)(path, "%s%s%s", directory, *directory ? "/" : "", file);
    return path;
}

static void free_if_any(HChar *text)
{
    if (text)
        VG_(free)(text);
}

Bool jm_symbol_is_preload_library(const HChar *path)
{
    return VG_(strncmp)(VG_(basename)(path), "vgpreload_", 10) == 0;
}

static void symbolise(Location *at, Addr ip)
{
    DiEpoch epoch = VG_(current_DiEpoch)();
    const HChar *text;
    FrameId ids[MAX_INLINED];
    at->ip = ip;

    HChar *object = NULL, *soname = NULL, *function = NULL;
    if (VG_(get_objname)(epoch, ip, &text)) {
        object = VG_(strdup)("jm.symbol", text);
        at->has_object = True;
        DebugInfo *di = VG_(find_DebugInfo)(epoch, ip);
        text = di ? VG_(DebugInfo_get_soname)(di) : NULL;
        if (text)
            soname = VG_(strdup)("jm.symbol", text);
    }
    at->is_allocator = object && jm_symbol_is_preload_library(object);

    if (at->is_allocator || !add_inlined(at, ids, epoch, ip, object, soname)) {
        UInt line;
        function = function_name(epoch, ip);
        HChar *file = source_line(epoch, ip, &line);
        add_frame(at, ids, 'n', function, object, soname, file, line, ip);
        free_if_any(file);
    }
    // The core renames start-up functions that it knows by their full names. VG_(get_fnname_kind) also knows those with
    // the version cut off above.
    at->is_below_main =
        !object ||
        (function && (VG_STREQ(function, "(below main)") || VG_(get_fnname_kind)(function) == Vg_FnNameBelowMain));
    at->frame = ids[0];
    if (at->n_frames > 1) {
        at->inlined = VG_(malloc)("jm.symbol", at->n_frames * sizeof *ids);
        VG_(memcpy)(at->inlined, ids, at->n_frames * sizeof *ids);
        n_inlined += at->n_frames;
    }
    free_if_any(object);
    free_if_any(soname);
    free_if_any(function);
}

// Direct-mapped cache of locations: one load instead of four dependent ones.
#define RECENT_BITS 10
static Location recent[1u << RECENT_BITS];

static void symbolise_again(Location *at)
{
    Addr ip = at->ip;
    if (at->inlined) {
        n_inlined -= at->n_frames;
        VG_(free)(at->inlined);
    }
    VG_(memset)(at, 0, sizeof *at);
    symbolise(at, ip);
}

static const Location *look_up(Addr ip)
{
    jm_index_reserve(&location_index, location_hash_of);
    UInt slot = (UInt)jm_hash(ip) & location_index.mask;
    while (location_index.slots[slot]) {
        Location *known = jm_table_at(&locations, location_index.slots[slot]);
        if (known->ip == ip) {
            // A library that is loaded again often has the same addresses.
            if (known->is_forgotten)
                symbolise_again(known);
            return known;
        }
        slot = (slot + 1) & location_index.mask;
    }
    UInt id = jm_table_add(&locations);
    location_index.slots[slot] = id;
    location_index.used++;
    Location *at = jm_table_at(&locations, id);
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
    return intern_frame('p', function, NULL, NULL, file, line, 0);
}

FrameId jm_symbol_mapped_frame(const HChar *path, Bool is_object)
{
    return intern_frame('m', is_object ? "mapped" : "mapped-data", path, NULL, NULL, 0, 0);
}

// Skip the owner rules: the owner does not depend on the thread.
FrameId jm_symbol_thread_frame(UInt number)
{
    FrameId id = jm_table_add(&frames);
    *(Frame *)jm_table_at(&frames, id) = (Frame){.type = 't', .line = number};
    jm_trace_frame(id, 't', 0, 0, 0, number, 0);
    return id;
}

OwnerId jm_symbol_host_owner(FrameId frame)
{
    return ((Frame *)jm_table_at(&frames, frame))->owners.host;
}
OwnerId jm_symbol_device_owner(FrameId frame)
{
    return ((Frame *)jm_table_at(&frames, frame))->owners.device;
}
OwnerId jm_symbol_driver_owner(FrameId frame)
{
    return ((Frame *)jm_table_at(&frames, frame))->owners.driver;
}

RoleId jm_symbol_role(FrameId frame)
{
    return ((Frame *)jm_table_at(&frames, frame))->role;
}

Code jm_symbol_code(FrameId frame)
{
    return ((Frame *)jm_table_at(&frames, frame))->code;
}

void jm_symbol_on_object(void (*callback)(const HChar *soname, const HChar *path, Addr code))
{
    object_callback = callback;
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
    const NSegment *segment = VG_(am_find_nsegment)(start);
    if (!segment || segment->kind != SkFileC)
        return;
    // Skip the tool's own file: one page of it, the core's trampolines, is mapped executable for the program.
    const HChar *path = VG_(am_get_filename)(segment);
    if (path && VG_(string_match)("jmassif-*-linux", VG_(basename)(path)))
        return;
    if (path && jm_symbol_is_preload_library(path))
        add_preload(start, bytes);
    if (!objects)
        objects = VG_(newXA)(VG_(malloc), "jm.objects", VG_(free), sizeof(CodeObject));
    CodeObject object = {start, start + bytes, jm_clock_cached(), False};
    VG_(addToXA)(objects, &object);
    n_untold++;
}

// The core's debug info for the object; NULL until the core has seen all of its mappings. Search by text address: the
// mapping may start with the procedure linkage table, which the core does not count as text.
static const DebugInfo *debug_info_of(const CodeObject *object)
{
    for (const DebugInfo *di = VG_(next_DebugInfo)(NULL); di; di = VG_(next_DebugInfo)(di)) {
        Addr text = VG_(DebugInfo_get_text_avma)(di);
        if (text >= object->start && text < object->end)
            return di;
    }
    return NULL;
}

void jm_symbol_tell_objects(Bool all)
{
    for (Word i = 0; n_untold && i < VG_(sizeXA)(objects); i++) {
        CodeObject *object = VG_(indexXA)(objects, i);
        if (object->is_told)
            continue;
        const DebugInfo *di = debug_info_of(object);
        if (!di && !all)
            continue;
        object->is_told = True;
        n_untold--;
        const NSegment *segment = VG_(am_find_nsegment)(object->start);
        const HChar *path = segment ? VG_(am_get_filename)(segment) : NULL;
        if (!path)
            continue;
        const HChar *soname = di ? VG_(DebugInfo_get_soname)(di) : NULL;
        // The core reports a missing soname as NONE.
        if (VG_STREQ(soname, "NONE"))
            soname = NULL;
        jm_trace_object(object->time, object->start, object->end - object->start, soname, path);
        object_callback(soname, path, object->start);
    }
}

void jm_symbol_forget(Addr start, SizeT bytes)
{
    for (UInt id = 1; id < locations.n; id++) {
        Location *at = jm_table_at(&locations, id);
        if (at->ip >= start && at->ip < start + bytes)
            at->is_forgotten = True;
    }
    VG_(memset)(recent, 0, sizeof recent);
}

Bool jm_symbol_unmapped(Addr start, SizeT bytes)
{
    Bool was_code = False;
    for (Word i = objects ? VG_(sizeXA)(objects) - 1 : -1; i >= 0; i--) {
        CodeObject *object = VG_(indexXA)(objects, i);
        if (object->start < start + bytes && start < object->end) {
            if (object->is_told)
                jm_trace_object_end(jm_clock_cached(), object->start);
            else
                n_untold--;
            VG_(removeIndexXA)(objects, i);
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

void jm_symbol_stats(void)
{
    jm_stats_table("code addresses", &locations);
    jm_stats_index(&location_index);
    jm_stats_row("static", "code addresses asked for lately", 1u << RECENT_BITS, sizeof recent);
    jm_stats_row("jm.symbol", "frames where calls are inlined", n_inlined, n_inlined * sizeof(FrameId));
    jm_stats_table("frames", &frames);
    jm_stats_index(&frame_index);
    jm_stats_array("jm.objects", "object files", objects, sizeof(CodeObject));
}
