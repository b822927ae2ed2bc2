// SPDX-License-Identifier: GPL-2.0-or-later
//
// Rows of an object file's unwind table (.eh_frame; DWARF 5, section 6.4, and the LSB's "Exception Frames"). A row
// belongs to a code address and locates the caller's frame and registers. .eh_frame is mapped with the program, because
// exceptions need it, so no file is read.
//
// A row is condensed into a rule, which is cached by code address: most addresses need little to find the caller. Its
// frame begins at an offset from the stack or frame pointer, and the return address and its frame pointer are in slots
// at an offset from there, or still in their registers.

#pragma once

#include "base/table.h"
#include "unwind/dwarf.h"

// Location of the caller's value of a register. CFA: the canonical frame address, at which the caller's frame begins.
typedef enum {
    KEPT,          // still in the register
    UNDEFINED,     // lost; a frame without a return address is the outermost
    AT_CFA,        // saved at an offset from the CFA
    IS_CFA,        // the CFA plus an offset
    IN_REGISTER,   // in another register
    AT_EXPRESSION, // saved at an expression's value; the expression starts with its length and gets the CFA
    IS_EXPRESSION, // an expression's value
} Where;

typedef struct {
    UChar where[JM_N_REGISTERS]; // a Where
    Long value[JM_N_REGISTERS];  // an offset, a register, or an expression's address
    ULong cfa_register;
    Long cfa_offset;
    Addr cfa_expression; // 0: use cfa_register and cfa_offset
    UInt return_address; // a register number, DWARF's return address column
    Bool is_signal_frame;
} UnwindRow;

// Fills `*row`. False if no table covers the address, or its entry has an unknown form.
Bool jm_unwind_row(Addr ip, UnwindRow *row);

// Saved registers of the caller, as byte offsets from the start of its frame: negative multiples of eight, or 0 if
// still in the register.
typedef struct {
    Short fp, ra;
} UnwindSlots;

// False if the offsets do not fit.
static inline Bool jm_set_slots(UnwindSlots *slots, Long fp, Long ra)
{
    *slots = (UnwindSlots){fp, ra};
    return slots->fp == fp && slots->ra == ra;
}

typedef enum {
    RULE_OTHER,    // the table needs more than offsets, or only the core has one
    RULE_NO_TABLE, // neither the recorder nor the core has a table for the address
    RULE_OUTERMOST,
    RULE_FROM_SP,
    RULE_FROM_FP
} UnwindRuleType;

typedef struct {
    Addr ip;
    UInt cfa_offset : 29; // start of the caller's frame, in bytes from the stack or frame pointer
    UInt type : 3;        // UnwindRuleType
    UnwindSlots slots;
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
