// SPDX-License-Identifier: GPL-2.0-or-later
//
// Executing an unwind table's instructions at each frame would cost too much, so its rows are condensed into rules; see
// rule.h. A row that needs more than the stack and frame pointers becomes RULE_OTHER, for step.c.

#include "unwind/rule.h"
#include "base/libc.h"
#include "host/host.h"
#include "unwind/code.h"
#include "unwind/table.h"

UnwindRule jm_unwind_rules[JM_N_RULES];

// Range of all looked-up addresses outside files; generated code, mostly.
static Addr generated_low = ~(Addr)0, generated_high;

Bool jm_set_slots(UnwindSlots *slots, Long fp, Long ra)
{
#if defined(__x86_64__)
    slots->fp = fp;
    return slots->fp == fp && ra == jm_ra_slot(slots);
#else
    *slots = (UnwindSlots){fp, ra};
    return slots->fp == fp && slots->ra == ra;
#endif
}

// Sets `*slot` as in UnwindSlots. False if the register is neither kept nor in a slot.
static Bool find_slot(const UnwindRow *row, UInt reg, Int *slot)
{
    Long offset = row->value[reg];
    *slot = row->where[reg] == AT_CFA ? offset : 0;
    return row->where[reg] == KEPT ||
           (row->where[reg] == AT_CFA && offset == *slot && *slot < 0 && *slot % (Int)sizeof(Addr) == 0);
}

static UnwindRuleType find_rule(Addr ip, UnwindRule *rule)
{
    UnwindRow row;
    Int fp, ra;
    if (!jm_is_in_file(ip)) {
        generated_low = ip < generated_low ? ip : generated_low;
        generated_high = ip > generated_high ? ip : generated_high;
        return RULE_NO_TABLE;
    }
    if (!jm_unwind_row(ip, &row))
        return host_may_step(ip) ? RULE_OTHER : RULE_NO_TABLE;
    if (row.where[row.return_address] == UNDEFINED)
        return RULE_OUTERMOST;
    if (row.is_signal_frame || row.return_address != JM_REG_RA || row.where[JM_REG_SP] != KEPT || row.cfa_expression ||
        row.cfa_offset != (Int)row.cfa_offset || row.cfa_offset < 0 || !find_slot(&row, JM_REG_FP, &fp) ||
        !find_slot(&row, JM_REG_RA, &ra) || !jm_set_slots(&rule->slots, fp, ra))
        return RULE_OTHER;
    rule->cfa_offset = row.cfa_offset;
    return row.cfa_register == JM_REG_SP ? RULE_FROM_SP : row.cfa_register == JM_REG_FP ? RULE_FROM_FP : RULE_OTHER;
}

void jm_make_unwind_rule(Addr ip, UnwindRule *rule)
{
    *rule = (UnwindRule){.ip = ip};
    rule->type = find_rule(ip, rule);
}

void jm_unwind_rules_forget(void)
{
    memset(jm_unwind_rules, 0, sizeof jm_unwind_rules);
}

Bool jm_unwind_rules_concern(Addr start, SizeT bytes)
{
    return start <= generated_high && generated_low < start + bytes;
}

void jm_unwind_rules_object_mapped(void)
{
    for (UInt i = 0; i < JM_N_RULES; i++)
        if (jm_unwind_rules[i].type == RULE_NO_TABLE)
            jm_unwind_rules[i].ip = 0;
}

UInt jm_n_unwind_rules(void)
{
    UInt n = 0;
    for (UInt i = 0; i < JM_N_RULES; i++)
        n += jm_unwind_rules[i].ip != 0;
    return n;
}
