// SPDX-License-Identifier: GPL-2.0-or-later
//
// SHA-256 (FIPS 180-4), by which a reader of the trace recognises a file. Never called on the path of an allocation.

#ifndef JM_SHA256_H
#define JM_SHA256_H

#include "host/types.h"

#define JM_SHA256_HEX 64 // digits of a digest

typedef struct {
    UInt state[8];
    ULong n_bytes;
    UChar block[64];
} Sha256;

void jm_sha256_begin(Sha256 *hash);
void jm_sha256_add(Sha256 *hash, const UChar *bytes, SizeT n_bytes);
void jm_sha256_end(Sha256 *hash, HChar hex[JM_SHA256_HEX + 1]); // lower case

#endif
