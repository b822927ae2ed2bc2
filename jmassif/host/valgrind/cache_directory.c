// SPDX-License-Identifier: GPL-2.0-or-later
//
// Files of the cache, opened relative to their directory: a path that is resolved twice may lead to two places. See
// cache_directory.h.

#include "host/valgrind/cache_directory.h"
#include "base/kernel.h"
#include "base/options.h"
#include "base/text.h"
#include "host/host.h"

#include <errno.h>
#include <fcntl.h>

#define OTHERS_MAY_WRITE 0022

static void refuse(const HChar *path, const HChar *why)
{
    static Bool has_said;
    if (!has_said)
        jm_note("jmassif: translations are not kept: %s %s\n", path, why);
    has_said = True;
}

static UInt own_user(void)
{
    return jm_kernel_call(__NR_geteuid, 0, 0, 0, 0, 0);
}

Int jm_cache_open(Int directory, const HChar *path, Int flags)
{
    Int fd = jm_kernel_call(__NR_openat, directory, (UWord)path, flags | O_NOFOLLOW | O_CLOEXEC, 0600, 0);
    if (fd < 0)
        return fd;
    struct vg_stat st;
    const HChar *fault = VG_(fstat)(fd, &st) != 0                          ? "cannot be looked at"
                         : !(flags & O_DIRECTORY) && !VKI_S_ISREG(st.mode) ? "is no file"
                         : st.uid != own_user()                            ? "belongs to someone else"
                         : st.mode & OTHERS_MAY_WRITE                      ? "can be written to by others"
                                                                           : NULL;
    if (!fault)
        return host_keep_descriptor(fd);
    refuse(path, fault);
    jm_close(fd);
    return -EACCES;
}

static Long make_directory(const HChar *path)
{
    return jm_kernel_call(__NR_mkdirat, AT_FDCWD, (UWord)path, 0700, 0, 0);
}

// Find the place of the XDG base directory specification. False if the base is not the user's own: root running a
// user's program must not leave files there that the user cannot write to.
static Bool find_default(HChar *path, SizeT size)
{
    const HChar *base = host_environment("XDG_CACHE_HOME"), *below = "";
    if (!base || *base != '/') {
        base = host_environment("HOME");
        below = "/.cache";
    }
    if (!base || *base != '/' || strlen(base) + 32 > size)
        return False;
    const UInt used = jm_format(path, size, "%s%s", base, below);
    struct vg_stat st;
    make_directory(path);
    if (sr_isError(VG_(stat)(path, &st)) || st.uid != own_user())
        return False;
    strcpy(path + used, "/jmassif");
    return True;
}

static Int open_directory(void)
{
    HChar path[VKI_PATH_MAX];
    const Bool is_default = jm_text_equal(jm_options.code_cache, "yes");
    if (is_default && !find_default(path, sizeof path))
        return -1;
    if (!is_default)
        jm_text_cut(path, jm_options.code_cache, sizeof path);
    const Long made = make_directory(path);
    const Bool is_there = made == 0 || made == -EEXIST;
    const Int fd = is_there ? jm_cache_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY) : -1;
    if (fd < 0 && (is_there || !is_default))
        refuse(path, is_there ? "is no directory, or a link to one" : "cannot be made");
    return fd < 0 ? -1 : fd;
}

Int jm_cache_directory(void)
{
    static Bool has_tried;
    static Int directory = -1;
    if (!has_tried && jm_options.code_cache)
        directory = open_directory();
    has_tried = True;
    return directory;
}

Bool jm_cache_remove(Int directory, const HChar *name)
{
    return jm_kernel_call(__NR_unlinkat, directory, (UWord)name, 0, 0, 0) == 0;
}

// Sum up the files, and find the least recently used one but for `kept`; "" if there is no other.
static ULong sum_of_files(Int directory, const HChar *kept, HChar oldest[64])
{
    static HChar entries[4096] __attribute__((aligned(8)));
    ULong sum = 0, least_used = ~0ULL;
    Long n;
    *oldest = 0;
    // Open it again for a separate position: a forked child may read the directory at the same time.
    const Int fd = jm_cache_open(directory, ".", O_RDONLY | O_DIRECTORY);
    while ((n = jm_kernel_call(__NR_getdents64, fd, (UWord)entries, sizeof entries, 0, 0)) > 0)
        for (Long at = 0; at < n; at += ((const struct vki_dirent64 *)(entries + at))->d_reclen) {
            const HChar *name = ((const struct vki_dirent64 *)(entries + at))->d_name;
            const Bool is_ours = jm_text_fits("*" JM_CACHE_SUFFIX, 0, name) && strlen(name) < 64;
            const Int file = is_ours ? jm_cache_open(directory, name, O_RDONLY) : -1;
            struct vg_stat st;
            if (file < 0)
                continue;
            if (VG_(fstat)(file, &st) == 0)
                sum += st.size;
            if (st.mtime < least_used && !jm_text_equal(name, kept)) {
                least_used = st.mtime;
                strcpy(oldest, name);
            }
            jm_close(file);
        }
    jm_close(fd);
    return sum;
}

void jm_cache_directory_trim(Int directory, const HChar *kept, ULong limit)
{
    HChar oldest[64];
    while (sum_of_files(directory, kept, oldest) > limit && *oldest && jm_cache_remove(directory, oldest))
        continue;
}
