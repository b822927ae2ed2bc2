// SPDX-License-Identifier: GPL-2.0-or-later
//
// The three clocks behind --time-unit.

#include "base/clock.h"
#include "base/options.h"

ULong jm_clock_traffic_bytes;

static ULong start_ms;
static ULong start_unix_ms;
static ULong cached;
static ULong n_instructions;

static ULong monotonic_ms(void)
{
    struct vki_timespec now;
    VG_(clock_gettime)(&now, VKI_CLOCK_MONOTONIC);
    return (ULong)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// The kernel's clock takes a system call. The processor's counter tells when it is worth one: a sixteenth of a
// millisecond after the last. How fast it counts is seen from the two, and until they have gone on together for some
// time, and wherever there is no counter, the kernel is always asked.
#define READS_PER_MS      16
#define MAX_COUNTS_PER_MS 10000000 // 10 GHz: more is a counter that has jumped
#define MS_FOR_ITS_SPEED  10

static ULong read_ms, read_count; // when the kernel was asked last
static ULong start_count;
static ULong counts_between_reads; // 0: not known

// A thread may forbid itself the counter, and its children; then reading it would end the program.
#define PR_SET_TSC    26 // linux/prctl.h
#define PR_TSC_ENABLE 1
static Bool is_counter_forbidden;

void jm_clock_before_syscall(UInt number, const UWord *args)
{
    if (number == __NR_prctl && args[0] == PR_SET_TSC && args[1] != PR_TSC_ENABLE)
        is_counter_forbidden = True; // from here on, whatever other threads may do
}

static inline ULong counter(void)
{
    if (UNLIKELY(is_counter_forbidden)) {
        counts_between_reads = 0; // the kernel is asked each time
        return 0;
    }
#if defined(VGA_amd64)
    return __builtin_ia32_rdtsc();
#elif defined(VGA_arm64)
    ULong count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    return 0;
#endif
}

void jm_clock_init(void)
{
    struct vki_timeval now;
    VG_(gettimeofday)(&now, NULL);
    start_unix_ms = (ULong)now.tv_sec * 1000 + now.tv_usec / 1000;
    start_ms = monotonic_ms();
    start_count = counter();
}

ULong jm_clock_ms(void)
{
    ULong count = counter();
    // One that has gone back, on another processor, seems to have gone far.
    if (count - read_count >= counts_between_reads) {
        read_ms = monotonic_ms() - start_ms;
        read_count = count;
        ULong per_ms = read_ms >= MS_FOR_ITS_SPEED && !is_counter_forbidden ? (count - start_count) / read_ms : 0;
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
    switch (jm_options.time_unit) {
    case TIME_MS:
        cached = jm_clock_ms();
        break;
    case TIME_INSTRUCTIONS:
        cached = n_instructions;
        break;
    case TIME_BYTES:
        cached = jm_clock_traffic_bytes;
        break;
    }
    return cached;
}

ULong jm_clock_cached(void)
{
    return jm_options.time_unit == TIME_MS ? cached : jm_clock_now(); // the others cost nothing to read
}

// n_instructions += n, inlined: a load, an add and a store before each place where the superblock can be left.
static void add_count(IRSB *out, UInt n)
{
#if defined(VG_BIGENDIAN)
    const IREndness end = Iend_BE;
#else
    const IREndness end = Iend_LE;
#endif
    IRExpr *address = IRExpr_Const(IRConst_U64((ULong)(Addr)&n_instructions));
    IRTemp before = newIRTemp(out->tyenv, Ity_I64);
    IRTemp after = newIRTemp(out->tyenv, Ity_I64);
    addStmtToIRSB(out, IRStmt_WrTmp(before, IRExpr_Load(end, Ity_I64, address)));
    addStmtToIRSB(out,
                  IRStmt_WrTmp(after, IRExpr_Binop(Iop_Add64, IRExpr_RdTmp(before), IRExpr_Const(IRConst_U64(n)))));
    addStmtToIRSB(out, IRStmt_Store(end, address, IRExpr_RdTmp(after)));
}

IRSB *jm_clock_count_instructions(IRSB *in)
{
    IRSB *out = deepCopyIRSBExceptStmts(in);
    UInt n = 0;
    for (Int i = 0; i < in->stmts_used; i++) {
        IRStmt *st = in->stmts[i];
        if (st->tag == Ist_IMark)
            n++;
        else if (st->tag == Ist_Exit && n) {
            add_count(out, n);
            n = 0;
        }
        addStmtToIRSB(out, st);
    }
    if (n)
        add_count(out, n);
    return out;
}
