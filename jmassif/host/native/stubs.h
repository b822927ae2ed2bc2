// SPDX-License-Identifier: GPL-2.0-or-later
//
// Stubs: what the program calls in place of a function of functions.h. A stub belongs to one real function, as a
// process may have several of one name: a runtime in a library and one linked statically, releases in wheels, forms for
// which cuGetProcAddress has been asked. So each place gets a stub of exactly the function that it held.

#ifndef JM_NATIVE_STUBS_H
#define JM_NATIVE_STUBS_H

#include "host/types.h"

// The stub that calls `real`, which has the parameters of the row (functions.h). `real` itself if it is a stub, or none
// is left.
Addr jm_native_stub(Int row, Addr real);

// A stub for an entry of a procedure linkage table that is not bound yet: the first call through `unbound` makes the
// loader write the function's address to `place`, and then the stub writes that function's stub there.
Addr jm_native_stub_unbound(Int row, Addr unbound, UWord *place);

Bool jm_native_is_stub(Addr address);

// The stub of a function, if it has one; 0.
Addr jm_native_stub_that_calls(Addr real);

// Name of the function at a stub; NULL if it is none.
const HChar *jm_native_stub_name(Addr address);

// Forget the stubs of functions whose code has gone.
void jm_native_stubs_forget(Bool (*has_gone)(Addr address));

// A call through a stub begins and ends. `slot` is the stub's word in jm_native_slots.
typedef struct {
    UInt row;
    Addr real, stub;
} StubTarget;
StubTarget jm_native_stub_begins(const UWord *slot);
StubTarget jm_native_stub_ends(const UWord *slot);

#endif
