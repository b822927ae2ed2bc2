// SPDX-License-Identifier: GPL-2.0-or-later
//
// 64-bit checksum of data that the recorder itself reads back, at about half a nanosecond per word; it detects damage,
// not forgery.

#pragma once

#include "host/types.h"

// Compute a checksum; different seeds give different checksums of the same bytes. A change within one aligned word
// always changes the checksum.
ULong jm_checksum(const void *bytes, SizeT n_bytes, ULong seed);

// A word at any alignment.
typedef ULong __attribute__((aligned(1), may_alias)) UnalignedWord;
