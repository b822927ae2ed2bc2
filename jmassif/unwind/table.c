// SPDX-License-Identifier: GPL-2.0-or-later
//
// .eh_frame encodes a function's rows as instructions. A function's entry (FDE) refers to a common entry (CIE), and the
// instructions of both are run from the function's start up to the wanted address; see table.h. An unknown
// instruction ends the run without a row, because a wrong row is worse.

#include "unwind/table.h"
#include "base/client_memory.h"
#include "base/libc.h"
#include "base/text.h"
#include "host/host.h"
#include "symbols/elf.h"

// Opens the table's entry at `address`, behind its length field. 64-bit DWARF lengths fail.
static Bool open_entry(Addr address, DwarfReader *r)
{
    UInt bytes;
    if (!jm_read_uint(address, &bytes) || bytes < 4 || bytes >= 0xfffffff0 || !jm_is_readable(address + 4, bytes))
        return False;
    *r = (DwarfReader){address + 4, address + 4 + bytes, False};
    return True;
}

// ---- encoded pointers (LSB, "DWARF Extensions") --------------------------------------------------------------

#define FORMAT   0x0f
#define RELATIVE 0x70
#define PCREL    0x10
#define INDIRECT 0x80
#define OMIT     0xff

static Addr take_encoded(DwarfReader *r, UInt encoding)
{
    Addr at = r->at, value;
    switch (encoding & FORMAT) {
    case 0x00: // absptr
    case 0x04: // udata8
    case 0x0c: // sdata8
        value = jm_dwarf_take(r, 8);
        break;
    case 0x03: // udata4
        value = jm_dwarf_take(r, 4);
        break;
    case 0x0b: // sdata4
        value = (Long)(Int)jm_dwarf_take(r, 4);
        break;
    default:
        r->failed = True;
        return 0;
    }
    return (encoding & RELATIVE) == PCREL && value ? at + value : value;
}

// Takes a code address, which may be absolute or relative to its own place; other encodings fail.
static Addr take_address(DwarfReader *r, UInt encoding)
{
    UInt relative = encoding & RELATIVE;
    Addr value = take_encoded(r, encoding);
    if (encoding == OMIT || (relative && relative != PCREL) || (encoding & INDIRECT && !jm_read_word(value, &value)))
        r->failed = True;
    return value;
}

// ---- entries -------------------------------------------------------------------------------------------------

// A common entry (CIE).
typedef struct {
    ULong code_align;
    Long data_align;
    UInt return_address;
    UInt encoding; // encoding of code addresses
    DwarfReader instructions;
    Bool has_augmentation;
    Bool is_signal_frame;
} Common;

static void read_augmentation(DwarfReader *r, const HChar *letters, Common *c)
{
    for (const HChar *a = letters; *a && !r->failed; a++) {
        switch (*a) {
        case 'R':
            c->encoding = jm_dwarf_take(r, 1);
            break;
        case 'L': // encoding of exception tables' addresses
            jm_dwarf_take(r, 1);
            break;
        case 'P': // the personality routine
            take_encoded(r, jm_dwarf_take(r, 1));
            break;
        case 'S':
            c->is_signal_frame = True;
            break;
        case 'B': // arm64: return addresses are signed with key B; see execute()
        case 'G': // arm64: the stack is tagged
            break;
        default:
            r->failed = True;
        }
    }
}

static Bool read_common(Addr address, Common *c)
{
    DwarfReader r;
    if (!open_entry(address, &r) || jm_dwarf_take(&r, 4) != 0)
        return False;
    UInt version = jm_dwarf_take(&r, 1);
    HChar augmentation[8];
    UInt n = 0;
    do {
        augmentation[n] = jm_dwarf_take(&r, 1);
    } while (augmentation[n] && ++n < sizeof augmentation && !r.failed);
    if (n == sizeof augmentation || (version != 1 && version != 3 && version != 4))
        return False;
    *c = (Common){.has_augmentation = augmentation[0] == 'z'};
    if (augmentation[0] && !c->has_augmentation)
        return False;
    if (version == 4 && (jm_dwarf_take(&r, 1) != sizeof(Addr) || jm_dwarf_take(&r, 1) != 0)) // no segment selectors
        return False;
    c->code_align = jm_dwarf_take_uleb(&r);
    c->data_align = jm_dwarf_take_sleb(&r);
    c->return_address = version == 1 ? jm_dwarf_take(&r, 1) : jm_dwarf_take_uleb(&r);
    if (c->return_address >= JM_N_REGISTERS)
        return False;
    if (c->has_augmentation) {
        ULong bytes = jm_dwarf_take_uleb(&r);
        DwarfReader letters = r;
        jm_dwarf_skip(&r, bytes);
        read_augmentation(&letters, augmentation + 1, c);
        if (letters.failed)
            return False;
    }
    c->instructions = r;
    return !r.failed;
}

