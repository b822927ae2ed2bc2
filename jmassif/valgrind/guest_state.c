// SPDX-License-Identifier: GPL-2.0-or-later
//
// The program's registers lie in memory, a state for each thread in one table, which the core aligns to 16 bytes: all
// that VEX asks for. Of the 256-bit registers (AVX) every second or every one then lies across two lines of the
// processor's cache in about half of all runs; which half, the length of an option decides. A loop of multiply-adds
// takes 1.06 times as long in those. So the linker leads the table's allocation here (--wrap), and the main thread's
// registers come to a multiple of 32, with every other thread's or all of them.

#include "valgrind/guest_state.h"

#if defined(VGA_amd64)

// What no public header says: what the core calls this allocation, and that a thread's state begins with two words of
// 32 bits and its registers, aligned to 16. If a release changed it, the table would lie as the core had it or a little
// elsewhere, aligned to 16 still. jm_guest_stats looks.
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
