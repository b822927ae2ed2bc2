// SPDX-License-Identifier: GPL-2.0-or-later
//
// Alignment of the program's vector registers. The registers are in memory, one state per thread in a single table,
// which the core aligns to 16 bytes: enough for VEX. But in about half of all runs every second 256-bit register (AVX),
// or every one, then crosses a line of the processor's cache; the length of an option decides which half. A loop of
// multiply-adds takes 1.06 times as long in those runs. So the linker leads the table's allocation here (--wrap), and
// the main thread's registers are at a multiple of 32, with those of every other thread or of all threads.

#include "host/valgrind/guest_state.h"

#if defined(VGA_amd64)

// Facts that no public header has: the core's name of this allocation, and the layout of a thread's state, two 32-bit
// words and then the registers, aligned to 16. If a release changed them, the table would be at the core's place or
// close to it, still aligned to 16. jm_guest_stats checks.
#define TABLE        "init_Threads"
#define IN_THREAD    16
#define VECTOR_BYTES 32
#define MAIN_THREAD  1

static const UChar *threads;
static SizeT thread_bytes;

void *__real_vgPlain_arena_memalign(Int arena, const HChar *centre, SizeT alignment, SizeT bytes);
void *__wrap_vgPlain_arena_memalign(Int arena, const HChar *centre, SizeT alignment, SizeT bytes);

static Addr registers_in(const UChar *table)
{
    return (Addr)table + MAIN_THREAD * thread_bytes + IN_THREAD;
}

static SizeT past_vector(const UChar *table)
{
    return (registers_in(table) + offsetof(VexGuestArchState, guest_YMM0)) % VECTOR_BYTES;
}

void *__wrap_vgPlain_arena_memalign(Int arena, const HChar *centre, SizeT alignment, SizeT bytes)
{
    if (alignment > VECTOR_BYTES || !VG_STREQ(centre, TABLE))
        return __real_vgPlain_arena_memalign(arena, centre, alignment, bytes);
    UChar *room = __real_vgPlain_arena_memalign(arena, centre, VECTOR_BYTES, bytes + VECTOR_BYTES); // never freed
    thread_bytes = bytes / VG_N_THREADS;
    SizeT past = past_vector(room);
    threads = past % alignment == 0 && past ? room + (VECTOR_BYTES - past) : room;
    return (void *)threads;
}

void jm_guest_stats(void)
{
    const VexGuestArchState *registers = (const void *)registers_in(threads);
    if (threads && registers->guest_RSP == VG_(get_SP)(MAIN_THREAD))
        VG_(umsg)("vector registers: %lu bytes past a multiple of %d\n", past_vector(threads), VECTOR_BYTES);
    else
        VG_(umsg)("vector registers: where they lie is not known\n");
}

#else

void jm_guest_stats(void) {}

#endif
