// SPDX-License-Identifier: GPL-2.0-or-later
//
// The stubs' table, and their code, which leads to jm_native_call (cuda.c) with the stub's slot in a register; see
// stubs.h. The stubs are part of the library, so no memory needs to be writable and executable.

#include "host/native/stubs.h"
#include "host/native/cuda_functions.h"

// Slots are a hash table by row and address, in one word, so that all of it is done without a lock: fork finds none
// held, and the loader may hold its own.
#define N_SLOTS     2048
#define STUB_BYTES  16
#define ROW_SHIFT   56 // addresses of the program have 56 bits at most
#define SLOT_EMPTY  0
#define SLOT_FREED  1
#define TARGET_MASK (((UWord)1 << ROW_SHIFT) - 1)

_Static_assert(NATIVE_N_ROWS < 1 << (64 - ROW_SHIFT), "a row fits into a slot's upper byte");

UWord jm_native_slots[N_SLOTS];

#define TEXT_OF(x) #x
#define AS_TEXT(x) TEXT_OF(x)

// clang-format off
#if defined(__x86_64__)
#define STUB                                                  \
    "    endbr64\n"                                           \
    "    leaq jm_native_slots+8*jm_native_slot(%rip), %r11\n" \
    "    jmp jm_native_call\n"
#elif defined(__aarch64__)
#define STUB                                                           \
    "    hint #34\n" /* bti c */                                       \
    "    adrp x16, jm_native_slots+8*jm_native_slot\n"                 \
    "    add x16, x16, :lo12:jm_native_slots+8*jm_native_slot\n"       \
    "    b jm_native_call\n"
#endif

__asm__(".text\n"
        ".balign 64\n"
        "jm_native_stubs:\n"
        ".cfi_startproc\n"
        ".set jm_native_slot, 0\n"
        ".rept " AS_TEXT(N_SLOTS) "\n"
        "    .balign " AS_TEXT(STUB_BYTES) "\n"
        STUB
        "    .set jm_native_slot, jm_native_slot+1\n"
        ".endr\n"
        ".balign " AS_TEXT(STUB_BYTES) "\n"
        ".cfi_endproc\n");
// clang-format on

static inline Addr first_stub(void)
{
    Addr address;
#if defined(__x86_64__)
    __asm__("leaq jm_native_stubs(%%rip), %0" : "=r"(address));
#elif defined(__aarch64__)
    __asm__("adrp %0, jm_native_stubs\n\tadd %0, %0, :lo12:jm_native_stubs" : "=r"(address));
#endif
    return address;
}

static inline UInt slot_of(Addr stub)
{
    UWord offset = stub - first_stub();
    return offset < N_SLOTS * STUB_BYTES ? (UInt)(offset / STUB_BYTES) : N_SLOTS;
}

static inline Addr stub_at(UInt slot)
{
    return first_stub() + (Addr)slot * STUB_BYTES;
}

Bool jm_native_is_stub(Addr address)
{
    return slot_of(address) < N_SLOTS;
}

const HChar *jm_native_stub_name(Addr address)
{
    UInt slot = slot_of(address);
    return slot < N_SLOTS ? jm_native_functions[jm_native_slots[slot] >> ROW_SHIFT].name : NULL;
}

// A freed slot keeps its row, since its stub has been named.
static Bool is_free(UWord found, UWord content)
{
    return found == SLOT_EMPTY || ((found & TARGET_MASK) == SLOT_FREED && found >> ROW_SHIFT == content >> ROW_SHIFT);
}

