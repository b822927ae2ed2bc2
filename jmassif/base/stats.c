// SPDX-License-Identifier: GPL-2.0-or-later
//
// Prints what the recorder keeps; see stats.h.

#include "base/stats.h"
#include "ledger/account.h"
#include "heap/blocks.h"
#include "cuda/device_blocks.h"
#include "driver/driver.h"
#include "snapshot/exhaustion.h"
#include "heap/heap.h"
#include "ledger/ledger.h"
#include "stack/owner.h"
#include "pages/pages.h"
#include "ledger/pending.h"
#include "stack/python.h"
#include "snapshot/region.h"
#include "stack/scope.h"
#include "heap/slab.h"
#include "stack/stack.h"
#include "stack/symbol.h"
#include "cuda/tensor.h"
#include "trace/trace.h"
#include "stack/unwind.h"

static SizeT total;

void jm_stats_row(const HChar *centre, const HChar *what, ULong n, SizeT bytes)
{
    if (bytes == 0)
        return;
    total += bytes;
    VG_(dmsg)(" jmassif: %'14lu bytes in %-18s %'12llu %s\n", bytes, centre, n, what);
}

void jm_stats_table(const HChar *what, const Table *t)
{
    jm_stats_row(t->name, what, t->n - 1, t->n_chunks * ((SizeT)JM_CHUNK * t->record_bytes + sizeof *t->chunks));
}

void jm_stats_index(const Index *x)
{
    if (x->slots)
        jm_stats_row(x->name, "entries of an index", x->used, ((SizeT)x->mask + 1) * sizeof *x->slots);
}

void jm_stats_array(const HChar *centre, const HChar *what, const XArray *a, SizeT each)
{
    if (a)
        jm_stats_row(centre, what, VG_(sizeXA)(a), VG_(sizeXA)(a) * each);
}

void jm_stats_print(void)
{
    total = 0;
    jm_blocks_stats();
    jm_slab_stats();
    jm_heap_stats();
    jm_stack_stats();
    jm_unwind_stats();
    jm_symbol_stats();
    jm_account_stats();
    jm_ledger_stats();
    jm_python_stats();
    jm_owner_stats();
    jm_pages_stats();
    jm_driver_stats();
    jm_scope_stats();
    jm_region_stats();
    jm_device_blocks_stats();
    jm_tensor_stats();
    jm_exhaustion_stats();
    jm_pending_stats();
    jm_trace_stats();
    jm_trace_file_stats();
    VG_(dmsg)(" jmassif: %'14lu bytes in all\n", total);
}
