// SPDX-License-Identifier: GPL-2.0-or-later
//
// Sizes of arrays; see layout.h. The driver's alignment and tiling are below the API and not included.

#include "cuda/layout.h"
#include "base/client_memory.h"

// Flags CUDA_ARRAY3D_* and cudaArray* that make depth a number of layers or faces, equal at each level.
#define LAYERED 0x01
#define CUBEMAP 0x04

typedef struct {
    UWord width, height, depth; // 0: a missing dimension
    ULong element_bytes;
    UInt flags;
} Shape;

static UWord larger(UWord a, UWord b)
{
    return a > b ? a : b;
}

// Each level of a mipmap halves every dimension. CUDA makes at least one level, and at most as many as it takes to
// halve the largest dimension to 1 (the documentation of cuMipmappedArrayCreate).
static ULong levels_bytes(Shape shape, UWord n_levels)
{
    const Bool has_layers = (shape.flags & (LAYERED | CUBEMAP)) != 0;
    ULong bytes = 0;
    for (UWord level = 0; level == 0 || level < n_levels; level++) {
        const UWord depth = has_layers ? shape.depth : shape.depth >> level;
        bytes += (ULong)larger(shape.width >> level, 1) * larger(shape.height >> level, 1) * larger(depth, 1) *
                 shape.element_bytes;
        if (larger(larger(shape.width, shape.height), shape.depth) >> level <= 1)
            break;
    }
    return bytes;
}

// cudaChannelFormatDesc: int x, y, z, w (bits of each channel), kind.
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
    return levels_bytes((Shape){words[2], words[3], has_depth ? words[4] : 0, channel_bytes(words[1]), 0}, 1);
}

ULong jm_runtime_mipmap_bytes(const UWord *words)
{
    return levels_bytes((Shape){words[2], words[3], words[4], channel_bytes(words[1]), words[6]}, (UInt)words[5]);
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
        return 1; // block-compressed and planar formats: about one byte per texel
    }
}

ULong jm_driver_array_bytes(Addr descriptor, Bool has_depth, UWord n_levels)
{
    Shape shape = {0};
    UInt format, n_channels;
    jm_read_word(descriptor, &shape.width);
    jm_read_word(descriptor + 8, &shape.height);
    if (has_depth)
        jm_read_word(descriptor + 16, &shape.depth);
    Addr rest = descriptor + (has_depth ? 24 : 16);
    jm_read_uint(rest, &format);
    jm_read_uint(rest + 4, &n_channels);
    if (has_depth)
        jm_read_uint(rest + 8, &shape.flags);
    shape.element_bytes = (ULong)format_bytes(format) * n_channels;
    return levels_bytes(shape, (UInt)n_levels);
}

ULong jm_driver_array_v1_bytes(Addr descriptor, Bool has_depth)
{
    UInt field[5] = {0};
    UInt n_dimensions = has_depth ? 3 : 2;
    for (UInt i = 0; i < n_dimensions + 2; i++)
        jm_read_uint(descriptor + i * 4, &field[i]);
    ULong element_bytes = (ULong)format_bytes(field[n_dimensions]) * field[n_dimensions + 1];
    return levels_bytes((Shape){field[0], field[1], has_depth ? field[2] : 0, element_bytes, 0}, 1);
}

// The descriptor has an int, padding, a union of 16 bytes, and the size at 24.
ULong jm_external_memory_bytes(Addr descriptor)
{
    UWord bytes;
    jm_read_word(descriptor + 24, &bytes);
    return bytes;
}
