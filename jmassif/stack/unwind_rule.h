// SPDX-License-Identifier: GPL-2.0-or-later
//
// What a code address needs to be left for its caller's is little: the caller's frame begins so many bytes above the
// stack or frame pointer, and the return address and the caller's frame pointer are kept in slots of it, or still in
// their registers. Such a rule follows from the object file's unwind table, is read once, and is kept by address.

#ifndef JM_UNWIND_RULE_H
#define JM_UNWIND_RULE_H

#include "base/table.h"
#include "stack/dwarf.h"

#if defined(JM_HAS_UNWINDER)

// Where the caller's registers are kept, as offsets from where its frame begins: multiples of eight, or 0, still in the
// register.
#if defined(VGA_amd64)

// The return address is where calls put it.
typedef struct {
    Short fp;
} UnwindSlots;

static inline Int jm_ra_slot(const UnwindSlots *slots)
{
    return -(Int)sizeof(Addr);
}

#elif defined(VGA_arm64)

typedef struct {
    Int fp, ra;
} UnwindSlots;

static inline Int jm_ra_slot(const UnwindSlots *slots)
{
    return slots->ra;
}

#endif

// False: this processor's slots cannot say that.
Bool jm_set_slots(UnwindSlots *slots, Long fp, Long ra);

typedef enum {
    RULE_OTHER,
    RULE_NO_TABLE, // neither we nor the core have any for the address
    RULE_OUTERMOST,
    RULE_FROM_SP,
    RULE_FROM_FP
} UnwindRuleType;

typedef struct {
    Addr ip;
    Int cfa_offset; // where the caller's frame begins, from the stack or frame pointer
    UnwindSlots slots;
    UChar type; // UnwindRuleType
} UnwindRule;

#define JM_RULE_BITS 14
#define JM_N_RULES   (1u << JM_RULE_BITS)

extern UnwindRule jm_unwind_rules[JM_N_RULES]; // each at the one place that its hash gives it

void jm_make_unwind_rule(Addr ip, UnwindRule *rule);

static inline const UnwindRule *jm_unwind_rule(Addr ip)
{
    UnwindRule *rule = &jm_unwind_rules[jm_place(ip, JM_RULE_BITS)];
    if (UNLIKELY(rule->ip != ip))
        jm_make_unwind_rule(ip, rule);
    return rule;
}

// Code was unmapped.
void jm_unwind_rules_forget(void);

// Whether rules may have been asked for there of addresses in no file.
Bool jm_unwind_rules_concern(Addr start, SizeT bytes);

// An object file's code may lie now where there was no table.
void jm_unwind_rules_object_mapped(void);

UInt jm_n_unwind_rules(void);

#endif

#endif
