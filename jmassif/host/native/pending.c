// SPDX-License-Identifier: GPL-2.0-or-later
//
// See pending.h.

#include "host/native/pending.h"
#include "base/text.h"
#include "requests/client.h"

#include "preload/protocol.h"

typedef struct {
    const NativeThread *thread; // NULL: free
    CallPlace place;
    Addr return_address;
    HChar name[300];
    Bool has_name;
} Pending;

#define MAX_PENDING 32
static Pending pending[MAX_PENDING];
UInt jm_native_n_pending;

static void request(UWord code, UWord result, const Pending *p)
{
    struct jm_queries queries;
    const UWord words[JM_MAX_WORDS] = {p->has_name ? (UWord)p->name : 0};
    UWord args[] = {code, JM_ROW_dl_open_worker, code == JM_REQ_ENTER ? (UWord)words : result, (UWord)words,
                    0,    (UWord)&queries};
    jm_client_handle_request(p->thread->id, args, &result);
}

void jm_native_pending_begin(const HChar *name, CallPlace place, Addr return_address)
{
    for (UInt i = 0; i < MAX_PENDING; i++) {
        Pending *p = &pending[i];
        if (p->thread)
            continue;
        *p =
            (Pending){.thread = jm_native_thread, .place = place, .return_address = return_address, .has_name = !!name};
        if (name)
            jm_text_cut(p->name, name, sizeof p->name);
        jm_native_n_pending++;
        request(JM_REQ_ENTER, 0, p);
        return;
    }
}

static void end(Pending *p)
{
    request(JM_REQ_LEAVE, 1, p);
    p->thread = NULL;
    jm_native_n_pending--;
}

// A hook that the caller of dlopen calls next has that caller's frame around it, and its own return address where that
// of dlopen was. Inside dlopen there are other frames between.
static Bool has_returned(const Pending *p, const NativeRegisters *hook)
{
#if defined(__x86_64__)
    Addr sp_of_caller = hook->word[JM_REG_FP] + 2 * sizeof(UWord); // hooks have a frame pointer
    return sp_of_caller >= p->place.sp || ((const Addr *)p->place.sp)[-1] != p->return_address;
#else
    return *(const Addr *)hook->word[JM_REG_FP] >= p->place.frame;
#endif
}

void jm_native_pending_settle(const NativeRegisters *registers)
{
    for (UInt i = MAX_PENDING; i-- > 0;)
        if (pending[i].thread == jm_native_thread && has_returned(&pending[i], registers))
            end(&pending[i]);
}

void jm_native_pending_settle_at(CallPlace place)
{
    for (UInt i = MAX_PENDING; i-- > 0;)
        if (pending[i].thread == jm_native_thread && pending[i].place.sp <= place.sp)
            end(&pending[i]);
}
