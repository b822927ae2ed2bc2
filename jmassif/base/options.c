// SPDX-License-Identifier: GPL-2.0-or-later
//
// Command-line options of the recorder: defaults, parsing and the usage text. Options that massif has keep their names
// and meanings.

#include "base/options.h"

Options jm_options;

// massif's --pages-as-heap and --peak-inaccuracy: accepted and ignored, with a note.
static Bool pages_as_heap;
static double peak_inaccuracy = -1;
static double low_memory = 5; // percent

// Functions that allocate for their callers, by massif's names for them. Those of the preload library are always
// skipped.
static const HChar *const default_alloc_fns[] = {
    "malloc",
    "calloc",
    "realloc",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "valloc",
    "reallocarray",
    "operator new(unsigned long)",
    "operator new[](unsigned long)",
    "operator new(unsigned long, std::nothrow_t const&)",
    "operator new[](unsigned long, std::nothrow_t const&)",
    "operator new(unsigned long, std::align_val_t)",
    "operator new[](unsigned long, std::align_val_t)",
    "operator new(unsigned long, std::align_val_t, std::nothrow_t const&)",
    "operator new[](unsigned long, std::align_val_t, std::nothrow_t const&)",
    NULL};

void jm_usage_error(const HChar *format, ...)
{
    HChar text[1024];
    va_list args;
    va_start(args, format);
    VG_(vsnprintf)(text, sizeof text, format, args);
    va_end(args);
    VG_(fmsg)("jmassif: %s\n", text);
    VG_(exit)(2);
}

static void add_name(XArray *names, const HChar *name)
{
    const HChar *copy = VG_(strdup)("jm.options", name);
    VG_(addToXA)(names, &copy);
}

void jm_options_init(void)
{
    jm_options.heap = True;
    jm_options.pages = True;
    jm_options.driver = True;
    jm_options.python = True;
    jm_options.nvtx = True;
    jm_options.heap_admin = 8;
    jm_options.max_snapshots = 100;
    jm_options.detailed_freq = 10;
    jm_options.interval_ms = 10;
    jm_options.large_bytes = 64 * 1024;
    jm_options.threshold = 1.0;
    jm_options.time_unit = TIME_MS;
    jm_options.out_file = "jmassif.out.%p";
    jm_options.board_root = "";
    jm_options.code_cache = "yes";
    jm_options.code_cache_bytes = 256 << 20;
    jm_options.alloc_fns = VG_(newXA)(VG_(malloc), "jm.options", VG_(free), sizeof(HChar *));
    jm_options.ignore_fns = VG_(newXA)(VG_(malloc), "jm.options", VG_(free), sizeof(HChar *));
    for (UInt i = 0; default_alloc_fns[i]; i++)
        add_name(jm_options.alloc_fns, default_alloc_fns[i]);
}

// Parse "64KiB", "64k" or "65536" into bytes; exit on anything else.
static ULong parse_bytes(const HChar *arg, const HChar *text)
{
    HChar *end;
    ULong n = VG_(strtoull10)(text, &end);
    ULong unit = 0;
    if (end != text) {
        static const struct {
            const HChar *suffix;
            ULong unit;
        } units[] = {{"", 1},        {"B", 1},         {"k", 1 << 10}, {"K", 1 << 10}, {"KiB", 1 << 10}, {"m", 1 << 20},
                     {"M", 1 << 20}, {"MiB", 1 << 20}, {"g", 1 << 30}, {"G", 1 << 30}, {"GiB", 1 << 30}};
        for (UInt i = 0; i < sizeof units / sizeof units[0]; i++)
            if (VG_STREQ(end, units[i].suffix))
                unit = units[i].unit;
    }
    // Reject a size above 64 bits, which would wrap to another size.
    if (!unit || end - text > 19 || n > ~0ULL / unit)
        VG_(fmsg_bad_option)(arg, "expected a size such as 65536, 64KiB or 1MiB\n");
    return n * unit;
}

