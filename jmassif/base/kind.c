// SPDX-License-Identifier: GPL-2.0-or-later
//
// The table behind kind.h.

#include "base/kind.h"
#include "base/options.h"

#define JM_KIND_ROW(id, name, side) {name, side},
static const struct {
    const HChar *name;
    Side side;
} kinds[N_KINDS] = {JM_KINDS(JM_KIND_ROW)};
#undef JM_KIND_ROW

const HChar *jm_kind_name(Kind kind)
{
    return kinds[kind].name;
}
Side jm_kind_side(Kind kind)
{
    return kinds[kind].side;
}

Bool jm_kind_is_sampled(Kind kind)
{
    return kind == KIND_ANON || kind == KIND_FILE || (kind == KIND_STACK && !jm_options.stacks);
}
