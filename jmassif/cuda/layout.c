// SPDX-License-Identifier: GPL-2.0-or-later
//
// Array sizes; see layout.h. What the driver adds for alignment and tiling is below the API and not counted here.

#include "cuda/layout.h"
#include "base/client_memory.h"

// A missing dimension is 0 and counts as 1; each further level of a mipmap halves every dimension.
static ULong levels_bytes(UWord width, UWord height, UWord depth, ULong element_bytes, UWord n_levels)
{
    ULong bytes = 0;
    for (UWord level = 0; level < n_levels && level < 64; level++) {
        bytes += (ULong)(width ? width : 1) * (height ? height : 1) * (depth ? depth : 1) * element_bytes;
        width = width > 1 ? width / 2 : width;
        height = height > 1 ? height / 2 : height;
        depth = depth > 1 ? depth / 2 : depth;
    }
    return bytes;
}

// cudaChannelFormatDesc: int x, y, z, w (bits of each channel), then the kind.
static ULong channel_bytes(Addr descriptor)
{
    ULong bits = 0;
    for (UInt i = 0; i < 4; i++) {
        UInt channel;
        jm_read_uint(descriptor + i * 4, &channel);
        bits += channel;
    }
    return bits / 8;
}

ULong jm_runtime_array_bytes(const UWord *words, Bool has_depth)
{
    return levels_bytes(words[2], words[3], has_depth ? words[4] : 0, channel_bytes(words[1]), 1);
}

ULong jm_runtime_mipmap_bytes(const UWord *words)
{
    return levels_bytes(words[2], words[3], words[4], channel_bytes(words[1]), (UInt)words[5]);
}

// CUarray_format: the size of one channel.
static UInt format_bytes(UInt format)
{
    switch (format) {
    case 0x01: // UNSIGNED_INT8
    case 0x08: // SIGNED_INT8
        return 1;
    case 0x02: // UNSIGNED_INT16
    case 0x09: // SIGNED_INT16
    case 0x10: // HALF
        return 2;
    case 0x03: // UNSIGNED_INT32
    case 0x0a: // SIGNED_INT32
    case 0x20: // FLOAT
        return 4;
    default:
        return 1; // block-compressed and planar formats: about a byte a texel
    }
}

ULong jm_driver_array_bytes(Addr descriptor, Bool has_depth, UWord n_levels)
{
    UWord width, height, depth = 0;
    UInt format, n_channels;
    jm_read_word(descriptor, &width);
    jm_read_word(descriptor + 8, &height);
    if (has_depth)
        jm_read_word(descriptor + 16, &depth);
    Addr rest = descriptor + (has_depth ? 24 : 16);
    jm_read_uint(rest, &format);
    jm_read_uint(rest + 4, &n_channels);
    return levels_bytes(width, height, depth, (ULong)format_bytes(format) * n_channels, (UInt)n_levels);
}

ULong jm_driver_array_v1_bytes(Addr descriptor, Bool has_depth)
{
    UInt field[5] = {0};
    UInt n_dimensions = has_depth ? 3 : 2;
    for (UInt i = 0; i < n_dimensions + 2; i++)
        jm_read_uint(descriptor + i * 4, &field[i]);
    ULong element_bytes = (ULong)format_bytes(field[n_dimensions]) * field[n_dimensions + 1];
    return levels_bytes(field[0], field[1], has_depth ? field[2] : 0, element_bytes, 1);
}

// An int, padding, a union of 16 bytes, then the size.
ULong jm_external_memory_bytes(Addr descriptor)
{
    UWord bytes;
    jm_read_word(descriptor + 24, &bytes);
    return bytes;
}
