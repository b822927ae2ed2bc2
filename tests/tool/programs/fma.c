// SPDX-License-Identifier: GPL-2.0-or-later
//
// usage: fma N
// Every scalar and packed FMA instruction of x86-64, each in the four rounding modes, over N inputs: random bits, and
// special values among them. Prints a hash of the results of each, and of those of each single special triple.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    _Alignas(32) uint32_t word[8];
} Vector;

#define PACKED(name, instruction, reg)                                                                                 \
    static void name(Vector *a, const Vector *b, const Vector *c)                                                      \
    {                                                                                                                  \
        __asm__ volatile("vmovups %0, %%" reg "0\n\tvmovups %1, %%" reg "1\n\tvmovups %2, %%" reg "2\n\t" instruction  \
                         " %%" reg "2, %%" reg "1, %%" reg "0\n\tvmovups %%" reg "0, %0\n\tvzeroupper"                 \
                         : "+m"(*a)                                                                                    \
                         : "m"(*b), "m"(*c)                                                                            \
                         : "xmm0", "xmm1", "xmm2");                                                                    \
    }

// Scalar, and 128 and 256 bits packed, of one operation in one order of operands.
#define WIDTHS(op, order)                                                                                              \
    PACKED(op##order##_ss, "v" #op #order "ss", "xmm")                                                                 \
    PACKED(op##order##_sd, "v" #op #order "sd", "xmm")                                                                 \
    PACKED(op##order##_ps, "v" #op #order "ps", "xmm")                                                                 \
    PACKED(op##order##_pd, "v" #op #order "pd", "xmm")                                                                 \
    PACKED(op##order##_ps256, "v" #op #order "ps", "ymm")                                                              \
    PACKED(op##order##_pd256, "v" #op #order "pd", "ymm")
#define ORDERS(op) WIDTHS(op, 132) WIDTHS(op, 213) WIDTHS(op, 231)
ORDERS(fmadd)
ORDERS(fmsub)
ORDERS(fnmadd)
ORDERS(fnmsub)

#define MIXED_WIDTHS(op, order)                                                                                        \
    PACKED(op##order##_ps, "v" #op #order "ps", "xmm")                                                                 \
    PACKED(op##order##_pd256, "v" #op #order "pd", "ymm")
#define MIXED_ORDERS(op) MIXED_WIDTHS(op, 132) MIXED_WIDTHS(op, 213) MIXED_WIDTHS(op, 231)
MIXED_ORDERS(fmaddsub)
MIXED_ORDERS(fmsubadd)

typedef struct {
    const char *name;
    void (*run)(Vector *, const Vector *, const Vector *);
    int is_double;
} Instruction;

#define ROW(f, is_double)                                                                                              \
    {                                                                                                                  \
#f, f, is_double                                                                                               \
    }
#define WIDTH_ROWS(op, order)                                                                                          \
    ROW(op##order##_ss, 0), ROW(op##order##_sd, 1), ROW(op##order##_ps, 0), ROW(op##order##_pd, 1),                    \
        ROW(op##order##_ps256, 0), ROW(op##order##_pd256, 1)
#define ORDER_ROWS(op)              WIDTH_ROWS(op, 132), WIDTH_ROWS(op, 213), WIDTH_ROWS(op, 231)
#define MIXED_WIDTH_ROWS(op, order) ROW(op##order##_ps, 0), ROW(op##order##_pd256, 1)
#define MIXED_ROWS(op)              MIXED_WIDTH_ROWS(op, 132), MIXED_WIDTH_ROWS(op, 213), MIXED_WIDTH_ROWS(op, 231)

static const Instruction instructions[] = {
    ORDER_ROWS(fmadd),  ORDER_ROWS(fmsub),    ORDER_ROWS(fnmadd),
    ORDER_ROWS(fnmsub), MIXED_ROWS(fmaddsub), MIXED_ROWS(fmsubadd),
};

// Zeros, the smallest and largest of both kinds, one and its neighbours, infinities, NaNs quiet and signalling.
static const uint64_t special64[] = {
    0,
    0x8000000000000000,
    1,
    0x800fffffffffffff,
    0x0010000000000000,
    0x3ff0000000000000,
    0xbff0000000000001,
    0x7fefffffffffffff,
    0x7ff0000000000000,
    0xfff0000000000000,
    0x7ff8000000000123,
    0xfff8000000000456,
    0x7ff0000000000789,
    0xfff00000000000ab,
};
static const uint32_t special32[] = {
    0,          0x80000000, 1,          0x807fffff, 0x00800000, 0x3f800000, 0xbf800001,
    0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00123, 0xffc00456, 0x7f800789, 0xff8000ab,
};
enum { N_SPECIAL = sizeof special32 / sizeof *special32 };

static uint64_t state = 88172645463325252u;

static uint64_t random_bits(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static Vector random_vector(int is_double)
{
    Vector v;
    for (int i = 0; i < 8; i += 2) {
        uint64_t bits = random_bits();
        // Half of them with exponents near one another, so that they do not simply absorb each other.
        if (bits & 1)
            bits = is_double ? (bits & 0x801fffffffffffff) | 0x3fe0000000000000
                             : (bits & 0x83ffffff83ffffff) | 0x3c0000003c000000;
        memcpy(&v.word[i], &bits, 8);
    }
    if (random_bits() % 4 == 0) {
        uint64_t which = random_bits();
        if (is_double)
            memcpy(&v.word[which & 6], &special64[(which >> 8) % N_SPECIAL], 8);
        else
            v.word[which & 7] = special32[(which >> 8) % N_SPECIAL];
    }
    return v;
}

static Vector special_vector(int is_double, int which)
{
    Vector v;
    for (int i = 0; i < 8; i++)
        if (!is_double)
            v.word[i] = special32[which];
        else if (i % 2 == 0)
            memcpy(&v.word[i], &special64[which], 8);
    return v;
}

static uint64_t hash_in(uint64_t hash, const Vector *v, const Instruction *instruction)
{
    // Valgrind clears the rest of the register after a scalar one.
    int n = !strstr(instruction->name, "_s") ? 8 : instruction->is_double ? 2 : 1;
    for (int i = 0; i < n; i++)
        hash = (hash ^ v->word[i]) * 0x100000001b3u;
    return hash;
}

static void run_rounded(const Instruction *instruction, Vector *a, const Vector *b, const Vector *c, unsigned rounding)
{
    unsigned before, during;
    __asm__ volatile("stmxcsr %0" : "=m"(before));
    during = (before & ~0x6000u) | rounding << 13;
    __asm__ volatile("ldmxcsr %0" : : "m"(during));
    instruction->run(a, b, c);
    __asm__ volatile("ldmxcsr %0" : : "m"(before));
}

int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 0;
    for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++) {
        const Instruction *instruction = &instructions[i];
        for (unsigned rounding = 0; rounding < 4; rounding++) {
            uint64_t random = 0xcbf29ce484222325u, special = random;
            for (long j = 0; j < n; j++) {
                Vector a = random_vector(instruction->is_double), b = random_vector(instruction->is_double);
                Vector c = random_vector(instruction->is_double);
                run_rounded(instruction, &a, &b, &c, rounding);
                random = hash_in(random, &a, instruction);
            }
            for (int j = 0; j < N_SPECIAL * N_SPECIAL * N_SPECIAL; j++) {
                Vector a = special_vector(instruction->is_double, j % N_SPECIAL);
                Vector b = special_vector(instruction->is_double, j / N_SPECIAL % N_SPECIAL);
                Vector c = special_vector(instruction->is_double, j / N_SPECIAL / N_SPECIAL);
                run_rounded(instruction, &a, &b, &c, rounding);
                special = hash_in(special, &a, instruction);
            }
            printf("%s %u %016lx %016lx\n", instruction->name, rounding, random, special);
        }
    }
    return 0;
}