// ---- instructions --------------------------------------------------------------------------------------------

#define MAX_REMEMBERED 8

typedef struct {
    const Common *common;
    UnwindRow *row;
    UnwindRow initial;
    UnwindRow remembered[MAX_REMEMBERED];
    UInt n_remembered;
    Addr location;
} RowMachine;

static void set(RowMachine *m, ULong reg, Where where, Long value)
{
    if (reg < JM_N_REGISTERS) { // others are, for example, vector registers
        m->row->where[reg] = where;
        m->row->value[reg] = value;
    }
}

static void restore(RowMachine *m, ULong reg)
{
    if (reg < JM_N_REGISTERS)
        set(m, reg, m->initial.where[reg], m->initial.value[reg]);
}

// Multiplies unsigned: a damaged table may overflow, and signed overflow is undefined.
static Long scaled(ULong number, Long unit)
{
    return (Long)(number * (ULong)unit);
}

// The address of an expression, which is skipped.
static Addr take_expression(DwarfReader *r)
{
    Addr at = r->at;
    jm_dwarf_skip(r, jm_dwarf_take_uleb(r));
    return at;
}

// Executes an instruction of the locations of registers. The low six bits of some are their first operand.
static Bool locate(RowMachine *m, DwarfReader *r, UInt op)
{
    const Long unit = m->common->data_align;
    const UInt reg = op & 0xc0 ? op & 0x3f : jm_dwarf_take_uleb(r);
    switch (op) {
    case 0x05:          // offset_extended
    case 0x80 ... 0xbf: // offset
        set(m, reg, AT_CFA, scaled(jm_dwarf_take_uleb(r), unit));
        return True;
    case 0x06:          // restore_extended
    case 0xc0 ... 0xff: // restore
        restore(m, reg);
        return True;
    case 0x07: // undefined
        set(m, reg, UNDEFINED, 0);
        return True;
    case 0x08: // same_value
        set(m, reg, KEPT, 0);
        return True;
    case 0x09: // register
        set(m, reg, IN_REGISTER, jm_dwarf_take_uleb(r));
        return True;
    case 0x10: // expression
    case 0x16: // val_expression
        set(m, reg, op == 0x10 ? AT_EXPRESSION : IS_EXPRESSION, take_expression(r));
        return True;
    case 0x11: // offset_extended_sf
        set(m, reg, AT_CFA, scaled(jm_dwarf_take_sleb(r), unit));
        return True;
    case 0x14: // val_offset
        set(m, reg, IS_CFA, scaled(jm_dwarf_take_uleb(r), unit));
        return True;
    case 0x15: // val_offset_sf
        set(m, reg, IS_CFA, scaled(jm_dwarf_take_sleb(r), unit));
        return True;
    default:
        return False;
    }
}

