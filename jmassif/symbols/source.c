// SPDX-License-Identifier: GPL-2.0-or-later
//
// Hash source files of user code for the trace. A file is hashed when the first of its frames appears, shortly after
// the interpreter has read it. Library files are left out: a board would read a thousand of them from its card only for
// this.

#include "symbols/source.h"
#include "base/array.h"
#include "base/kernel.h"
#include "base/options.h"
#include "base/sha256.h"
#include "trace/trace.h"

#include <fcntl.h>
#include <sys/stat.h>

#define MOST_BYTES (4u << 20) // a reader accepts no more

static Array *seen; // string ids (UInt)

static Bool is_new(UInt string)
{
    if (!seen)
        seen = jm_array_new("jm.source", sizeof(UInt));
    // Search backwards: functions of one module appear together.
    for (Word i = jm_array_n(seen) - 1; i >= 0; i--)
        if (*(UInt *)jm_array_at(seen, i) == string)
            return False;
    jm_array_add(seen, &string);
    return True;
}

static Bool is_regular(Int fd)
{
    FileStatus status;
    return jm_file_status(fd, &status) && S_ISREG(status.mode) && (ULong)status.size <= MOST_BYTES;
}

void jm_source_seen(const HChar *path, UInt string)
{
    // A hash would identify users who have the same file.
    if (jm_options.anonymize || !path || !is_new(string))
        return;
    Int opened = jm_open(path, O_RDONLY | O_NONBLOCK, 0);
    if (jm_is_error(opened))
        return;
    Int fd = opened;
    static Sha256 hash;
    static UChar piece[16384];
    SizeT n_read = 0;
    Int n = is_regular(fd) ? 1 : -1;
    for (jm_sha256_begin(&hash); n > 0 && n_read <= MOST_BYTES; n_read += n > 0 ? n : 0) {
        n = jm_read(fd, piece, sizeof piece);
        if (n > 0)
            jm_sha256_add(&hash, piece, n);
    }
    jm_close(fd);
    if (n != 0)
        return;
    HChar hex[JM_SHA256_HEX + 1];
    jm_sha256_end(&hash, hex);
    jm_trace_source(string, hex);
}
