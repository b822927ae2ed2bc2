// SPDX-License-Identifier: GPL-2.0-or-later
//
// A sorted table of mappings; see mappings.h. A mapping without a file that no hook has announced is the heap's, unless
// it continues an object file (its zero-initialised data). Events are reported between the recorder's own, never inside
// one: a stack that is being unwound asks for mappings too.

#include "host/native/mappings.h"
#include "base/array.h"
#include "base/client_memory.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "base/text.h"
#include "host/events.h"
#include "host/host.h"
#include "host/native/loaded.h"
#include "host/native/memory.h"
#include "pages/mappings.h"
#include "symbols/symbol.h"

#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>

#define MAX_PATH 4096

typedef struct {
    Addr start, end;
    ULong device, inode, offset;
    const HChar *path; // of a file; never freed
    UChar protection;
    Bool is_shared, is_own, is_heap, is_stack;
    Bool is_reported; // to the recorder, or nothing to report
} Known;

static Array known = JM_ARRAY("jm.native.mapping", Known);
static Array fresh = JM_ARRAY("jm.native.mapping", Known); // while the kernel's list is read
static Bool has_begun;

#pragma GCC visibility push(default)
extern struct r_debug _r_debug; // the loader's
#pragma GCC visibility pop

Bool jm_native_has_changes;

static Known *at(Word i)
{
    return jm_array_at(&known, i);
}

// The kernel's list is read in order: an address is mostly in the mapping of the last one, or the next.
static Word first_behind(Addr address)
{
    static Word last;
    for (Word i = last; i <= last + 1 && i < jm_array_n(&known); i++)
        if (at(i)->start <= address && address < at(i)->end)
            return last = i;
    return last = jm_array_behind(&known, __builtin_offsetof(Known, end), address);
}

static Known *find(Addr address)
{
    Word i = first_behind(address);
    return i < jm_array_n(&known) && at(i)->start <= address ? at(i) : NULL;
}

static void part_at(Addr address)
{
    Word i = first_behind(address);
    if (i == jm_array_n(&known) || at(i)->start >= address)
        return;
    Known upper = *at(i);
    at(i)->end = upper.start = address;
    if (upper.path)
        upper.offset += address - at(i)->start;
    jm_array_insert(&known, i + 1, &upper);
}

// `before`: what is known of its address, or NULL; few mappings change between two readings of the kernel's list.
static const HChar *kept_path(const HChar *path, const Known *before)
{
    static Array paths = JM_ARRAY("jm.native.mapping", HChar *);
    if (before && before->path && strcmp(before->path, path) == 0)
        return before->path;
    for (Word i = jm_array_n(&paths) - 1; i >= 0; i--)
        if (strcmp(*(HChar **)jm_array_at(&paths, i), path) == 0)
            return *(HChar **)jm_array_at(&paths, i);
    const HChar *copy = jm_text_copy("jm.native.mapping", path);
    jm_array_add(&paths, &copy);
    return copy;
}

// The recorder's memory, and its library.
static Bool is_own(const Known *k)
{
    if (k->path)
        return jm_symbol_is_preload_library(k->path);
    UInt n;
    const OwnRegion *own = jm_own_regions(&n);
    for (UInt i = 0; i < n; i++)
        if (own[i].start < k->end && k->start < own[i].end)
            return True;
    return False;
}

// ---- the kernel's list ---------------------------------------------------------------------------------------

static ULong number(const HChar **text, UInt base)
{
    ULong n = 0;
    for (;; ++*text) {
        HChar c = **text;
        UInt digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
        if (digit >= base)
            return n;
        n = n * base + digit;
    }
}

// The kernel writes the end of a line, and nothing else, as an octal number.
static void unescape(HChar *path)
{
    for (HChar *at; (at = strstr(path, "\\012")) != NULL; path = at + 1) {
        *at = '\n';
        memmove(at + 1, at + 4, strlen(at + 4) + 1);
    }
}

