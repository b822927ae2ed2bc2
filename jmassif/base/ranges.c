// SPDX-License-Identifier: GPL-2.0-or-later
//
// A hash table by size class and by the granule, of the class's size, in which a range begins; see ranges.h.

#include "base/ranges.h"
#include "base/table.h"

#define N_CHAINS (1u << JM_RANGES_BITS)

static UInt class_of(const Range *r)
{
    return 63 - __builtin_clzll(r->end - r->start);
}

static UInt chain_of(Addr granule, UInt class)
{
    return jm_place(granule << 6 | class, JM_RANGES_BITS);
}

void jm_ranges_add(Ranges *set, Range *range)
{
    const UInt class = class_of(range);
    range->link = &set->chains[chain_of(range->start >> class, class)];
    range->next = *range->link;
    if (range->next)
        range->next->link = &range->next;
    *range->link = range;
    set->n[class]++;
    set->classes |= 1ULL << class;
}

void jm_ranges_remove(Ranges *set, Range *range)
{
    const UInt class = class_of(range);
    *range->link = range->next;
    if (range->next)
        range->next->link = range->link;
    if (--set->n[class] == 0)
        set->classes &= ~(1ULL << class);
}

void *jm_ranges_next(const Ranges *set, const Range *after)
{
    UInt i = 0;
    if (after && after->next)
        return after->next;
    if (after)
        i = chain_of(after->start >> class_of(after), class_of(after)) + 1;
    while (i < N_CHAINS && !set->chains[i])
        i++;
    return i < N_CHAINS ? set->chains[i] : NULL;
}

void *jm_ranges_find(const Ranges *set, Addr start, Addr end)
{
    for (ULong left = set->classes; left; left &= left - 1) {
        const UInt class = __builtin_ctzll(left);
        Addr granule = start >> class;
        granule -= jm_smaller(granule, 2); // each range is shorter than two granules
        const UInt n = jm_smaller(((end - 1) >> class) + 1 - granule, N_CHAINS);
        for (UInt i = 0; i < n; i++)
            for (Range *r = set->chains[n < N_CHAINS ? chain_of(granule + i, class) : i]; r; r = r->next)
                if (r->start < end && start < r->end)
                    return r;
    }
    return NULL;
}
