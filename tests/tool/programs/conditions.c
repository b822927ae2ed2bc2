/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Each condition of x86-64 right after each kind of arithmetic of each size, for numbers at the edges: asked for as a
 * number and by a jump. A line a pair of numbers, sixteen bits an operation and way of asking. */
#include <stdint.h>
#include <stdio.h>

static const uint64_t NUMBERS[] = {
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x7fffffff,
    0x80000000,
    0xffffffff,
    0x100000000,
    INT64_MAX,
    1ull << 63,
    UINT64_MAX,
    UINT64_MAX - 1,
    0x8000000080008080,
    0x7fffffff7fff7f7f,
    0xffffffffffffff00,
};

#define SET(operation, name, number)                                                                                   \
    {                                                                                                                  \
        uint64_t left = a;                                                                                             \
        uint8_t is;                                                                                                    \
        __asm__ volatile("add $0, %1\n\t" operation "\n\tset" name " %0" : "=&r"(is), "+&r"(left) : "r"(b) : "cc");    \
        conditions |= (unsigned)is << number;                                                                          \
    }

#define JUMP(operation, name, number)                                                                                  \
    {                                                                                                                  \
        uint64_t left = a;                                                                                             \
        unsigned is = 1;                                                                                               \
        __asm__ volatile("add $0, %1\n\t" operation "\n\tj" name " 1f\n\tmov $0, %0\n1:"                               \
                         : "+&r"(is), "+&r"(left)                                                                      \
                         : "r"(b)                                                                                      \
                         : "cc");                                                                                      \
        conditions |= is << number;                                                                                    \
    }

#define EACH(ASK, operation)                                                                                           \
    {                                                                                                                  \
        unsigned conditions = 0;                                                                                       \
        ASK(operation, "o", 0)                                                                                         \
        ASK(operation, "no", 1)                                                                                        \
        ASK(operation, "b", 2)                                                                                         \
        ASK(operation, "ae", 3)                                                                                        \
        ASK(operation, "z", 4)                                                                                         \
        ASK(operation, "nz", 5)                                                                                        \
        ASK(operation, "be", 6)                                                                                        \
        ASK(operation, "a", 7)                                                                                         \
        ASK(operation, "s", 8)                                                                                         \
        ASK(operation, "ns", 9)                                                                                        \
        ASK(operation, "p", 10)                                                                                        \
        ASK(operation, "np", 11)                                                                                       \
        ASK(operation, "l", 12)                                                                                        \
        ASK(operation, "ge", 13)                                                                                       \
        ASK(operation, "le", 14)                                                                                       \
        ASK(operation, "g", 15)                                                                                        \
        printf(" %04x", conditions);                                                                                   \
    }

#define BOTH(operation) EACH(SET, operation) EACH(JUMP, operation)

#define SIZES(operation)                                                                                               \
    BOTH(operation "b %b2, %b1")                                                                                       \
    BOTH(operation "w %w2, %w1")                                                                                       \
    BOTH(operation "l %k2, %k1")                                                                                       \
    BOTH(operation "q %2, %1")

#define SIZES_OF_ONE(operation)                                                                                        \
    BOTH(operation "b %b1")                                                                                            \
    BOTH(operation "w %w1")                                                                                            \
    BOTH(operation "l %k1")                                                                                            \
    BOTH(operation "q %1")

static void arithmetic(uint64_t a, uint64_t b)
{
    SIZES("add")
    SIZES("sub")
    SIZES("cmp")
    SIZES("stc\n\tadc")
    SIZES("stc\n\tsbb")
}

static void logic(uint64_t a, uint64_t b)
{
    SIZES("and")
    SIZES("test")
    SIZES("or")
    SIZES("xor")
}

static void counting(uint64_t a, uint64_t b)
{
    SIZES_OF_ONE("inc")
    SIZES_OF_ONE("dec")
    SIZES_OF_ONE("neg")
    SIZES_OF_ONE("shl")
    SIZES_OF_ONE("shr")
    SIZES_OF_ONE("sar")
    SIZES_OF_ONE("rol")
}

int main(void)
{
    const unsigned n = sizeof NUMBERS / sizeof *NUMBERS;
    for (unsigned i = 0; i < n * n; i++) {
        const uint64_t a = NUMBERS[i / n], b = NUMBERS[i % n];
        printf("%016llx %016llx", (unsigned long long)a, (unsigned long long)b);
        arithmetic(a, b);
        logic(a, b);
        counting(a, b);
        printf("\n");
    }
    return 0;
}