// "START-END rwxp OFFSET MAJOR:MINOR INODE   PATH", proc(5).
static void add_line(const HChar *line, void *context)
{
    Known k = {.start = number(&line, 16)};
    line++;
    k.end = number(&line, 16);
    line++;
    k.protection =
        (line[0] == 'r' ? PROT_READ : 0) | (line[1] == 'w' ? PROT_WRITE : 0) | (line[2] == 'x' ? PROT_EXEC : 0);
    k.is_shared = line[3] == 's';
    line += 5;
    k.offset = number(&line, 16);
    line++;
    UInt major = number(&line, 16);
    line++;
    k.device = makedev(major, number(&line, 16));
    line++;
    k.inode = number(&line, 10);
    while (*line == ' ')
        line++;
    k.is_heap = strcmp(line, "[heap]") == 0;
    k.is_stack = strcmp(line, "[stack]") == 0;
    if (*line == '/' || k.inode)
        k.path = line;
    k.is_reported = *line == '[' && !k.is_stack; // the vDSO and its kin
    if (k.path) {
        HChar path[MAX_PATH];
        jm_text_cut(path, line, sizeof path);
        unescape(path);
        HChar *deleted = strstr(path, " (deleted)");
        if (deleted && !deleted[10])
            *deleted = 0;
        k.path = kept_path(path, find(k.start));
    }
    k.is_own = is_own(&k);
    jm_array_add(&fresh, &k);
}

static Bool is_same_file(const Known *a, const Known *b)
{
    return a->inode == b->inode && a->device == b->device && (a->path != NULL) == (b->path != NULL);
}

// What is known of a mapping that the kernel lists: it may have grown, been cut or been merged with a neighbour.
static void take_over(Known *k, const Known *before)
{
    const Known *old = find(k->start);
    // Shared memory without a file has one in the kernel's list.
    Bool is_shared_memory = old && old->is_shared && !old->path && k->is_shared;
    if (is_shared_memory || (old && is_same_file(old, k) && (k->path || old->is_own == k->is_own))) {
        k->is_reported = old->is_reported;
        k->is_heap |= old->is_heap;
        k->is_stack |= old->is_stack;
        return;
    }
    if (k->path || k->is_own || k->is_stack || k->is_reported)
        return;
    // Zero-initialised data follows the data of its file.
    Bool is_data = before && before->end == k->start && before->path && !before->is_heap;
    k->is_own = is_data && before->is_own;
    k->is_heap |= has_begun && !is_data;
}

typedef enum { SORT_OTHER, SORT_NEW_DATA, SORT_HEAP, SORT_OWN } Sort;

// The sort of memory without a file at an address; lowers `end` to where it may end.
static Sort sort_at(Addr address, Bool is_new_data, Addr *end)
{
    UInt n;
    const OwnRegion *own = jm_own_regions(&n);
    for (UInt i = 0; i < n; i++) {
        if (own[i].start <= address && address < own[i].end) {
            *end = own[i].end;
            return SORT_OWN;
        }
        if (address < own[i].start)
            *end = jm_smaller(*end, own[i].start);
    }
    Word i = first_behind(address);
    if (i == jm_array_n(&known))
        return is_new_data ? SORT_NEW_DATA : SORT_HEAP;
    const Known *old = at(i);
    if (address < old->start) {
        *end = jm_smaller(*end, old->start);
        return is_new_data ? SORT_NEW_DATA : SORT_HEAP;
    }
    *end = jm_smaller(*end, old->end);
    return old->is_heap || old->is_own || old->path ? SORT_HEAP : SORT_OTHER;
}

