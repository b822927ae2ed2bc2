// SPDX-License-Identifier: GPL-2.0-or-later
//
// SHA-256 after FIPS 180-4 and in its terms: a message schedule of 64 words, and a round for each. A Valgrind tool
// cannot link a library for it.

#include "base/sha256.h"
#include "base/libc.h"
#include "base/text.h"

// FIPS 180-4, 4.2.2: fractional parts of the cube roots of the first 64 primes.
static const UInt round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static UInt rotated(UInt word, UInt by)
{
    return word >> by | word << (32 - by);
}

static void add_block(Sha256 *hash)
{
    UInt schedule[64];
    for (UInt i = 0; i < 16; i++) {
        const UChar *at = hash->block + 4 * i;
        schedule[i] = (UInt)at[0] << 24 | (UInt)at[1] << 16 | (UInt)at[2] << 8 | at[3];
    }
    for (UInt i = 16; i < 64; i++) {
        UInt early = schedule[i - 15], late = schedule[i - 2];
        UInt sigma0 = rotated(early, 7) ^ rotated(early, 18) ^ early >> 3;
        UInt sigma1 = rotated(late, 17) ^ rotated(late, 19) ^ late >> 10;
        schedule[i] = schedule[i - 16] + sigma0 + schedule[i - 7] + sigma1;
    }
    UInt s[8]; // the working variables a to h of the standard
    memcpy(s, hash->state, sizeof s);
    for (UInt i = 0; i < 64; i++) {
        UInt sum1 = rotated(s[4], 6) ^ rotated(s[4], 11) ^ rotated(s[4], 25);
        UInt choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        UInt sum0 = rotated(s[0], 2) ^ rotated(s[0], 13) ^ rotated(s[0], 22);
        UInt majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        UInt one = s[7] + sum1 + choice + round_constants[i] + schedule[i];
        for (UInt j = 7; j > 0; j--)
            s[j] = s[j - 1];
        s[4] += one;
        s[0] = one + sum0 + majority;
    }
    for (UInt i = 0; i < 8; i++)
        hash->state[i] += s[i];
}

void jm_sha256_begin(Sha256 *hash)
{
    // 5.3.3: fractional parts of the square roots of the first eight primes.
    static const UInt start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->state, start, sizeof start);
    hash->n_bytes = 0;
}

void jm_sha256_add(Sha256 *hash, const UChar *bytes, SizeT n_bytes)
{
    while (n_bytes) {
        SizeT used = hash->n_bytes % sizeof hash->block;
        SizeT n = sizeof hash->block - used < n_bytes ? sizeof hash->block - used : n_bytes;
        memcpy(hash->block + used, bytes, n);
        hash->n_bytes += n;
        bytes += n;
        n_bytes -= n;
        if (used + n == sizeof hash->block)
            add_block(hash);
    }
}

void jm_sha256_end(Sha256 *hash, HChar hex[JM_SHA256_HEX + 1])
{
    ULong n_bits = hash->n_bytes * 8;
    static const UChar end[64] = {0x80};
    SizeT used = hash->n_bytes % sizeof hash->block;
    jm_sha256_add(hash, end, used < 56 ? 56 - used : 120 - used);
    UChar length[8];
    for (UInt i = 0; i < 8; i++)
        length[i] = (UChar)(n_bits >> (56 - 8 * i));
    jm_sha256_add(hash, length, sizeof length);
    for (UInt i = 0; i < 8; i++)
        jm_format(hex + 8 * i, 9, "%08x", hash->state[i]);
}
