// SPDX-License-Identifier: GPL-2.0-or-later
//
// When the process is recorded: from its start on or, with --start=off, while it wants that.

#ifndef JM_NATIVE_RECORDING_H
#define JM_NATIVE_RECORDING_H

#include "host/native/hook.h"

// Under the lock: begin the recording, with this thread as the first. Its event has to be ended.
void jm_native_record(const NativeRegisters *registers);

// The recording began in the middle of the program: it has blocks and mappings from before.
Bool jm_native_began_late(void);

// With --start=off: record nothing until the program wants it; no more; in the child of a fork that nothing recorded.
void jm_native_wait_for_start(void);
void jm_native_refuse_start(void);
void jm_native_wait_in_child(void);

#endif
