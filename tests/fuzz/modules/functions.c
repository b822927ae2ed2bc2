// SPDX-License-Identifier: GPL-2.0-or-later
//
// An object file of which every byte may be wrong, on the disk or only mapped: its functions are named.

#include "host/native/functions.h"
#include "shim.h"

#include "base/client_memory.h"
#include "base/kernel.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const uint8_t *file;
static size_t file_bytes;
static int is_on_disk;
static ULong n_files;

Long jm_read_at(Int fd, void *to, SizeT bytes, ULong offset)
{
    size_t left = offset < file_bytes ? file_bytes - offset : 0;
    memcpy(to, file + (left ? offset : 0), bytes < left ? bytes : left);
    return bytes < left ? bytes : left;
}

// A copy of its own, so that a read beyond it is seen.
static void *parts[4];
static UInt n_parts;

Long jm_kernel_mmap(Addr address, SizeT bytes, UInt protection, UInt flags, Int fd, ULong offset)
{
    if (offset % 4096 || offset > file_bytes || bytes > file_bytes - offset || n_parts == 4)
        abort();
    void *part = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    memcpy(part, file + offset, bytes);
    parts[n_parts++] = part;
    return (Long)part;
}

Long jm_kernel_call(UWord number, UWord a1, UWord a2, UWord a3, UWord a4, UWord a5)
{
    for (UInt i = 0; i < n_parts; i++)
        if (parts[i] == (void *)a1) {
            free(parts[i]);
            parts[i] = parts[--n_parts];
        }
    return 0;
}

Bool jm_path_status(const HChar *path, FileStatus *status)
{
    *status = (FileStatus){7, 7, file_bytes, S_IFREG, n_files};
    return is_on_disk;
}

Bool jm_file_status(Int fd, FileStatus *status)
{
    return jm_path_status("", status);
}

void jm_looked_at(Addr start, Addr end) {}

enum { N_PLACES = 32 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    if (n < 64 || n > SEGMENT_BYTES)
        return 0;
    shim_seed(bytes, n);
    file = bytes;
    file_bytes = n;
    n_files++;
    is_on_disk = shim_number() & 1;
    Addr image = (Addr)shim_segment(bytes, n, 1);
    Mapping code;
    ObjectFile object;
    host_mapping_at(image, &code);
    // The inode makes each input another file.
    code.inode += n_files;
    jm_object_file(&code, True, &object);
    for (UInt i = 0; i < N_PLACES; i++) {
        Bool is_entry;
        const HChar *name = jm_function_at(&code, image + shim_number() % n, &is_entry);
        if (name && strlen(name) > 1 << 20)
            abort();
    }
    shim_forget();
    jm_forget_readable();
    return 0;
}
