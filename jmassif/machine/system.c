// SPDX-License-Identifier: GPL-2.0-or-later
//
// Reads the kernel's memory figures; see system.h. Allocates nothing: memory may be short.

#include "machine/system.h"
#include "base/libc.h"
#include "base/options.h"
#include "base/text.h"
#include "host/host.h"
#include "trace/trace.h"

// Id, name in the trace, and label of a line of /proc/meminfo or /proc/self/status, if it has one there. NvMap's lines
// are in L4T's kernels only, RssFile is since Linux 4.5. All figures are in bytes.
#define FIGURES(X)                                                                                                     \
    X(MEM_TOTAL, "mem-total", "MemTotal")                                                                              \
    X(MEM_FREE, "mem-free", "MemFree")                                                                                 \
    X(MEM_AVAILABLE, "mem-available", "MemAvailable")                                                                  \
    X(CACHED, "cached", "Cached")                                                                                      \
    X(BUFFERS, "buffers", "Buffers")                                                                                   \
    X(SLAB_RECLAIMABLE, "slab-reclaimable", "SReclaimable")                                                            \
    X(SWAP_TOTAL, "swap-total", "SwapTotal")                                                                           \
    X(SWAP_FREE, "swap-free", "SwapFree")                                                                              \
    X(CMA_TOTAL, "cma-total", "CmaTotal")                                                                              \
    X(CMA_FREE, "cma-free", "CmaFree")                                                                                 \
    X(NVMAP_USED, "nvmap-used", "NvMapMemUsed")                                                                        \
    X(NVMAP_FREE, "nvmap-free", "NvMapMemFree")                                                                        \
    X(LARGEST_FREE, "largest-free", NULL)                                                                              \
    X(FREE_IN_LARGEST, "free-in-largest", NULL)                                                                        \
    X(FREE_PER_CPU, "free-per-cpu", NULL)                                                                              \
    X(PROCESS_RESIDENT, "process-resident", "VmRSS")                                                                   \
    X(PROCESS_HIGHEST, "process-highest", "VmHWM")                                                                     \
    X(PROCESS_VIRTUAL, "process-virtual", "VmSize")                                                                    \
    X(PROCESS_FILES, "process-files", "RssFile")                                                                       \
    X(PROCESS_SWAPPED, "process-swapped", "VmSwap")                                                                    \
    X(PROCESS_PAGE_TABLES, "process-page-tables", "VmPTE")                                                             \
    X(CGROUP_LIMIT, "cgroup-limit", NULL)                                                                              \
    X(CGROUP_USED, "cgroup-used", NULL)

#define FIGURE_ID(id, name, label) id,
typedef enum { FIGURES(FIGURE_ID) N_FIGURES } Figure;

#define FIGURE_ROW(id, name, label) {name, label},
static const struct {
    const HChar *name, *label;
} figures[N_FIGURES] = {FIGURES(FIGURE_ROW)};

typedef struct {
    Bool is_known[N_FIGURES];
    ULong bytes[N_FIGURES];
} Figures;

static Figures written;

static void set(Figures *f, Figure figure, ULong bytes)
{
    f->is_known[figure] = True;
    f->bytes[figure] = bytes;
}

// ---- reading -------------------------------------------------------------------------------------------------

static void labelled_line(const HChar *line, void *context)
{
    ULong bytes;
    for (Figure i = 0; i < N_FIGURES; i++)
        if (figures[i].label && jm_text_labelled_bytes(line, figures[i].label, &bytes))
            set(context, i, bytes);
}

static const HChar *skip_spaces(const HChar *at)
{
    while (*at == ' ')
        at++;
    return at;
}

typedef struct {
    const HChar *label;
    Bool is_known;
    ULong value;
} Labelled;

static void add_if_labelled(const HChar *line, void *context)
{
    Labelled *sum = context;
    HChar *end;
    const HChar *at = skip_spaces(line);
    SizeT n = strlen(sum->label);
    if (strncmp(at, sum->label, n) != 0)
        return;
    sum->value += jm_text_number(at + n, &end);
    sum->is_known |= end != at + n;
}

