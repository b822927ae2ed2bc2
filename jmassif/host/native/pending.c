// SPDX-License-Identifier: GPL-2.0-or-later
//
// See pending.h.

#include "host/native/pending.h"
#include "base/text.h"
#include "host/host.h"
#include "requests/client.h"

#include "preload/protocol.h"

typedef struct {
    const NativeThread *thread; // NULL: free
    Int kernel_id;              // of the thread, whose record may be another's now
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

static void drop_if_thread_ended(Pending *p)
{
    if (p->thread && p->thread->kernel_id != p->kernel_id) {
        p->thread = NULL;
        jm_native_n_pending--;
    }
}

void jm_native_pending_begin(const HChar *name, CallPlace place, Addr return_address)
{
    for (UInt i = 0; i < MAX_PENDING; i++) {
        Pending *p = &pending[i];
        drop_if_thread_ended(p);
        if (p->thread)
            continue;
        *p = (Pending){.thread = jm_native_thread,
                       .kernel_id = jm_native_thread->kernel_id,
                       .place = place,
                       .return_address = return_address,
                       .has_name = !!name};
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

#if defined(__x86_64__)
// A call that the caller of dlopen makes next leaves its own return address where that of dlopen was.
static Bool has_returned(const Pending *p, Addr sp, Addr frame)
{
    (void)sp, (void)frame;
    const Addr *at = (const Addr *)p->place.sp - 1; // a coroutine's stack may have gone
    return !host_is_readable((Addr)at, sizeof *at) || *at != p->return_address;
}
#else
#define ADDRESS_MASK (((Addr)1 << 48) - 1) // the bits above may hold a signature

// A record for each function in progress leads to that of its caller, at a higher address. That of dlopen has its
// return address.
static Bool has_returned(const Pending *p, Addr sp, Addr frame)
{
    while (frame >= sp && frame < p->place.sp && frame % 8 == 0) {
        const Addr *record = (const Addr *)frame;
        if (((record[1] ^ p->return_address) & ADDRESS_MASK) == 0)
            return False;
        sp = frame + 1;
        frame = record[0];
    }
    return frame >= p->place.sp;
}
#endif

void jm_native_pending_settle(CallPlace place)
{
    for (UInt i = MAX_PENDING; i-- > 0;) {
        Pending *p = &pending[i];
        drop_if_thread_ended(p);
        if (p->thread == jm_native_thread && (place.sp >= p->place.sp || has_returned(p, place.sp, place.frame)))
            end(p);
    }
}