static Bool execute(RowMachine *m, DwarfReader *r, UInt op)
{
    const ULong code_unit = m->common->code_align;
    UnwindRow *row = m->row;
    switch (op) {
    case 0x00: // nop
        return True;
    case 0x02: // advance_loc1, advance_loc2, advance_loc4
    case 0x03:
    case 0x04:
        m->location += jm_dwarf_take(r, 1u << (op - 0x02)) * code_unit;
        return True;
    case 0x40 ... 0x7f: // advance_loc
        m->location += (op & 0x3f) * code_unit;
        return True;
    case 0x0a: // remember_state
        if (m->n_remembered == MAX_REMEMBERED)
            return False;
        m->remembered[m->n_remembered++] = *row;
        return True;
    case 0x0b: // restore_state
        if (m->n_remembered == 0)
            return False;
        *row = m->remembered[--m->n_remembered];
        return True;
    case 0x0c: // def_cfa
    case 0x12: // def_cfa_sf
        row->cfa_register = jm_dwarf_take_uleb(r);
        row->cfa_offset =
            op == 0x0c ? (Long)jm_dwarf_take_uleb(r) : scaled(jm_dwarf_take_sleb(r), m->common->data_align);
        row->cfa_expression = 0;
        return True;
    case 0x0d: // def_cfa_register
        row->cfa_register = jm_dwarf_take_uleb(r);
        return True;
    case 0x0e: // def_cfa_offset
        row->cfa_offset = jm_dwarf_take_uleb(r);
        return True;
    case 0x0f: // def_cfa_expression
        row->cfa_expression = take_expression(r);
        return True;
    case 0x13: // def_cfa_offset_sf
        row->cfa_offset = scaled(jm_dwarf_take_sleb(r), m->common->data_align);
        return True;
#if defined(__aarch64__)
    case 0x2c: // AARCH64_negate_ra_state_with_pc
    case 0x2d: // AARCH64_negate_ra_state: ignored, because VEX executes pointer signing as no-op
        return True;
#endif
    case 0x2e: // GNU_args_size
        jm_dwarf_take_uleb(r);
        return True;
    default:
        return locate(m, r, op);
    }
}

// Runs the instructions up to the row of `ip` (DWARF 5, section 6.4.2).
static Bool run(RowMachine *m, DwarfReader r, Addr ip)
{
    while (r.at < r.end && !r.failed) {
        if (!execute(m, &r, jm_dwarf_take(&r, 1)))
            return False;
        if (m->location > ip)
            return !r.failed;
    }
    return !r.failed;
}

Bool jm_unwind_row(Addr ip, UnwindRow *row)
{
    DwarfReader r;
    Addr entry = jm_find_unwind_entry(ip, UNWIND_DESCRIPTION);
    Common common;
    if (!entry || !open_entry(entry, &r))
        return False;
    Addr here = r.at;
    ULong back = jm_dwarf_take(&r, 4);
    if (back == 0 || !read_common(here - back, &common))
        return False;
    Addr start = take_address(&r, common.encoding);
    ULong bytes = take_encoded(&r, common.encoding & FORMAT);
    if (r.failed || ip < start || ip - start >= bytes)
        return False;
    if (common.has_augmentation)
        jm_dwarf_skip(&r, jm_dwarf_take_uleb(&r));
    *row = (UnwindRow){.cfa_register = JM_N_REGISTERS,
                       .return_address = common.return_address,
                       .is_signal_frame = common.is_signal_frame};
    RowMachine m;
    m.common = &common;
    m.row = row;
    m.initial = *row;
    m.n_remembered = 0;
    m.location = 0;
    if (r.failed || !run(&m, common.instructions, ~(Addr)0))
        return False;
    m.initial = *row;
    m.location = start;
    return run(&m, r, ip);
}

// ---- rules ---------------------------------------------------------------------------------------------------

UnwindRule jm_unwind_rules[JM_N_RULES];

// Range of all looked-up addresses outside files; generated code, mostly.
static Addr generated_low = ~(Addr)0, generated_high;

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
    Mapping mapping;
    if (!host_mapping_at(ip, &mapping) || mapping.as != MAPPED_FILE) {
        generated_low = ip < generated_low ? ip : generated_low;
        generated_high = ip > generated_high ? ip : generated_high;
        return RULE_NO_TABLE;
    }
    if (!jm_unwind_row(ip, &row)) {
        // The loader starts the program from assembly without a table: further out are arguments, no caller.
        if (mapping.path && jm_text_matches("ld-*", jm_text_file_name(mapping.path)))
            return RULE_OUTERMOST;
        return host_may_step(ip) ? RULE_OTHER : RULE_NO_TABLE;
    }
    if (row.where[row.return_address] == UNDEFINED)
        return RULE_OUTERMOST;
    if (row.is_signal_frame || row.return_address != JM_REG_RA || row.where[JM_REG_SP] != KEPT || row.cfa_expression ||
        (ULong)row.cfa_offset >> 29 || !find_slot(&row, JM_REG_FP, &fp) || !find_slot(&row, JM_REG_RA, &ra) ||
        !jm_set_slots(&rule->slots, fp, ra))
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
