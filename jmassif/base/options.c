// SPDX-License-Identifier: GPL-2.0-or-later
//
// Command-line options of the recorder: defaults, parsing and the usage text. Options that massif has keep their names
// and meanings.

#include "base/options.h"
#include "base/libc.h"
#include "base/text.h"
#include "host/host.h"

Options jm_options;

static UInt no_python;

void jm_usage_error(const HChar *format, ...)
{
    HChar text[1024];
    va_list args;
    va_start(args, format);
    jm_format_list(text, sizeof text, format, args);
    va_end(args);
    host_usage_error(text);
}

void jm_options_init(void)
{
    jm_options.heap = True;
    jm_options.pages = True;
    jm_options.driver = True;
    jm_options.nvtx = True;
    jm_options.heap_admin = 8;
    jm_options.max_snapshots = 100;
    jm_options.interval_ms = 10;
    jm_options.low_memory = 5;
    jm_options.large_bytes = 64 * 1024;
    jm_options.time_unit = TIME_MS;
    jm_options.out_file = "jmassif.out.%p";
    jm_options.board_root = "";
    jm_options.code_cache = "yes";
    jm_options.code_cache_bytes = 256 << 20;
    jm_options.alloc_fns = jm_array_new("jm.options", sizeof(HChar *));
    jm_options.ignore_fns = jm_array_new("jm.options", sizeof(HChar *));
}

typedef enum { IS_YES_NO, IS_NUMBER, IS_BYTES, IS_TEXT, IS_NAME, IS_CHOICE } OptionType;

typedef struct {
    const HChar *name;
    OptionType type;
    void *value;
    Int least, most;       // of numbers
    const HChar *words[4]; // of a choice; its value is the position
} Option;

static const Option all_options[] = {
    {.name = "--heap", .type = IS_YES_NO, .value = &jm_options.heap},
    {.name = "--pages", .type = IS_YES_NO, .value = &jm_options.pages},
    {.name = "--driver", .type = IS_YES_NO, .value = &jm_options.driver},
    {.name = "--anonymize", .type = IS_YES_NO, .value = &jm_options.anonymize},
    {.name = "--threads", .type = IS_YES_NO, .value = &jm_options.threads},
    {.name = "--low-footprint", .type = IS_YES_NO, .value = &jm_options.low_footprint},
    {.name = "--keep-going", .type = IS_YES_NO, .value = &jm_options.keep_going},
    {.name = "--nvtx", .type = IS_YES_NO, .value = &jm_options.nvtx},
    {.name = "--heap-admin", .type = IS_NUMBER, .value = &jm_options.heap_admin, .least = 0, .most = 1024},
    {.name = "--depth", .type = IS_NUMBER, .value = &jm_options.depth, .least = 0, .most = 8192},
    {.name = "--max-snapshots", .type = IS_NUMBER, .value = &jm_options.max_snapshots, .least = 10, .most = 1000},
    {.name = "--interval", .type = IS_NUMBER, .value = &jm_options.interval_ms, .least = 1, .most = 3600000},
    {.name = "--low-memory", .type = IS_NUMBER, .value = &jm_options.low_memory, .least = 0, .most = 100},
    {.name = "--large", .type = IS_BYTES, .value = &jm_options.large_bytes},
    {.name = "--code-cache-size", .type = IS_BYTES, .value = &jm_options.code_cache_bytes},
    {.name = "--time-unit", .type = IS_CHOICE, .value = &jm_options.time_unit, .words = {"i", "ms", "B"}},
    {.name = "--memory", .type = IS_CHOICE, .value = &jm_options.memory, .words = {"auto", "unified", "discrete"}},
    {.name = "--python", .type = IS_CHOICE, .value = &no_python, .words = {"auto", "no"}},
    {.name = "--alloc-fn", .type = IS_NAME, .value = &jm_options.alloc_fns},
    {.name = "--ignore-fn", .type = IS_NAME, .value = &jm_options.ignore_fns},
    {.name = "--code-cache", .type = IS_TEXT, .value = &jm_options.code_cache},
    {.name = "--owners", .type = IS_TEXT, .value = &jm_options.owners_file},
    {.name = "--board-root", .type = IS_TEXT, .value = &jm_options.board_root},
    {.name = "--jmassif-out-file", .type = IS_TEXT, .value = &jm_options.out_file},
};

__attribute__((noreturn)) static void expected(const HChar *arg, const HChar *format, ...)
{
    HChar text[256];
    va_list args;
    va_start(args, format);
    jm_format_list(text, sizeof text, format, args);
    va_end(args);
    host_bad_option(arg, text);
}