// The kernel merges neighbours: a block that malloc has mapped with a mapping of the program's, or the recorder's, and
// what the program has mapped with the zero-initialised data of an object that was loaded below it. Split the listed
// mapping where known sorts change.
static void part_merged(Word i)
{
    const Known *before = i > 0 ? jm_array_at(&fresh, i - 1) : NULL;
    Known *k = jm_array_at(&fresh, i);
    if (!has_begun || k->path || k->is_stack || k->is_reported)
        return;
    Bool is_data = before && before->end == k->start && before->path;
    Addr next = k->end;
    const Sort sort = sort_at(k->start, is_data, &next);
    while (next < k->end) {
        Addr end = k->end;
        if (sort_at(next, False, &end) != sort)
            break;
        next = end;
    }
    k->is_own = sort == SORT_OWN;
    if (next >= k->end)
        return;
    Known rest = *k;
    rest.start = k->end = next;
    jm_array_insert(&fresh, i + 1, &rest);
}

typedef struct {
    Addr start, end;
} Range;

static Array gone = JM_ARRAY("jm.native.mapping", Range); // mappings of files that were reported, and are no more

// Read the list anew. False without /proc: then what is known stays.
static Bool read_list(void)
{
    jm_array_clear(&fresh);
    jm_text_each_line("/proc/self/maps", add_line, NULL);
    if (!jm_array_n(&fresh))
        return False;
    for (Word i = 0; i < jm_array_n(&fresh); i++) {
        part_merged(i);
        Known *k = jm_array_at(&fresh, i);
        take_over(k, i > 0 ? jm_array_at(&fresh, i - 1) : NULL);
        k->is_reported |= k->is_heap || (k->is_own && !k->path);
        jm_native_has_changes |= !k->is_reported;
    }
    Array old = known;
    known = fresh;
    fresh = old;
    for (Word i = 0; i < jm_array_n(&fresh); i++) {
        const Known *before = jm_array_at(&fresh, i);
        const Known *now = find(before->start);
        if (!before->path || !before->is_reported || (now && is_same_file(before, now)))
            continue;
        jm_array_add(&gone, &(Range){before->start, before->end});
        jm_native_has_changes = True;
    }
    jm_forget_readable();
    return True;
}

static void report_gone(void)
{
    for (Word i = 0; i < jm_array_n(&gone); i++) {
        Range range = *(Range *)jm_array_at(&gone, i);
        event_unmapped(range.start, range.end - range.start);
    }
    jm_array_clear(&gone);
}

// The program's loader, by the file that holds its list of objects.
static const HChar *loader_path;
static Bool reports_changes;

const HChar *host_unseen_loader(void)
{
    return reports_changes ? loader_path : NULL;
}

void jm_native_report_changes(void)
{
    jm_native_has_changes = False;
    report_gone();
    for (Word i = 0; i < jm_array_n(&known); i++) {
        if (at(i)->is_reported)
            continue;
        at(i)->is_reported = True;
        Known k = *at(i);
        reports_changes = !k.is_stack;
        event_mapped(k.start, k.end - k.start, k.protection & PROT_READ, (k.protection & PROT_EXEC) != 0,
                     k.path && k.protection & PROT_EXEC);
    }
    reports_changes = False;
}

// The kernel merges a block that malloc has mapped with the zero-initialised data of an object below it.
static void part_blocks_from_data(void)
{
    UInt n;
    const NativeObject *objects = jm_native_objects(&n);
    for (Word i = 1; i < jm_array_n(&known); i++) {
        const Addr start = at(i)->start, end = at(i)->end;
        Addr end_of_data = start;
        if (at(i)->is_reported || at(i)->path || at(i)->is_own || at(i)->is_stack)
            continue;
        for (UInt o = 0; o < n; o++)
            if (objects[o].start < start && start <= HOST_PAGE_UP(objects[o].end))
                end_of_data = HOST_PAGE_UP(objects[o].end);
        if (end_of_data >= end)
            continue;
        part_at(end_of_data);
        Known *block = find(end_of_data);
        block->is_heap = block->is_reported = True;
    }
}

void jm_native_mappings_start(Bool is_late)
{
    has_begun = is_late;
    read_list();
    if (is_late)
        part_blocks_from_data();
    const Known *loader = find((Addr)&_r_debug);
    loader_path = loader ? loader->path : NULL;
    jm_native_report_changes();
    has_begun = True;
}

