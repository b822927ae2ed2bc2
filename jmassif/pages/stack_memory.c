// SPDX-License-Identifier: GPL-2.0-or-later
//
// Counts stack memory in one account without a call stack: the stack pointer moves far too often to unwind at each
// move.

#include "pages/stack_memory.h"
#include "ledger/account.h"

static AccountId account;

static void grow(Addr start, SizeT bytes)
{
    jm_ledger_adjust(account, bytes);
}

static void shrink(Addr start, SizeT bytes)
{
    // longjmp and stack switches can release more than was counted.
    Long live = jm_ledger_live_bytes(account);
    jm_ledger_adjust(account, -((Long)bytes < live ? (Long)bytes : live));
}

static void grow_signal(Addr start, SizeT bytes, ThreadId tid)
{
    grow(start, bytes);
}

void jm_stack_memory_init(void)
{
    account = jm_account_owned(0, KIND_STACK, JM_OWNER_APP);
    VG_(track_new_mem_stack)(grow);
    VG_(track_die_mem_stack)(shrink);
    VG_(track_new_mem_stack_signal)(grow_signal);
    VG_(track_die_mem_stack_signal)(shrink);
}
