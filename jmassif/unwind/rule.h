// SPDX-License-Identifier: GPL-2.0-or-later
//
// A cache of unwind rules by code address. Most addresses need little to find the caller: its frame begins at an offset
// from the stack or frame pointer, and the return address and its frame pointer are in slots at an offset from there,
// or still in their registers. A rule is made once, from the object file's unwind table.

#ifndef JM_UNWIND_RULE_H
#define JM_UNWIND_RULE_H

#include "base/table.h"
#include "unwind/dwarf.h"

// Saved registers of the caller, as byte offsets from the start of its frame: negative multiples of eight, or 0 if
// still in the register.
#if defined(__x86_64__)

// The return address has a fixed slot, because the call instruction pushes it.
typedef struct {
    Short fp;
} UnwindSlots;

static inline Int jm_ra_slot(const UnwindSlots *slots)
{
    return -(Int)sizeof(Addr);
}

#elif defined(__aarch64__)

typedef struct {
    Int fp, ra;
} UnwindSlots;

static inline Int jm_ra_slot(const UnwindSlots *slots)
{
    return slots->ra;
}

#endif

// False if this processor's UnwindSlots cannot represent the offsets.
Bool jm_set_slots(UnwindSlots *slots, Long fp, Long ra);

typedef enum {
    RULE_OTHER,    // the table needs more than offsets, or only the core has one
    RULE_NO_TABLE, // neither the recorder nor the core has a table for the address
    RULE_OUTERMOST,
    RULE_FROM_SP,
    RULE_FROM_FP
} UnwindRuleType;

typedef struct {
    Addr ip;
    Int cfa_offset; // start of the caller's frame, in bytes from the stack or frame pointer
    UnwindSlots slots;
    UChar type; // UnwindRuleType
} UnwindRule;

#define JM_RULE_BITS 14
#define JM_N_RULES   (1u << JM_RULE_BITS)

extern UnwindRule jm_unwind_rules[JM_N_RULES]; // direct-mapped: one slot per hash

void jm_make_unwind_rule(Addr ip, UnwindRule *rule);

// Never NULL. The rule is valid until the next call, which may overwrite its slot.
static inline const UnwindRule *jm_unwind_rule(Addr ip)
{
    UnwindRule *rule = &jm_unwind_rules[jm_place(ip, JM_RULE_BITS)];
    if (UNLIKELY(rule->ip != ip))
        jm_make_unwind_rule(ip, rule);
    return rule;
}

// Call after code was unmapped: drops all rules.
void jm_unwind_rules_forget(void);

// True if a rule may have been looked up in this range for an address outside all files.
Bool jm_unwind_rules_concern(Addr start, SizeT bytes);

// Call after code was mapped: drops rules of type RULE_NO_TABLE, since a table may exist now.
void jm_unwind_rules_object_mapped(void);

UInt jm_n_unwind_rules(void);

#endif