void jm_native_mappings_changed(void)
{
    if (read_list())
        jm_native_report_changes();
}

// ---- host.h --------------------------------------------------------------------------------------------------

// The break as the kernel knows it: the C library's heap grows without a hook.
static Bool grow_heap(Addr address)
{
    Addr end = jm_kernel_call(__NR_brk, 0, 0, 0, 0, 0);
    for (Word i = 0; address < end && i < jm_array_n(&known); i++)
        if (at(i)->is_heap && at(i)->start <= address && at(i)->end < end &&
            (i + 1 == jm_array_n(&known) || at(i + 1)->start >= end)) {
            if (end - at(i)->start > ((ULong)1 << 40))
                return False;
            at(i)->end = HOST_PAGE_UP(end);
            return address >= at(i)->start;
        }
    return False;
}

// The main stack grows down by itself; the kernel lets nothing be mapped where it may grow.
static Bool grow_stack(Addr address)
{
    ProcessLimit limit;
    for (Word i = jm_array_n(&known) - 1; i >= 0; i--)
        if (at(i)->is_stack && address < at(i)->start && (i == 0 || at(i - 1)->end <= address) &&
            jm_limit(RLIMIT_STACK, &limit) && at(i)->end - address <= limit.soft) {
            at(i)->start = HOST_PAGE_DOWN(address);
            return True;
        }
    return False;
}

// Make an address that the table lacks known, if it is mapped.
static const Known *find_anew(Addr address)
{
    if (!jm_kernel_can_read(address))
        return NULL;
    if (grow_heap(address) || grow_stack(address) || read_list())
        return find(address);
    return NULL;
}

Bool host_mapping_at(Addr address, Mapping *found)
{
    const Known *k = find(address);
    if (!k)
        k = find_anew(address);
    if (!k) {
        Word i = first_behind(address);
        *found = (Mapping){.as = MAPPED_NOTHING,
                           .start = i > 0 ? at(i - 1)->end : 0,
                           .end = i < jm_array_n(&known) ? at(i)->start : ~(Addr)0};
        return False;
    }
    *found = (Mapping){
        .start = k->start,
        .end = k->end,
        .as = k->path ? MAPPED_FILE : MAPPED_ANONYMOUS,
        .is_programs = !k->is_own,
        .is_readable = k->protection & PROT_READ,
        .is_writable = (k->protection & PROT_WRITE) != 0,
        .is_executable = (k->protection & PROT_EXEC) != 0,
        .is_heap = k->is_heap,
        .has_code = (k->protection & PROT_EXEC) != 0,
        .device = k->device,
        .inode = k->inode,
        .offset = k->offset,
        .path = k->path,
    };
    return True;
}

void host_update_mappings(void)
{
    jm_native_mappings_changed();
}

Addr host_own_memory(void)
{
    return ~(Addr)0; // not at one place in all processes
}

static Bool can_all(Addr address, SizeT bytes, UInt protection)
{
    Addr end = address + bytes;
    if (end < address)
        return False;
    while (address < end) {
        const Known *k = find(address);
        if (!k || !(k->protection & PROT_READ))
            k = find_anew(address);
        if (!k || (k->protection & protection) != protection)
            return False;
        address = k->end;
    }
    return True;
}

Bool host_is_readable(Addr address, SizeT bytes)
{
    return can_all(address, bytes, PROT_READ);
}

Bool host_is_writable(Addr address, SizeT bytes)
{
    return can_all(address, bytes, PROT_READ | PROT_WRITE);
}

// ---- what hooks announce -------------------------------------------------------------------------------------

static void cut_out(Addr start, Addr end)
{
    part_at(start);
    part_at(end);
    Word i = first_behind(start);
    while (i < jm_array_n(&known) && at(i)->start < end)
        jm_array_remove(&known, i);
}