Bool jm_options_process(const HChar *arg)
{
    const HChar *text;
    if VG_BOOL_CLO (arg, "--heap", jm_options.heap) {
    } else if VG_BOOL_CLO (arg, "--pages", jm_options.pages) {
    } else if VG_BOOL_CLO (arg, "--driver", jm_options.driver) {
    } else if VG_BOOL_CLO (arg, "--stacks", jm_options.stacks) {
    } else if VG_BOOL_CLO (arg, "--check-unwinding", jm_options.check_unwinding) {
    } else if VG_BOOL_CLO (arg, "--anonymize", jm_options.anonymize) {
    } else if VG_BOOL_CLO (arg, "--threads", jm_options.threads) {
    } else if VG_BOOL_CLO (arg, "--low-footprint", jm_options.low_footprint) {
    } else if VG_BOOL_CLO (arg, "--keep-going", jm_options.keep_going) {
    } else if VG_BINT_CLO (arg, "--heap-admin", jm_options.heap_admin, 0, 1024) {
    } else if VG_BINT_CLO (arg, "--depth", jm_options.depth, 0, 8192) {
    } else if VG_BINT_CLO (arg, "--max-snapshots", jm_options.max_snapshots, 10, 1000) {
    } else if VG_BINT_CLO (arg, "--detailed-freq", jm_options.detailed_freq, 1, 1000000) {
    } else if VG_BINT_CLO (arg, "--interval", jm_options.interval_ms, 1, 3600000) {
    } else if VG_DBL_CLO (arg, "--low-memory", low_memory) {
        if (low_memory < 0 || low_memory > 100)
            VG_(fmsg_bad_option)(arg, "--low-memory must be between 0.0 and 100.0\n");
    } else if VG_DBL_CLO (arg, "--threshold", jm_options.threshold) {
        if (jm_options.threshold < 0 || jm_options.threshold > 100)
            VG_(fmsg_bad_option)(arg, "--threshold must be between 0.0 and 100.0\n");
    } else if VG_DBL_CLO (arg, "--peak-inaccuracy", peak_inaccuracy) {
    } else if VG_BOOL_CLO (arg, "--pages-as-heap", pages_as_heap) {
    } else if VG_XACT_CLO (arg, "--time-unit=ms", jm_options.time_unit, TIME_MS) {
    } else if VG_XACT_CLO (arg, "--time-unit=i", jm_options.time_unit, TIME_INSTRUCTIONS) {
    } else if VG_XACT_CLO (arg, "--time-unit=B", jm_options.time_unit, TIME_BYTES) {
    } else if VG_BOOL_CLO (arg, "--nvtx", jm_options.nvtx) {
    } else if VG_XACT_CLO (arg, "--python=auto", jm_options.python, True) {
    } else if VG_XACT_CLO (arg, "--python=no", jm_options.python, False) {
    } else if VG_XACT_CLO (arg, "--memory=auto", jm_options.memory, MEMORY_AUTO) {
    } else if VG_XACT_CLO (arg, "--memory=unified", jm_options.memory, MEMORY_UNIFIED) {
    } else if VG_XACT_CLO (arg, "--memory=discrete", jm_options.memory, MEMORY_DISCRETE) {
    } else if VG_STR_CLO (arg, "--time-unit", text) {
        VG_(fmsg_bad_option)(arg, "--time-unit must be i, ms or B\n");
    } else if VG_STR_CLO (arg, "--memory", text) {
        VG_(fmsg_bad_option)(arg, "--memory must be auto, unified or discrete\n");
    } else if VG_STR_CLO (arg, "--alloc-fn", text) {
        add_name(jm_options.alloc_fns, text);
    } else if VG_STR_CLO (arg, "--ignore-fn", text) {
        add_name(jm_options.ignore_fns, text);
    } else if VG_STR_CLO (arg, "--large", text) {
        jm_options.large_bytes = parse_bytes(arg, text);
    } else if VG_STR_CLO (arg, "--code-cache", text) {
        jm_options.code_cache = VG_STREQ(text, "no") ? NULL : text;
        if (!*text)
            VG_(fmsg_bad_option)(arg, "--code-cache must be yes, no or a directory\n");
    } else if VG_STR_CLO (arg, "--code-cache-size", text) {
        jm_options.code_cache_bytes = parse_bytes(arg, text);
    } else if VG_STR_CLO (arg, "--owners", jm_options.owners_file) {
    } else if VG_STR_CLO (arg, "--board-root", jm_options.board_root) {
    } else if VG_STR_CLO (arg, "--jmassif-out-file", jm_options.out_file) {
    } else {
        return VG_(replacement_malloc_process_cmd_line_option)(arg);
    }
    return True;
}