// The slot of this content; N_SLOTS if all are taken.
static UInt find_slot(UWord content)
{
    UInt first = (UInt)((content ^ content >> ROW_SHIFT) * 0x9e3779b97f4a7c15ULL >> 53);
    UInt place = N_SLOTS;
    for (UInt i = 0; i < N_SLOTS; i++) {
        UInt slot = (first + i) % N_SLOTS;
        UWord found = __atomic_load_n(&jm_native_slots[slot], __ATOMIC_ACQUIRE);
        if (found == content)
            return slot;
        if (place == N_SLOTS && is_free(found, content))
            place = slot;
        if (found == SLOT_EMPTY)
            break;
    }
    if (place == N_SLOTS)
        return N_SLOTS;
    UWord expected = __atomic_load_n(&jm_native_slots[place], __ATOMIC_ACQUIRE);
    if (is_free(expected, content) && __atomic_compare_exchange_n(&jm_native_slots[place], &expected, content, False,
                                                                  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return place;
    return find_slot(content); // another thread was faster
}

Addr jm_native_stub(Int row, Addr real)
{
    if (real <= SLOT_FREED || real & ~TARGET_MASK || jm_native_is_stub(real))
        return real;
    UInt slot = find_slot((UWord)row << ROW_SHIFT | real);
    return slot < N_SLOTS ? stub_at(slot) : real;
}

Addr jm_native_stub_that_calls(Addr real)
{
    for (UInt slot = 0; real > SLOT_FREED && slot < N_SLOTS; slot++)
        if ((jm_native_slots[slot] & TARGET_MASK) == real)
            return stub_at(slot);
    return 0;
}

// ---- entries that are not bound --------------------------------------------------------------------------------

static UWord *unbound_places[N_SLOTS];
static UInt n_inside[N_SLOTS]; // calls through such a stub now
static UInt n_inside_any;

Addr jm_native_stub_unbound(Int row, Addr unbound, UWord *place)
{
    UInt slot = find_slot((UWord)row << ROW_SHIFT | unbound);
    if (slot == N_SLOTS)
        return unbound;
    __atomic_store_n(&unbound_places[slot], place, __ATOMIC_RELEASE);
    return stub_at(slot);
}

void jm_native_stubs_forget(Bool (*has_gone)(Addr address))
{
    for (UInt slot = 0; slot < N_SLOTS; slot++) {
        Addr target = jm_native_slots[slot] & TARGET_MASK;
        if (target > SLOT_FREED && has_gone(target)) {
            __atomic_store_n(&unbound_places[slot], NULL, __ATOMIC_RELEASE);
            __atomic_store_n(&jm_native_slots[slot], (jm_native_slots[slot] & ~TARGET_MASK) | SLOT_FREED,
                             __ATOMIC_RELEASE);
        }
    }
}

static StubTarget target_in(UInt slot)
{
    UWord content = __atomic_load_n(&jm_native_slots[slot], __ATOMIC_ACQUIRE);
    return (StubTarget){(UInt)(content >> ROW_SHIFT), content & TARGET_MASK, stub_at(slot)};
}

// The function that the stub calls. If the loader has bound its entry, put the stub of that function there.
static StubTarget bind(UInt slot)
{
    StubTarget target = target_in(slot);
    UWord *place = __atomic_load_n(&unbound_places[slot], __ATOMIC_ACQUIRE);
    if (!place)
        return target;
    UWord found = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (found == stub_at(slot) || found == target.real)
        return target;
    if (jm_native_is_stub(found))
        return target_in(slot_of(found));
    __atomic_store_n(place, jm_native_stub((Int)target.row, found), __ATOMIC_RELEASE);
    target.real = found;
    return target;
}

// The loader binds an entry before the function begins, so a call inside it is an occasion to look: other threads then
// call the stub again while this first call, which may take seconds, goes on.
static void bind_those_inside(void)
{
    for (UInt slot = 0; slot < N_SLOTS; slot++)
        if (n_inside[slot])
            bind(slot);
}

StubTarget jm_native_stub_begins(const UWord *slot)
{
    UInt i = (UInt)(slot - jm_native_slots);
    if (UNLIKELY(__atomic_load_n(&n_inside_any, __ATOMIC_RELAXED)))
        bind_those_inside();
    if (UNLIKELY(unbound_places[i] != NULL)) {
        __atomic_add_fetch(&n_inside[i], 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&n_inside_any, 1, __ATOMIC_RELAXED);
    }
    return bind(i);
}

StubTarget jm_native_stub_ends(const UWord *slot)
{
    UInt i = (UInt)(slot - jm_native_slots);
    if (UNLIKELY(unbound_places[i] != NULL)) {
        __atomic_sub_fetch(&n_inside[i], 1, __ATOMIC_RELAXED);
        __atomic_sub_fetch(&n_inside_any, 1, __ATOMIC_RELAXED);
    }
    return bind(i);
}
