// SPDX-License-Identifier: GPL-2.0-or-later
//
// Files of the cache, opened relative to their directory: a path that is resolved twice may lead to two places. The
// core has no calls with directory descriptors, so the kernel's are called directly. See cache_directory.h.

#include "host/valgrind/cache_directory.h"
#include "base/kernel.h"
#include "base/options.h"

#define RLIMIT_FSIZE 1 // asm-generic/resource.h; the same on every architecture

#define OTHERS_MAY_WRITE 0022

// fcntl.h; missing in the core's headers.
#if defined(VGA_arm64)
#define O_DIRECTORY 040000
#define O_NOFOLLOW  0100000
#else
#define O_DIRECTORY 0200000
#define O_NOFOLLOW  0400000
#endif
#define O_CLOEXEC 02000000

static void refuse(const HChar *path, const HChar *why)
{
    static Bool has_said;
    if (VG_(clo_verbosity) > 0 && !has_said)
        VG_(umsg)("jmassif: translations are not kept: %s %s\n", path, why);
    has_said = True;
}

static UInt own_user(void)
{
    return jm_kernel_call(__NR_geteuid, 0, 0, 0, 0, 0);
}

// Return why a file is not trusted; NULL if the user owns it and others cannot write to it.
static const HChar *fault_of(const struct vg_stat *st)
{
    if (st->uid != own_user())
        return "belongs to someone else";
    if (st->mode & OTHERS_MAY_WRITE)
        return "can be written to by others";
    return NULL;
}

// ---- the directory -------------------------------------------------------------------------------------------

static Int make_and_open(const HChar *path, Bool is_asked_for)
{
    Long made = jm_kernel_call(__NR_mkdirat, (UWord)VKI_AT_FDCWD, (UWord)path, 0700, 0, 0);
    if (made < 0 && made != -VKI_EEXIST) {
        if (is_asked_for)
            refuse(path, "cannot be made");
        return -1;
    }
    Long fd = jm_kernel_call(__NR_openat, (UWord)VKI_AT_FDCWD, (UWord)path,
                             VKI_O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0, 0);
    struct vg_stat st;
    if (fd < 0) {
        refuse(path, "is no directory, or a link to one");
        return -1;
    }
    const HChar *fault = VG_(fstat)(fd, &st) == 0 ? fault_of(&st) : "cannot be looked at";
    if (fault) {
        refuse(path, fault);
        VG_(close)(fd);
        return -1;
    }
    return fd;
}

// Open the cache at the place of the XDG base directory specification. Stay silent if the base is not the user's own:
// root running a user's program must not leave files there that the user cannot write to.
static Int open_default(void)
{
    const HChar *base = VG_(getenv)("XDG_CACHE_HOME"), *home = VG_(getenv)("HOME");
    HChar path[VKI_PATH_MAX];
    SizeT used = 0;
    if (base && base[0] == '/' && VG_(strlen)(base) < VKI_PATH_MAX - 32)
        used = VG_(sprintf)(path, "%s", base);
    else if (home && home[0] == '/' && VG_(strlen)(home) < VKI_PATH_MAX - 32)
        used = VG_(sprintf)(path, "%s/.cache", home);
    struct vg_stat st;
    if (used == 0)
        return -1;
    jm_kernel_call(__NR_mkdirat, (UWord)VKI_AT_FDCWD, (UWord)path, 0700, 0, 0);
    if (sr_isError(VG_(stat)(path, &st)) || st.uid != own_user())
        return -1;
    VG_(strcpy)(path + used, "/jmassif");
    return make_and_open(path, False);
}

Int jm_cache_directory(void)
{
    static Bool has_tried;
    static Int directory = -1;
    if (!has_tried) {
        has_tried = True;
        const HChar *asked = jm_options.code_cache;
        const Int fd = VG_STREQ(asked, "yes") ? open_default() : make_and_open(asked, True);
        directory = fd < 0 ? -1 : VG_(safe_fd)(fd);
    }
    return directory;
}

// ---- its files -----------------------------------------------------------------------------------------------

Int jm_cache_directory_file(Int directory, const HChar *name, Int flags)
{
    Long fd = jm_kernel_call(__NR_openat, directory, (UWord)name, flags | O_NOFOLLOW | O_CLOEXEC, 0600, 0);
    if (fd < 0)
        return -1;
    struct vg_stat st;
    const HChar *fault = VG_(fstat)(fd, &st) != 0 ? "cannot be looked at"
                         : !VKI_S_ISREG(st.mode)  ? "is no file"
                                                  : fault_of(&st);
    if (fault) {
        refuse(name, fault);
        VG_(close)(fd);
        return -1;
    }
    return VG_(safe_fd)(fd);
}

