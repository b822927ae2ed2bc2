// SPDX-License-Identifier: GPL-2.0-or-later
//
// Writes the manifest; see manifest.h. The board's facts come from files of L4T and of dpkg, below --board-root if the
// program runs in a container.

#include "machine/manifest.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "base/options.h"
#include "base/text.h"
#include "host/host.h"
#include "trace/trace.h"

static void write_command(void)
{
    // --anonymize keeps only the program's name: arguments contain paths, tokens and names of data sets.
    SizeT size = strlen(host_program()) + 1;
    for (UInt i = 0; i < host_n_arguments(); i++)
        size += strlen(host_argument(i)) + 1;
    HChar *text = host_alloc("jm.manifest", size);
    strcpy(text, jm_options.anonymize ? jm_text_file_name(host_program()) : host_program());
    HChar *end = text + strlen(text); // not strcat: there may be a hundred thousand arguments
    for (UInt i = 0; !jm_options.anonymize && i < host_n_arguments(); i++) {
        const HChar *argument = host_argument(i);
        *end++ = ' ';
        strcpy(end, argument);
        end += strlen(argument);
    }
    jm_trace_manifest("command", text);
    host_free(text);
}

// Path of a file that describes the board. Overwritten by the next call.
static const HChar *of_board(const HChar *path)
{
    static HChar found[4096];
    jm_format(found, sizeof found, "%s%s", jm_options.board_root, path);
    return found;
}

// Writes a file's first line as the value of `key`.
static void write_first_line(const HChar *key, const HChar *path)
{
    HChar *text = jm_text_read_file(path, 4096), *rest;
    const HChar *line = text ? jm_text_word(text, "\n", &rest) : NULL;
    if (line)
        jm_trace_manifest(key, line);
    host_free(text);
}

// /etc/nv_tegra_release: "# R32 (release), REVISION: 7.1, GCID: …" is L4T 32.7.1.
static void write_l4t(void)
{
    HChar *text = jm_text_read_file(of_board("/etc/nv_tegra_release"), 4096);
    HChar *major = text ? strstr(text, "R") : NULL;
    HChar *revision = text ? strstr(text, "REVISION: ") : NULL;
    if (major && revision) {
        HChar shown[64], *rest;
        jm_text_word(revision, ",", &rest); // cuts it there
        jm_format(shown, sizeof shown, "%llu.%s", jm_text_number(major + 1, NULL), revision + 10);
        jm_trace_manifest("l4t", shown);
    }
    host_free(text);
}

// Packages that identify the software stack: globs over dpkg's package names.
static const HChar packages[] =
    "nvidia-jetpack|nvidia-l4t-core|nvidia-l4t-cuda|cuda-cudart-*|cuda-runtime-*|"
    "cuda-toolkit-*|libcudnn?|libcudnn?-cuda-*|libnvinfer?|libnvinfer1?|tensorrt|libcublas*|"
    "python3-torch*|libtorch*|python3-numpy|python3.*-minimal|libc6";

typedef struct {
    HChar name[128];
    Bool is_wanted;
    Bool is_installed;
} DpkgEntry;

static void dpkg_line(const HChar *line, void *context)
{
    DpkgEntry *entry = context;
    if (strncmp(line, "Package: ", 9) == 0) {
        jm_text_cut(entry->name, line + 9, sizeof entry->name);
        entry->is_wanted = jm_text_fits_any(packages, entry->name) && !strstr(entry->name, "-dev") &&
                           !strstr(entry->name, "-doc") && !strstr(entry->name, "-test");
        entry->is_installed = False;
    } else if (strncmp(line, "Status: ", 8) == 0) {
        entry->is_installed = strstr(line, " installed") != NULL;
    } else if (strncmp(line, "Version: ", 9) == 0 && entry->is_wanted && entry->is_installed) {
        HChar key[160];
        jm_format(key, sizeof key, "package.%s", entry->name);
        jm_trace_manifest(key, line + 9);
    }
}

#define MOST_NAME 100

