// SPDX-License-Identifier: GPL-2.0-or-later
//
// Benchmark: a program that computes and allocates nothing: integers, a sort, products of matrices.
//
//     idle ROUNDS

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define N_NUMBERS 20000
#define N         120

static uint32_t numbers[N_NUMBERS];
static double a[N][N], b[N][N], c[N][N];

static uint32_t random_number(void)
{
    static uint32_t state = 1; // Marsaglia's xorshift
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static void sort(uint32_t *from, long n)
{
    while (n > 1) {
        uint32_t pivot = from[(n - 1) / 2];
        long i = -1, j = n;
        for (;;) {
            do
                i++;
            while (from[i] < pivot);
            do
                j--;
            while (from[j] > pivot);
            if (i >= j)
                break;
            uint32_t swapped = from[i];
            from[i] = from[j];
            from[j] = swapped;
        }
        sort(from, j + 1);
        from += j + 1;
        n -= j + 1;
    }
}

int main(int argc, char **argv)
{
    double sum = 0;
    for (int round = argc > 1 ? atoi(argv[1]) : 100; round > 0; round--) {
        for (long i = 0; i < N_NUMBERS; i++)
            numbers[i] = random_number();
        sort(numbers, N_NUMBERS);
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                a[i][j] = numbers[i * N + j];
                b[i][j] = random_number() % 7;
                c[i][j] = 0;
            }
        for (int i = 0; i < N; i++)
            for (int k = 0; k < N; k++)
                for (int j = 0; j < N; j++)
                    c[i][j] += a[i][k] * b[k][j];
        sum += c[round % N][N / 2];
    }
    printf("%g\n", sum);
    return 0;
}