// Parse "64KiB", "64k" or "65536" into bytes.
static ULong parse_bytes(const HChar *arg, const HChar *text)
{
    HChar *end;
    ULong n = jm_text_number(text, &end);
    ULong unit = 0;
    if (end != text) {
        static const struct {
            const HChar *suffix;
            ULong unit;
        } units[] = {{"", 1},        {"B", 1},         {"k", 1 << 10}, {"K", 1 << 10}, {"KiB", 1 << 10}, {"m", 1 << 20},
                     {"M", 1 << 20}, {"MiB", 1 << 20}, {"g", 1 << 30}, {"G", 1 << 30}, {"GiB", 1 << 30}};
        for (UInt i = 0; i < sizeof units / sizeof units[0]; i++)
            if (jm_text_equal(end, units[i].suffix))
                unit = units[i].unit;
    }
    // Reject a size above 64 bits, which would wrap to another size.
    if (!unit || end - text > 19 || n > ~0ULL / unit)
        expected(arg, "expected a size such as 65536, 64KiB or 1MiB");
    return n * unit;
}

static Int parse_number(const Option *option, const HChar *arg, const HChar *text)
{
    HChar *end;
    ULong n = jm_text_number(text, &end);
    if (end == text || *end || end - text > 18 || n < (ULong)option->least || n > (ULong)option->most)
        expected(arg, "%s must be between %d and %d", option->name, option->least, option->most);
    return (Int)n;
}

static UInt parse_choice(const Option *option, const HChar *arg, const HChar *text)
{
    UInt n = 0;
    while (option->words[n] && !jm_text_equal(option->words[n], text))
        n++;
    if (option->words[n])
        return n;
    expected(arg, "%s must be %s%s%s%s%s", option->name, option->words[0], option->words[2] ? ", " : "",
             option->words[2] ? option->words[1] : "", " or ", option->words[2] ? option->words[2] : option->words[1]);
}

static void set_option(const Option *option, const HChar *arg, const HChar *text)
{
    switch (option->type) {
    case IS_YES_NO:
        if (!jm_text_equal(text, "yes") && !jm_text_equal(text, "no"))
            expected(arg, "%s must be yes or no", option->name);
        *(Bool *)option->value = *text == 'y';
        break;
    case IS_NUMBER:
        *(Int *)option->value = parse_number(option, arg, text);
        break;
    case IS_BYTES:
        *(ULong *)option->value = parse_bytes(arg, text);
        break;
    case IS_TEXT:
        *(const HChar **)option->value = text;
        break;
    case IS_NAME:
        jm_array_add(*(Array **)option->value, &text);
        break;
    case IS_CHOICE:
        *(UInt *)option->value = parse_choice(option, arg, text);
        break;
    }
}

// NULL if the recorder has no such option.
static const Option *option_of(const HChar *arg)
{
    const HChar *equals = strchr(arg, '=');
    for (UInt i = 0; equals && i < sizeof all_options / sizeof *all_options; i++)
        if (strncmp(arg, all_options[i].name, equals - arg) == 0 && !all_options[i].name[equals - arg])
            return &all_options[i];
    return NULL;
}

Bool jm_options_is_own(const HChar *arg)
{
    return option_of(arg) != NULL;
}

Bool jm_options_process(const HChar *arg)
{
    const Option *option = option_of(arg);
    if (option)
        set_option(option, arg, strchr(arg, '=') + 1);
    return option != NULL;
}

void jm_options_print_usage(void)
{
    host_print(HOST_USAGE, "  recording:\n"
                           "    --heap=no|yes             record the heap [yes]\n"
                           "    --heap-admin=<bytes>      size of malloc's header of a block [8]\n"
                           "    --pages=no|yes            sample resident files, mappings and stacks [yes]\n"
                           "    --driver=no|yes           record what GPU drivers commit below CUDA [yes]\n"
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
                           "    --jmassif-out-file=<file> trace file; %p: process id, %n: number of the\n"
                           "                              file, %q{VAR}: environment [jmassif.out.%p]\n"
                           "    --keep-going=no|yes       run the program also when no trace can be written;\n"
                           "                              otherwise exit with status 2 [no]\n"
                           "    --time-unit=i|ms|B        instructions, ms, or bytes allocated, freed [ms]\n"
                           "    --interval=<ms>           minimum interval between snapshots [10]\n"
                           "    --max-snapshots=<number>  snapshots per tenfold growth of the run time [100]\n"
                           "    --low-memory=<percent>    take a snapshot when less is left; 0: never [5]\n"
                           "    --anonymize=no|yes        leave out host, user, home and arguments [no]\n"
                           "    --low-footprint=no|yes    take less memory, more time: boards of 4 GB [no]\n"
                           "  translation cache:\n"
                           "    --code-cache=no|yes|<dir> keep translated code for the next run, which then\n"
                           "                              starts sooner; yes: in ~/.cache/jmassif [yes]\n"
                           "    --code-cache-size=<size>  maximum size; units KiB, MiB, GiB [256MiB]\n"
                           "  read the trace with: jmassif report <file>\n");
}

void jm_options_finish(void)
{
    jm_options.python = !no_python;
    if (jm_text_equal(jm_options.code_cache, "no"))
        jm_options.code_cache = NULL;
    else if (!*jm_options.code_cache)
        host_bad_option("--code-cache=", "--code-cache must be yes, no or a directory");
}