static void describe_file(Known *k, Int fd)
{
    HChar link[64], path[MAX_PATH];
    FileStatus status;
    jm_format(link, sizeof link, "/proc/self/fd/%d", fd);
    Long n = jm_read_link(link, path, sizeof path - 1);
    if (n <= 0 || !jm_file_status(fd, &status))
        return;
    path[n] = 0;
    k->path = kept_path(path, NULL);
    k->device = status.dev;
    k->inode = status.ino;
}

void jm_native_mapped(Addr start, SizeT bytes, UInt protection, UInt flags, Int fd, ULong offset)
{
    bytes = HOST_PAGE_UP(bytes);
    Known k = {.start = start,
               .end = start + bytes,
               .offset = offset,
               .protection = protection & (PROT_READ | PROT_WRITE | PROT_EXEC),
               .is_shared = (flags & MAP_SHARED) != 0,
               .is_reported = True};
    if (!(flags & MAP_ANONYMOUS))
        describe_file(&k, fd);
    cut_out(k.start, k.end);
    jm_array_insert(&known, first_behind(k.start), &k);
    event_mapped(start, bytes, protection & PROT_READ, (protection & PROT_EXEC) != 0,
                 k.path && (protection & PROT_EXEC) != 0);
}

void jm_native_unmapped(Addr start, SizeT bytes)
{
    bytes = HOST_PAGE_UP(bytes);
    cut_out(start, start + bytes);
    event_unmapped(start, bytes);
}

void jm_native_protected(Addr start, SizeT bytes, UInt protection)
{
    Addr end = HOST_PAGE_UP(start + bytes);
    part_at(start);
    part_at(end);
    for (Word i = first_behind(start); i < jm_array_n(&known) && at(i)->start < end; i++)
        at(i)->protection = protection & (PROT_READ | PROT_WRITE | PROT_EXEC);
    event_protected(start, end - start, (protection & PROT_EXEC) != 0);
}

void jm_native_moved(Addr from, SizeT old_bytes, Addr to, SizeT new_bytes)
{
    old_bytes = HOST_PAGE_UP(old_bytes);
    new_bytes = HOST_PAGE_UP(new_bytes);
    const Known *old = find(from);
    Known k = old ? *old : (Known){.protection = PROT_READ | PROT_WRITE, .is_reported = True};
    if (old_bytes) // 0: a shared mapping gets a second place
        cut_out(from, from + old_bytes);
    cut_out(to, to + new_bytes);
    k.start = to;
    k.end = to + new_bytes;
    jm_array_insert(&known, first_behind(to), &k);
    jm_forget_readable();
    if (to != from)
        jm_mappings_moved(from, to, old_bytes < new_bytes ? old_bytes : new_bytes);
    if (to != from)
        event_unmapped(from, old_bytes);
    else if (new_bytes < old_bytes)
        event_unmapped(from + new_bytes, old_bytes - new_bytes);
    if (new_bytes > old_bytes)
        event_mapped(to + old_bytes, new_bytes - old_bytes, True, False, False);
}

void jm_native_attached(Addr start)
{
    Known *k = read_list() ? find(start) : NULL;
    if (!k)
        return;
    k->is_reported = True; // not as the loader's
    const SizeT bytes = k->end - k->start;
    jm_native_report_changes();
    event_mapped(start, bytes, True, False, False);
}

void jm_native_detached(Addr start)
{
    const Known *k = find(start);
    if (k && k->start == start)
        jm_native_unmapped(start, k->end - start);
}

void jm_native_stack_mapped(Addr inside)
{
    Known *k = find(inside);
    if (!k || k->is_heap) {
        read_list();
        jm_native_report_changes();
        k = find(inside);
    }
    if (!k || !k->is_heap)
        return; // a stack of the program's own, or one that was used before
    k->is_heap = False;
    event_mapped(k->start, k->end - k->start, True, False, False);
}

void jm_native_heap_unmapped(Addr block)
{
    const Known *k = find(block);
    if (k && k->is_heap && HOST_PAGE_DOWN(block) == k->start && !jm_kernel_can_read(block))
        cut_out(k->start, k->end);
    jm_forget_readable();
}