// True for a NAME of the format. Others cannot be keys.
static Bool is_name(const HChar *text, SizeT n)
{
    for (SizeT i = 0; i < n; i++)
        if (!jm_text_is_digit(text[i]) && text[i] != '_' && text[i] != '.' && !(text[i] >= 'A' && text[i] <= 'Z') &&
            !(text[i] >= 'a' && text[i] <= 'z'))
            return False;
    return n > 0 && n <= MOST_NAME;
}

// Environment variables written so far, as hashes; a value of 0: unset. The limit keeps programs that ask for ever new
// names from filling the trace.
#define MOST_VARIABLES 256

typedef struct {
    ULong key, value;
} Variable;
static Array variables = JM_ARRAY("jm.manifest", Variable);

static void write_variable(const HChar *name, SizeT n, const HChar *value)
{
    if (!is_name(name, n))
        return;
    HChar key[MOST_NAME + 8] = "env.";
    strncpy(key + strlen(key), name, n);
    const Variable wanted = {jm_trace_text_hash(key), 0};
    Variable *known = jm_array_find(&variables, &wanted, sizeof wanted.key);
    if (!known && jm_array_n(&variables) == MOST_VARIABLES)
        return;
    if (!known)
        known = jm_array_at(&variables, jm_array_add(&variables, &wanted));
    const ULong hash = value ? jm_trace_text_hash(value) : 0;
    if (known->value != hash)
        jm_trace_manifest(key, value ? value : "");
    known->value = hash;
}

static void write_environment(void)
{
    static const HChar wanted[] =
        "CUDA_*|PYTORCH_*|CUDNN_*|CUBLAS_*|PYTHONMALLOC=*|OMP_NUM_THREADS=*|RANK=*|LOCAL_RANK=*|WORLD_SIZE=*|"
        "TORCHELASTIC_RUN_ID=*|OMPI_COMM_WORLD_*|PMI_RANK=*|PMI_SIZE=*|SLURM_PROCID=*|SLURM_LOCALID=*|SLURM_NTASKS=*|"
        "SLURM_JOB_ID=*|MPI_LOCALRANKID=*|MALLOC_*|GLIBC_TUNABLES=*";
    for (HChar **e = host_program_environment(); e && *e; e++) {
        const HChar *equals = strchr(*e, '=');
        if (equals && jm_text_fits_any(wanted, *e))
            write_variable(*e, equals - *e, equals + 1);
    }
}

void jm_manifest_variable(const HChar *name, const HChar *value)
{
    write_variable(name, strlen(name), value);
}

static void meminfo_line(const HChar *line, void *context)
{
    jm_text_labelled_bytes(line, "MemTotal", context);
}

static void cpuinfo_line(const HChar *line, void *context)
{
    if (strncmp(line, "processor\t", 10) == 0)
        ++*(UInt *)context;
}

// The reporter uses these values as its defaults.
static void write_options(void)
{
    jm_trace_manifest_uint("option.max-snapshots", jm_options.max_snapshots);
    jm_trace_manifest_uint("option.depth", jm_options.depth);
    jm_trace_manifest_uint("option.heap-admin", jm_options.heap_admin);
    jm_trace_manifest("option.driver", jm_options.driver ? "yes" : "no");
    jm_trace_manifest("option.heap", jm_options.heap ? "yes" : "no");
    jm_trace_manifest("option.pages", jm_options.pages ? "yes" : "no");
    jm_trace_manifest("option.low-footprint", jm_options.low_footprint ? "yes" : "no");
    jm_trace_manifest("option.threads", jm_options.threads ? "yes" : "no");
    jm_trace_manifest_uint("option.large", jm_options.large_bytes);
}