void jm_options_print_usage(void)
{
    VG_(printf)
    ("  recording:\n"
     "    --heap=no|yes             record the heap [yes]\n"
     "    --heap-admin=<bytes>      size of malloc's header of a block [8]\n"
     "    --pages=no|yes            sample resident files, mappings and stacks [yes]\n"
     "    --driver=no|yes           record what GPU drivers commit below CUDA [yes]\n"
     "    --stacks=no|yes           record stack sizes to the byte; slow [no]\n"
     "    --threads=no|yes          record the thread of each allocation [no]\n"
     "    --depth=<number>          innermost frames kept of a stack; 0: all [0]\n"
     "    --alloc-fn=<name>         skip this function like malloc; may be repeated\n"
     "    --ignore-fn=<name>        leave out what it allocates; may be repeated\n"
     "    --nvtx=yes|no             record NVTX ranges and marks [yes]\n"
     "    --python=auto|no          show Python functions and lines in stacks [auto]\n"
     "    --owners=<file>           rules to apply before those of owners.rules\n"
     "    --memory=auto|unified|discrete\n"
     "                              GPU memory: the host's own, or separate [auto]\n"
     "    --large=<size>            record heap blocks from this size on one by one;\n"
     "                              units KiB, MiB, GiB; 0: every block [64KiB]\n"
     "    --board-root=<dir>        in a container: the directory of the host's / [/]\n"
     "  snapshots and the trace:\n"
     "    --jmassif-out-file=<file> trace file; %%p: process id, %%n: number of the\n"
     "                              file, %%q{VAR}: environment [jmassif.out.%%p]\n"
     "    --keep-going=no|yes       run the program also when no trace can be written;\n"
     "                              otherwise exit with status 2 [no]\n"
     "    --time-unit=i|ms|B        instructions, ms, or bytes allocated, freed [ms]\n"
     "    --interval=<ms>           minimum interval between snapshots [10]\n"
     "    --max-snapshots=<number>  snapshots per tenfold growth of the run time [100]\n"
     "    --anonymize=no|yes        leave out host, user, home and arguments [no]\n"
     "    --low-footprint=no|yes    take less memory, more time: boards of 4 GB [no]\n"
     "  translation cache:\n"
     "    --code-cache=no|yes|<dir> keep translated code for the next run, which then\n"
     "                              starts sooner; yes: in ~/.cache/jmassif [yes]\n"
     "    --code-cache-size=<size>  maximum size; units KiB, MiB, GiB [256MiB]\n"
     "  for the reports:\n"
     "    --low-memory=<percent>    take a snapshot when less is left; 0: never [5]\n"
     "    --threshold=<percent>     minimum share of a node in trees [1.0]\n"
     "    --detailed-freq=<number>  massif output: a tree every so many snapshots [10]\n"
     "  massif options (ignored, with a note):\n"
     "    --pages-as-heap=no|yes, --peak-inaccuracy=<percent>\n");
    VG_(printf)("  read the trace with: jmassif report <file>\n");
}

void jm_options_print_debug_usage(void)
{
    VG_(printf)
    ("    --check-unwinding=no|yes  unwind each stack by the core as well, and count those that\n"
     "                              differ in the trace [no]\n");
}

void jm_options_finish(void)
{
    jm_options.low_memory_per_mille = (UInt)(low_memory * 10 + 0.5);
    if (pages_as_heap)
        VG_(umsg)("jmassif: --pages-as-heap is not needed: heap and pages are separate kinds in one ledger\n");
    if (peak_inaccuracy >= 0)
        VG_(umsg)("jmassif: --peak-inaccuracy is not needed: peaks are always exact\n");
}
