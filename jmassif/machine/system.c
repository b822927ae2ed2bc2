// SPDX-License-Identifier: GPL-2.0-or-later
//
// Reads the kernel's memory figures; see system.h. Allocates nothing: memory may be short.

#include "machine/system.h"
#include "base/libc.h"
#include "base/options.h"
#include "base/text.h"
#include "host/host.h"
#include "trace/trace.h"

// ---- the figures ---------------------------------------------------------------------------------------------

typedef enum {
    MEM_TOTAL,
    MEM_FREE,
    MEM_AVAILABLE,
    CACHED,
    BUFFERS,
    SLAB_RECLAIMABLE,
    SWAP_TOTAL,
    SWAP_FREE,
    CMA_TOTAL,
    CMA_FREE,
    NVMAP_USED,
    NVMAP_FREE,
    LARGEST_FREE,
    FREE_IN_LARGEST,
    FREE_PER_CPU,
    PROCESS_RESIDENT,
    PROCESS_VIRTUAL,
    PROCESS_FILES,
    PROCESS_SWAPPED,
    PROCESS_PAGE_TABLES,
    CGROUP_LIMIT,
    CGROUP_USED,
    N_FIGURES
} Figure;

// Names in the trace. All figures are in bytes.
static const HChar *const names[N_FIGURES] = {
    [MEM_TOTAL] = "mem-total",
    [MEM_FREE] = "mem-free",
    [MEM_AVAILABLE] = "mem-available",
    [CACHED] = "cached",
    [BUFFERS] = "buffers",
    [SLAB_RECLAIMABLE] = "slab-reclaimable",
    [SWAP_TOTAL] = "swap-total",
    [SWAP_FREE] = "swap-free",
    [CMA_TOTAL] = "cma-total",
    [CMA_FREE] = "cma-free",
    [NVMAP_USED] = "nvmap-used",
    [NVMAP_FREE] = "nvmap-free",
    [LARGEST_FREE] = "largest-free",
    [FREE_IN_LARGEST] = "free-in-largest",
    [FREE_PER_CPU] = "free-per-cpu",
    [PROCESS_RESIDENT] = "process-resident",
    [PROCESS_VIRTUAL] = "process-virtual",
    [PROCESS_FILES] = "process-files",
    [PROCESS_SWAPPED] = "process-swapped",
    [PROCESS_PAGE_TABLES] = "process-page-tables",
    [CGROUP_LIMIT] = "cgroup-limit",
    [CGROUP_USED] = "cgroup-used",
};

typedef struct {
    const HChar *label; // without its colon
    Figure figure;
} Line;

// /proc/meminfo; the last two lines exist in L4T's kernels only.
static const Line meminfo_lines[] = {
    {"MemTotal", MEM_TOTAL},
    {"MemFree", MEM_FREE},
    {"MemAvailable", MEM_AVAILABLE},
    {"Cached", CACHED},
    {"SwapTotal", SWAP_TOTAL},
    {"SwapFree", SWAP_FREE},
    {"CmaTotal", CMA_TOTAL},
    {"CmaFree", CMA_FREE},
    {"Buffers", BUFFERS},
    {"SReclaimable", SLAB_RECLAIMABLE},
    {"NvMapMemUsed", NVMAP_USED},
    {"NvMapMemFree", NVMAP_FREE},
};

// /proc/self/status.
static const Line status_lines[] = {
    {"VmRSS", PROCESS_RESIDENT}, {"VmSize", PROCESS_VIRTUAL},    {"RssFile", PROCESS_FILES}, // since Linux 4.5
    {"VmSwap", PROCESS_SWAPPED}, {"VmPTE", PROCESS_PAGE_TABLES},
};

#define N_LINES(table) (sizeof(table) / sizeof *(table))

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

// A file's known lines and their destination.
typedef struct {
    const Line *lines;
    SizeT n_lines;
    Figures *figures;
} Labelled;

static void labelled_line(const HChar *line, void *context)
{
    const Labelled *labelled = context;
    ULong bytes;
    for (SizeT i = 0; i < labelled->n_lines; i++)
        if (jm_text_labelled_bytes(line, labelled->lines[i].label, &bytes))
            set(labelled->figures, labelled->lines[i].figure, bytes);
}

static void read_meminfo(Figures *f)
{
    Labelled labelled = {meminfo_lines, N_LINES(meminfo_lines), f};
    jm_text_each_line("/proc/meminfo", labelled_line, &labelled);
}

static void read_status(Figures *f)
{
    Labelled labelled = {status_lines, N_LINES(status_lines), f};
    jm_text_each_line("/proc/self/status", labelled_line, &labelled);
}

// The nvmap clients file, readable by root, ends in "total                                         123456K".
static void nvmap_line(const HChar *line, void *context)
{
    if (strncmp(line, "total", 5) != 0)
        return;
    for (line += 5; *line == ' ';)
        line++;
    if (jm_text_is_digit(*line))
        set(context, NVMAP_USED, jm_text_number(line, NULL) * 1024);
}

