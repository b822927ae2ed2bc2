// SPDX-License-Identifier: GPL-2.0-or-later
//
// One door to Valgrind. Every module includes this header and none includes pub_tool_*.h itself, so differences between
// Valgrind releases are met here and nowhere else (configure probes them; see configure.ac).

#ifndef JM_COMPAT_H
#define JM_COMPAT_H

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

// A system call that older headers lack; it has the same number on every machine.
#ifndef __NR_close_range
#define __NR_close_range 436
#endif

// Read inlined-call information: the core decides by the name of the tool and has no public call to ask for it, but the
// variable behind --read-inline-info is a global of libcoregrind in every release since 3.8.
extern Bool VG_(clo_read_inline_info);

// --num-transtab-sectors: how much translated code is kept; in every release since 3.10.
extern UInt VG_(clo_num_transtab_sectors);

// --merge-recursive-frames, likewise in every release since 3.6.
extern Int VG_(clo_merge_recursive_frames);

// --run-libc-freeres and --run-cxx-freeres: whether the program's libraries free what they keep at its end. In every
// release since 3.13.
extern Bool VG_(clo_run_libc_freeres);
extern Bool VG_(clo_run_cxx_freeres);

// The path of the program that has started the tool, from $VALGRIND_LAUNCHER; in every release since 3.0.
extern const HChar *VG_(name_of_launcher);

// Moves a descriptor out of the program's reach (above its limit) and marks it close-on-exec. What the core uses for
// its own files; exported by libcoregrind, though not in a public header.
extern Int VG_(safe_fd)(Int fd);

// The program's calls on descriptors from here on fail without reaching the kernel; the core's own are above. Set from
// the soft limit before the tool is started.
extern Int VG_(fd_hard_limit);

// The result of a call that has failed; likewise exported.
extern SysRes VG_(mk_SysRes_Error)(UWord error);

// --vgdb: 0: no, 1: yes, 2: full; the program may change it. In every release since 3.7.
extern UInt VG_(clo_vgdb);

// --smc-check: for which code each superblock looks whether it is still what it was. In every release since 3.5.
extern UInt VG_(clo_smc_check);
#define JM_SMC_ALL 2u

// What --sim-hints has asked for, a bit each; lax-ioctls is the first.
extern UInt VG_(clo_sim_hints);
#define JM_LAX_IOCTLS 1u

#endif
