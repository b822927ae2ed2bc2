// SPDX-License-Identifier: GPL-2.0-or-later
//
// Properties of each kind, from the list in kind.h.

#include "attribution/kind.h"

#define JM_KIND_ROW(id, name, side, is_sampled) {name, side, is_sampled},
static const struct {
    const HChar *name;
    Side side;
    Bool is_sampled;
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
    return kinds[kind].is_sampled;
}