void jm_manifest_write(void)
{
    write_command();
    jm_trace_manifest_uint("pid", jm_process_id());
    jm_trace_manifest_uint("ppid", jm_parent_id());
    jm_trace_manifest_uint("start-unix-ms", jm_clock_start_unix_ms());
    static const HChar *const units[] = {"i", "ms", "B"};
    jm_trace_manifest("time-unit", units[jm_options.time_unit]);
    // Guessed from the board, until a device query says whether the GPU is integrated.
    FileStatus st;
    Bool unified = jm_options.memory == MEMORY_UNIFIED ||
                   (jm_options.memory == MEMORY_AUTO && (jm_path_status(of_board("/etc/nv_tegra_release"), &st) ||
                                                         jm_path_status(of_board("/sys/module/tegra_fuse"), &st)));
    jm_trace_manifest("memory", unified ? "unified" : "discrete");
    if (!jm_options.anonymize) {
        jm_trace_manifest("cwd", host_start_directory());
        write_first_line("host", "/proc/sys/kernel/hostname");
        if (host_environment("USER"))
            jm_trace_manifest("user", host_environment("USER"));
    }
    jm_trace_manifest("jmassif", PACKAGE_VERSION);
    jm_trace_manifest("recorder", host_name());
    if (host_version())
        jm_trace_manifest(host_name(), host_version());
#if defined(__aarch64__)
    jm_trace_manifest("arch", "arm64");
#else
    jm_trace_manifest("arch", "amd64");
#endif
    write_first_line("kernel", "/proc/sys/kernel/osrelease");
    jm_trace_manifest_uint("page-size", HOST_PAGE_BYTES);
    ULong mem_total = 0;
    if (jm_text_each_line("/proc/meminfo", meminfo_line, &mem_total))
        jm_trace_manifest_uint("mem-total-bytes", mem_total);
    UInt cpus = 0;
    if (jm_text_each_line("/proc/cpuinfo", cpuinfo_line, &cpus) && cpus)
        jm_trace_manifest_uint("cpus", cpus);
    write_first_line("board", of_board("/proc/device-tree/model"));
    write_l4t();
    DpkgEntry entry = {0};
    // In a container the board's packages are L4T's, but the program uses the container's own, so
    // these come last.
    if (*jm_options.board_root)
        jm_text_each_line(of_board("/var/lib/dpkg/status"), dpkg_line, &entry);
    jm_text_each_line("/var/lib/dpkg/status", dpkg_line, &entry);
    write_environment();
    write_options();
}

// Writes the part of `text` after `prefix`, if it is a version.
static void write_version_after(const HChar *key, const HChar *text, const HChar *prefix)
{
    const HChar *at = strstr(text, prefix);
    if (!at || !jm_text_is_digit(at[strlen(prefix)]))
        return;
    HChar version[64];
    jm_text_cut(version, at + strlen(prefix), sizeof version);
    HChar *suffix = strstr(version, ".so");
    if (suffix)
        *suffix = 0;
    jm_trace_manifest(key, version);
}

// A wheel has torch/version.py beside the library's folder, with a line "__version__ = '1.10.0'".
static void torch_version_line(const HChar *line, void *context)
{
    const HChar *quote = strncmp(line, "__version__", 11) == 0 ? strpbrk((HChar *)line, "'\"") : NULL;
    if (!quote)
        return;
    HChar version[64], *rest;
    jm_text_cut(version, quote, sizeof version);
    jm_trace_manifest("pytorch", jm_text_word(version, "'\"", &rest));
    *(Bool *)context = True;
}

void jm_manifest_object(const HChar *soname, const HChar *path)
{
    const HChar *name = jm_text_file_name(path);
    if (strncmp(name, "python", 6) == 0 || strncmp(name, "libpython", 9) == 0)
        write_version_after("python", name, "python");
    else if (strncmp(name, "libtorch_cpu.so", 15) == 0) {
        HChar version_py[4096];
        Bool found = False;
        SizeT n = name - path;
        if (n + 20 < sizeof version_py) {
            strncpy(version_py, path, n);
            strcpy(version_py + n, "../version.py");
            jm_text_each_line(version_py, torch_version_line, &found);
        }
        if (!found && soname)
            write_version_after("pytorch", soname, "libtorch_cpu.so.");
    }
}

static Bool is_queried, is_discrete;

Bool jm_memory_model_is_known(void)
{
    return is_queried || jm_options.memory != MEMORY_AUTO;
}

void jm_memory_model_set(Bool has_own)
{
    is_queried = True;
    is_discrete = has_own;
    jm_trace_manifest("memory", has_own ? "discrete" : "unified");
}

Bool jm_memory_is_measured_apart(void)
{
    return is_discrete;
}

Bool jm_memory_is_discrete(void)
{
    return is_discrete || jm_options.memory == MEMORY_DISCRETE;
}
