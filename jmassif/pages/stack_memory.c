// SPDX-License-Identifier: GPL-2.0-or-later
//
// Counts stack memory in one account without a call stack: the stack pointer moves far too often to unwind at each
// move.

#include "pages/stack_memory.h"
#include "ledger/account.h"

static AccountId account;

void jm_stack_memory_grown(SizeT bytes)
{
    jm_ledger_adjust(account, bytes);
}

void jm_stack_memory_shrunk(SizeT bytes)
{
    // longjmp and stack switches can release more than was counted.
    Long live = jm_ledger_live_bytes(account);
    jm_ledger_adjust(account, -((Long)bytes < live ? (Long)bytes : live));
}

void jm_stack_memory_init(void)
{
    account = jm_account_owned(0, KIND_STACK, JM_OWNER_APP);
}
