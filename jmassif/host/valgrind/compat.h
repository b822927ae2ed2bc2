// SPDX-License-Identifier: GPL-2.0-or-later
//
// Valgrind's headers. Only this file includes pub_tool_*.h, so differences between Valgrind releases are handled in one
// place (configure probes them; see configure.ac).

#pragma once

#include "pub_tool_basics.h"
#include "pub_tool_vki.h"
#include "pub_tool_vkiscnums.h"
#include "pub_tool_aspacemgr.h"
#include "pub_tool_clientstate.h"
#include "pub_tool_clreq.h"
#include "pub_tool_debuginfo.h"
#include "pub_tool_gdbserver.h"
#include "pub_tool_guest.h"
#include "pub_tool_hashtable.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_options.h"
#include "pub_tool_replacemalloc.h"
#include "pub_tool_seqmatch.h"
#include "pub_tool_stacktrace.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_tooliface.h"
#include "pub_tool_xarray.h"

// --read-inline-info. The core sets its default by the tool's name and has no public call for it, but the variable is a
// global of libcoregrind in every release since 3.8.
extern Bool VG_(clo_read_inline_info);

// --num-transtab-sectors, the limit of translated code; in every release since 3.10.
extern UInt VG_(clo_num_transtab_sectors);

// --run-libc-freeres and --run-cxx-freeres: libraries free their internal memory at the program's end. In every release
// since 3.13.
extern Bool VG_(clo_run_libc_freeres);
extern Bool VG_(clo_run_cxx_freeres);

// Path of Valgrind's launcher, from $VALGRIND_LAUNCHER; in every release since 3.0.
extern const HChar *VG_(name_of_launcher);

// Move a descriptor out of the program's reach (above its limit) and mark it close-on-exec, as the core does with its
// own files. Exported by libcoregrind, though not in a public header.
extern Int VG_(safe_fd)(Int fd);

// First descriptor out of the program's reach: calls on it or a higher one fail without reaching the kernel. The core's
// own descriptors are above. Set from the soft limit before the tool starts.
extern Int VG_(fd_hard_limit);

// --vgdb: 0 no, 1 yes, 2 full; the program may change it. In every release since 3.7.
extern UInt VG_(clo_vgdb);

// --sim-hints, one bit per hint; lax-ioctls is the first.
extern UInt VG_(clo_sim_hints);
#define JM_LAX_IOCTLS 1u
