// SPDX-License-Identifier: GPL-2.0-or-later
//
// Properties of each kind, from the list in kind.h.

#include "attribution/kind.h"

#define JM_KIND_ROW(id, name, side, is_sampled) {name, side, is_sampled},
const KindProperties jm_kinds[N_KINDS] = {JM_KINDS(JM_KIND_ROW)};
