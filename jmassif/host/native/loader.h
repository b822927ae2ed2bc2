// SPDX-License-Identifier: GPL-2.0-or-later
//
// The hooks of dlopen, dlclose, dlsym and dlvsym.

#ifndef JM_NATIVE_LOADER_H
#define JM_NATIVE_LOADER_H

// A call of dlopen has returned to the program itself: put stubs into the objects that it has loaded. Not under the
// recorder's lock.
void jm_native_patch_if_due(void);

#endif
