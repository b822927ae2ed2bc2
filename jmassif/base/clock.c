// SPDX-License-Identifier: GPL-2.0-or-later
//
// The clocks of --time-unit: milliseconds, guest instructions, allocated and freed bytes. Milliseconds are the
// kernel's; the processor's counter decides when a reading is worth its system call.

#include "base/clock.h"
#include "base/kernel.h"
#include "base/options.h"

#include <asm/unistd.h>
#include <time.h>

ULong jm_clock_traffic_bytes, jm_clock_instructions;

static ULong start_ms;
static ULong start_unix_ms;
static ULong cached;

static ULong kernel_ms(UInt clock)
{
    struct timespec now = {0, 0};
    jm_kernel_call(__NR_clock_gettime, clock, (UWord)&now, 0, 0, 0);
    return (ULong)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// Ask the kernel at most READS_PER_MS times per millisecond; in between, the processor's counter shows that too little
// time has passed. The counter's rate is measured against the kernel's clock, once MS_FOR_ITS_SPEED have passed since
// the start. Until then, and without a counter, every reading asks the kernel.
#define READS_PER_MS      16
#define MAX_COUNTS_PER_MS 10000000 // 10 GHz: a higher rate means that the counter jumped
#define MS_FOR_ITS_SPEED  10

static ULong read_ms, read_count; // at the last reading of the kernel's clock
static ULong start_count;
static ULong counts_between_reads; // 0: unknown, or no counter

Bool jm_clock_may_count = True;

static inline ULong counter(void)
{
    if (UNLIKELY(!jm_clock_may_count))
        return 0;
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    ULong count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#endif
}

void jm_clock_init(void)
{
    start_unix_ms = kernel_ms(CLOCK_REALTIME);
    start_ms = kernel_ms(CLOCK_MONOTONIC);
    start_count = counter();
}

ULong jm_clock_ms(void)
{
    ULong count = counter();
    // A counter that went back, on another processor, gives a huge difference and asks the kernel.
    if (count - read_count >= counts_between_reads || !jm_clock_may_count) {
        read_ms = kernel_ms(CLOCK_MONOTONIC) - start_ms;
        read_count = count;
        ULong per_ms = read_ms >= MS_FOR_ITS_SPEED ? (count - start_count) / read_ms : 0;
        counts_between_reads = per_ms <= MAX_COUNTS_PER_MS ? per_ms / READS_PER_MS : 0;
    }
    return read_ms;
}

ULong jm_clock_start_unix_ms(void)
{
    return start_unix_ms;
}

ULong jm_clock_now(void)
{
    const TimeUnit unit = jm_options.time_unit;
    cached = unit == TIME_MS ? jm_clock_ms() : unit == TIME_BYTES ? jm_clock_traffic_bytes : jm_clock_instructions;
    return cached;
}

ULong jm_clock_cached(void)
{
    return jm_options.time_unit == TIME_MS ? cached : jm_clock_now(); // other clocks cost nothing to read
}