// Add up the numbers behind a label, of all lines that begin with it. False if there is none.
static Bool read_labelled(const HChar *path, const HChar *label, ULong *value)
{
    Labelled sum = {.label = label};
    jm_text_each_line(path, add_if_labelled, &sum);
    *value = sum.value;
    return sum.is_known;
}

// Fallback for kernels since 5.10, which have no NvMapMemUsed in /proc/meminfo. The nvmap clients file, readable by
// root, ends in "total                                         123456K".
static void read_nvmap(Figures *f)
{
    HChar path[1024];
    ULong kib;
    jm_format(path, sizeof path, "%s/sys/kernel/debug/nvmap/iovmm/clients", jm_options.board_root);
    if (!f->is_known[NVMAP_USED] && read_labelled(path, "total", &kib))
        set(f, NVMAP_USED, kib * 1024);
}

// "Node 0, zone   Normal   216   55 …": free blocks of 1, 2, 4 … pages.
static void buddyinfo_line(const HChar *line, void *context)
{
    Figures *f = context;
    const HChar *at = strstr(line, "zone");
    if (!at)
        return;
    at = skip_spaces(at + 4);
    while (*at && *at != ' ')
        at++;
    for (ULong bytes = HOST_PAGE_BYTES;; bytes *= 2) {
        HChar *end;
        ULong n = jm_text_number(at, &end);
        if (end == at)
            return;
        if (n > 0 && bytes > f->bytes[LARGEST_FREE]) {
            set(f, LARGEST_FREE, bytes);
            set(f, FREE_IN_LARGEST, 0);
        }
        if (bytes == f->bytes[LARGEST_FREE])
            f->bytes[FREE_IN_LARGEST] += n * bytes;
        at = end;
    }
}

// ---- the control group ---------------------------------------------------------------------------------------

typedef struct {
    const HChar *root, *limit, *usage, *inactive_file; // inactive_file is a line of memory.stat
} CgroupVersion;

static const CgroupVersion cgroup_1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                       "total_inactive_file "};
static const CgroupVersion cgroup_2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "};

static const CgroupVersion *cgroup; // NULL: no limit
static HChar cgroup_directory[1024];

static Bool read_in(const HChar *directory, const HChar *name, const HChar *label, ULong *value)
{
    HChar path[1200];
    jm_format(path, sizeof path, "%s/%s", directory, name);
    return read_labelled(path, label, value);
}

// Finds the group with the smallest limit, from the process's own outwards. In a container its path may not be visible;
// the mount's root is then the group itself.
static void find_limit(const CgroupVersion *version, HChar *path, ULong mem_total)
{
    ULong least = mem_total;
    for (;;) {
        HChar directory[1100];
        ULong limit;
        jm_format(directory, sizeof directory, "%s%s", version->root, path);
        if (read_in(directory, version->limit, "", &limit) && limit < least) {
            least = limit;
            cgroup = version;
            jm_text_cut(cgroup_directory, directory, sizeof cgroup_directory);
        }
        HChar *slash = strrchr(path, '/');
        if (!slash)
            return;
        *slash = 0;
    }
}

typedef HChar CgroupPaths[2][512]; // index: version - 1

// /proc/self/cgroup: "4:memory:/path" (version 1), "0::/path" (version 2).
static void cgroup_line(const HChar *line, void *context)
{
    CgroupPaths *paths = context;
    const HChar *controllers = strchr(line, ':');
    const HChar *path = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!path)
        return;
    Bool is_2 = path == controllers + 1;
    const HChar *memory = strstr(controllers, "memory");
    if (!is_2 && (!memory || memory > path))
        return;
    jm_text_cut((*paths)[is_2], jm_text_equal(path, ":/") ? "" : path + 1, sizeof(*paths)[is_2]);
}