Int jm_cache_reopen(Int file, Int flags)
{
    HChar path[64];
    VG_(snprintf)(path, sizeof path, "/proc/self/fd/%d", file);
    Long fd = jm_kernel_call(__NR_openat, (UWord)VKI_AT_FDCWD, (UWord)path, flags | O_CLOEXEC, 0, 0);
    return fd < 0 ? -1 : VG_(safe_fd)(fd);
}

void jm_cache_remove(Int directory, const HChar *name)
{
    jm_kernel_call(__NR_unlinkat, directory, (UWord)name, 0, 0, 0);
}

Long jm_cache_read(Int file, void *bytes, SizeT n, ULong offset)
{
    SizeT done = 0;
    while (done < n) {
        Long got = jm_kernel_call(__NR_pread64, file, (UWord)bytes + done, n - done, offset + done, 0);
        if (got == -VKI_EINTR)
            continue;
        if (got < 0)
            return got;
        if (got == 0)
            break;
        done += got;
    }
    return done;
}

// Writing beyond RLIMIT_FSIZE raises a signal, which would kill the program.
static Bool is_allowed(ULong end)
{
    struct vki_rlimit limit;
    return VG_(getrlimit)(RLIMIT_FSIZE, &limit) != 0 || end <= limit.rlim_cur;
}

Bool jm_cache_append(Int file, const CachePiece pieces[2], ULong *at)
{
    struct vki_iovec parts[2] = {{(void *)pieces[0].bytes, pieces[0].n}, {(void *)pieces[1].bytes, pieces[1].n}};
    const SizeT n = pieces[0].n + pieces[1].n;
    struct vg_stat st;
    if (VG_(fstat)(file, &st) != 0 || !is_allowed(st.size + n))
        return False;
    if (jm_kernel_call(__NR_writev, file, (UWord)parts, 2, 0, 0) != (Long)n)
        return False;
    *at = VG_(lseek)(file, 0, VKI_SEEK_CUR) - n;
    return True;
}

void jm_cache_note_use(Int file)
{
    jm_kernel_call(__NR_utimensat, file, 0, 0, 0, 0);
}

// ---- the limit of their size ---------------------------------------------------------------------------------

typedef struct {
    HChar name[64];
    ULong n_bytes;
    ULong used; // time of the last use, in seconds
} File;

static Bool ends_with(const HChar *name, const HChar *suffix)
{
    SizeT n = VG_(strlen)(name), n_suffix = VG_(strlen)(suffix);
    return n >= n_suffix && n < sizeof(((File *)0)->name) && VG_STREQ(name + n - n_suffix, suffix);
}

static void add_file(XArray *files, Int directory, const HChar *name)
{
    Int fd = jm_cache_directory_file(directory, name, VKI_O_RDONLY);
    struct vg_stat st;
    if (fd >= 0 && VG_(fstat)(fd, &st) == 0) {
        File file = {.n_bytes = st.size, .used = st.mtime};
        VG_(strcpy)(file.name, name);
        VG_(addToXA)(files, &file);
    }
    if (fd >= 0)
        VG_(close)(fd);
}

static XArray *files_in(Int directory, const HChar *suffix)
{
    XArray *files = VG_(newXA)(VG_(malloc), "jm.code", VG_(free), sizeof(File));
    static HChar entries[4096] __attribute__((aligned(8)));
    Long n;
    // Open it again for a separate position: a forked child may read the directory at the same time.
    const Int fd = jm_kernel_call(__NR_openat, directory, (UWord) ".", VKI_O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, 0);
    while ((n = jm_kernel_call(__NR_getdents64, fd, (UWord)entries, sizeof entries, 0, 0)) > 0)
        for (Long at = 0; at < n;) {
            const struct vki_dirent64 *entry = (const struct vki_dirent64 *)(entries + at);
            if (ends_with(entry->d_name, suffix))
                add_file(files, directory, entry->d_name);
            at += entry->d_reclen;
        }
    if (fd >= 0)
        VG_(close)(fd);
    return files;
}

static Int by_last_use(const void *a, const void *b)
{
    const File *first = a, *second = b;
    return first->used < second->used ? -1 : first->used > second->used;
}

void jm_cache_directory_trim(Int directory, const HChar *suffix, const HChar *kept, ULong limit)
{
    XArray *files = files_in(directory, suffix);
    ULong sum = 0;
    for (Word i = 0; i < VG_(sizeXA)(files); i++)
        sum += ((const File *)VG_(indexXA)(files, i))->n_bytes;
    VG_(setCmpFnXA)(files, by_last_use);
    VG_(sortXA)(files);
    for (Word i = 0; i < VG_(sizeXA)(files) && sum > limit; i++) {
        const File *file = VG_(indexXA)(files, i);
        if (VG_STREQ(file->name, kept))
            continue;
        jm_cache_remove(directory, file->name);
        sum -= file->n_bytes;
    }
    VG_(deleteXA)(files);
}
