// SPDX-License-Identifier: GPL-2.0-or-later
//
// Fused multiply-adds and nothing else: four independent chains of 256-bit ones, so many rounds of them. Releases of
// Valgrind differ a hundredfold here: some compute each lane in software, others emit the instruction.

#include <stdio.h>
#include <stdlib.h>

typedef float Lanes __attribute__((vector_size(32)));

int main(int argc, char **argv)
{
    Lanes sum[4], x, y;
    for (int lane = 0; lane < 8; lane++) {
        x[lane] = 1 + 1e-6f * lane * argc;
        y[lane] = 1e-3f;
        for (int chain = 0; chain < 4; chain++)
            sum[chain][lane] = chain;
    }
    for (long i = atol(argv[1]); i > 0; i--)
        for (int chain = 0; chain < 4; chain++)
            __asm__ volatile("vfmadd213ps %2, %1, %0" : "+x"(sum[chain]) : "x"(x), "x"(y));
    for (int lane = 0; lane < 8; lane++)
        printf("%a\n", sum[0][lane] + sum[1][lane] + sum[2][lane] + sum[3][lane]);
    return 0;
}