static void find_cgroup(ULong mem_total)
{
    static CgroupPaths paths;
    if (!jm_text_each_line("/proc/self/cgroup", cgroup_line, &paths))
        return;
    find_limit(&cgroup_1, paths[0], mem_total);
    find_limit(&cgroup_2, paths[1], mem_total);
}

// Reads the group's usage without inactive file pages, which the kernel drops first.
static void read_cgroup(Figures *f)
{
    ULong limit, used, inactive;
    if (!cgroup || !read_in(cgroup_directory, cgroup->limit, "", &limit) ||
        !read_in(cgroup_directory, cgroup->usage, "", &used))
        return;
    read_in(cgroup_directory, "memory.stat", cgroup->inactive_file, &inactive);
    used -= inactive < used ? inactive : used;
    set(f, CGROUP_LIMIT, limit);
    set(f, CGROUP_USED, used);
}

// ---- writing -------------------------------------------------------------------------------------------------

void jm_system_init(void)
{
    Figures f = {0};
    jm_text_each_line("/proc/meminfo", labelled_line, &f);
    find_cgroup(f.is_known[MEM_TOTAL] ? f.bytes[MEM_TOTAL] : ~0ULL);
}

void jm_system_write(ULong time)
{
    Figures now = {0};
    jm_text_each_line("/proc/meminfo", labelled_line, &now);
    jm_text_each_line("/proc/self/status", labelled_line, &now);
    read_nvmap(&now);
    jm_text_each_line("/proc/buddyinfo", buddyinfo_line, &now);
    // "              count: 10210": free pages in the caches of each processor, per zone. The kernel leaves them out of
    // MemFree, and allocates them first.
    ULong pages;
    if (read_labelled("/proc/zoneinfo", "count:", &pages))
        set(&now, FREE_PER_CPU, pages * HOST_PAGE_BYTES);
    read_cgroup(&now);
    for (Figure i = 0; i < N_FIGURES; i++)
        if (now.is_known[i] && !(written.is_known[i] && written.bytes[i] == now.bytes[i]))
            jm_trace_system(time, figures[i].name, now.bytes[i]);
    written = now;
}

void jm_system_after_fork_in_child(void)
{
    memset(&written, 0, sizeof written);
}

// ---- the alarm -----------------------------------------------------------------------------------------------

#define LOOK_EVERY_MS  20
#define AGAIN_AFTER_MS 1000

// Per mille left of the memory, or of the control group's limit if that is less.
static ULong left_per_mille(const Figures *f)
{
    ULong left = 1000;
    if (f->is_known[MEM_AVAILABLE] && f->bytes[MEM_TOTAL])
        left = f->bytes[MEM_AVAILABLE] * 1000 / f->bytes[MEM_TOTAL];
    if (f->is_known[CGROUP_LIMIT] && f->bytes[CGROUP_LIMIT]) {
        ULong limit = f->bytes[CGROUP_LIMIT], used = f->bytes[CGROUP_USED];
        ULong in_group = used < limit ? (limit - used) * 1000 / limit : 0;
        if (in_group < left)
            left = in_group;
    }
    return left;
}

Bool jm_system_is_short(ULong now_ms)
{
    static ULong next_look_ms, next_alarm_ms, left_at_alarm = 1000;
    if (jm_options.low_memory == 0 || now_ms < next_look_ms)
        return False;
    next_look_ms = now_ms + LOOK_EVERY_MS;
    Figures f = {0};
    jm_text_each_line("/proc/meminfo", labelled_line, &f);
    read_cgroup(&f);
    ULong left = left_per_mille(&f);
    if (left > 10u * jm_options.low_memory) {
        left_at_alarm = 1000;
        return False;
    }
    // While memory stays short, repeat the alarm once a second, or when less than 3/4 of the amount at the last alarm
    // is left.
    if (now_ms < next_alarm_ms && left * 4 > left_at_alarm * 3)
        return False;
    next_alarm_ms = now_ms + AGAIN_AFTER_MS;
    left_at_alarm = left;
    return True;
}
