// SPDX-License-Identifier: GPL-2.0-or-later
//
// Checksums of source files of user code for the trace. A file is read when the first of its frames appears, shortly
// after the interpreter has read it. Library files are left out: a board would read a thousand of them from its card
// only for this.

#include "symbols/source.h"
#include "base/array.h"
#include "base/kernel.h"
#include "base/options.h"
#include "trace/trace.h"

#include <fcntl.h>
#include <sys/stat.h>

#define MOST_BYTES (4u << 20) // a reader accepts no more

static Array seen = JM_ARRAY("jm.source", UInt); // string ids

// CRC-32 of ITU-T V.42, as zlib's. Bit by bit: it is a few files that are read.
static UInt crc32(UInt crc, const UChar *bytes, SizeT n_bytes)
{
    for (SizeT i = 0; i < n_bytes; i++) {
        crc ^= bytes[i];
        for (UInt bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return crc;
}

void jm_source_seen(const HChar *path, UInt string)
{
    // A checksum would identify users who have the same file.
    if (jm_options.anonymize || !path || jm_array_find(&seen, &string, sizeof string))
        return;
    jm_array_add(&seen, &string);
    Int fd = jm_open(path, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0)
        return;
    static UChar piece[16384];
    SizeT n_read = 0;
    UInt crc = ~0u;
    FileStatus st;
    Int n = jm_file_status(fd, &st) && S_ISREG(st.mode) && (ULong)st.size <= MOST_BYTES ? 1 : -1;
    while (n > 0 && n_read <= MOST_BYTES && (n = jm_read(fd, piece, sizeof piece)) > 0) {
        crc = crc32(crc, piece, n);
        n_read += n;
    }
    jm_close(fd);
    if (n == 0)
        jm_trace_source(string, ~crc);
}
