// SPDX-License-Identifier: GPL-2.0-or-later
//
// Full-width balances for accounts with large numbers. Kept apart because few accounts need one; see narrow.h.

#include "ledger/narrow.h"

Table jm_wide_balances = JM_TABLE("jm.account", Balance);

void jm_widen(Account *a)
{
    Balance b = jm_balance_of(a);
    a->wide = jm_table_add(&jm_wide_balances);
    a->is_wide = True;
    *(Balance *)jm_table_at(&jm_wide_balances, a->wide) = b;
}