// Fallback for kernels since 5.10, which have no NvMapMemUsed in /proc/meminfo.
static void read_nvmap(Figures *f)
{
    HChar path[1024];
    if (f->is_known[NVMAP_USED])
        return;
    jm_format(path, sizeof path, "%s/sys/kernel/debug/nvmap/iovmm/clients", jm_options.board_root);
    jm_text_each_line(path, nvmap_line, f);
}

static const HChar *skip_spaces(const HChar *at)
{
    while (*at == ' ')
        at++;
    return at;
}

typedef struct {
    ULong block_bytes;
    ULong n;
} LargestFree;

// "Node 0, zone   Normal   216   55 …": free blocks of 1, 2, 4 … pages.
static void buddyinfo_line(const HChar *line, void *context)
{
    LargestFree *largest = context;
    const HChar *at = strstr(line, "zone");
    if (!at)
        return;
    at = skip_spaces(at + 4);
    while (*at && *at != ' ')
        at++;
    at = skip_spaces(at);
    for (ULong bytes = HOST_PAGE_BYTES; jm_text_is_digit(*at); bytes *= 2) {
        HChar *end;
        ULong n = jm_text_number(at, &end);
        if (n > 0 && bytes > largest->block_bytes)
            *largest = (LargestFree){bytes, 0};
        if (bytes == largest->block_bytes)
            largest->n += n;
        at = skip_spaces(end);
    }
}

static void read_buddyinfo(Figures *f)
{
    LargestFree largest = {0, 0};
    if (!jm_text_each_line("/proc/buddyinfo", buddyinfo_line, &largest))
        return;
    set(f, LARGEST_FREE, largest.block_bytes);
    set(f, FREE_IN_LARGEST, largest.n * largest.block_bytes);
}

// "              count: 10210": free pages in the caches of each processor, per zone. The kernel leaves them out of
// MemFree, and allocates them first.
static void zoneinfo_line(const HChar *line, void *context)
{
    ULong *pages = context;
    line = skip_spaces(line);
    if (strncmp(line, "count:", 6) == 0)
        *pages += jm_text_number(skip_spaces(line + 6), NULL);
}

static void read_zoneinfo(Figures *f)
{
    ULong pages = 0;
    if (jm_text_each_line("/proc/zoneinfo", zoneinfo_line, &pages))
        set(f, FREE_PER_CPU, pages * HOST_PAGE_BYTES);
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

typedef struct {
    Bool is_known;
    ULong value;
} Number;

static void number_line(const HChar *line, void *context)
{
    Number *number = context;
    if (jm_text_is_digit(*line))
        *number = (Number){True, jm_text_number(line, NULL)};
}

static Bool read_number(const HChar *directory, const HChar *name, ULong *value)
{
    HChar path[1200];
    Number number = {False, 0};
    jm_format(path, sizeof path, "%s/%s", directory, name);
    jm_text_each_line(path, number_line, &number);
    *value = number.value;
    return number.is_known;
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
        if (read_number(directory, version->limit, &limit) && limit < least) {
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

static void inactive_file_line(const HChar *line, void *context)
{
    SizeT n = strlen(cgroup->inactive_file);
    if (strncmp(line, cgroup->inactive_file, n) == 0)
        *(ULong *)context = jm_text_number(line + n, NULL);
}

// Reads the group's usage without inactive file pages, which the kernel drops first.
static void read_cgroup(Figures *f)
{
    ULong limit, used, inactive = 0;
    HChar path[1200];
    if (!cgroup || !read_number(cgroup_directory, cgroup->limit, &limit) ||
        !read_number(cgroup_directory, cgroup->usage, &used))
        return;
    jm_format(path, sizeof path, "%s/memory.stat", cgroup_directory);
    jm_text_each_line(path, inactive_file_line, &inactive);
    used -= inactive < used ? inactive : used;
    set(f, CGROUP_LIMIT, limit);
    set(f, CGROUP_USED, used);
}

// ---- writing -------------------------------------------------------------------------------------------------

void jm_system_init(void)
{
    Figures f = {0};
    read_meminfo(&f);
    find_cgroup(f.is_known[MEM_TOTAL] ? f.bytes[MEM_TOTAL] : ~0ULL);
}

void jm_system_write(ULong time)
{
    Figures now = {0};
    read_meminfo(&now);
    read_status(&now);
    read_nvmap(&now);
    read_buddyinfo(&now);
    read_zoneinfo(&now);
    read_cgroup(&now);
    for (Figure i = 0; i < N_FIGURES; i++)
        if (now.is_known[i] && !(written.is_known[i] && written.bytes[i] == now.bytes[i]))
            jm_trace_system(time, names[i], now.bytes[i]);
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
    if (jm_options.low_memory_per_mille == 0 || now_ms < next_look_ms)
        return False;
    next_look_ms = now_ms + LOOK_EVERY_MS;
    Figures f = {0};
    read_meminfo(&f);
    read_cgroup(&f);
    ULong left = left_per_mille(&f);
    if (left > jm_options.low_memory_per_mille) {
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
