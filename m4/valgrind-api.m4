dnl SPDX-License-Identifier: GPL-2.0-or-later
dnl
dnl JM_PROBE_VALGRIND_API: what differs between Valgrind's releases and meets a heap profiler. Each probe compiles a few
dnl lines against the headers found. From comparing the headers of 3.16, 3.19, 3.24 and 3.27, these also differ but need no
dnl macro:
dnl   - VG_BOOL_CLO takes the address of its variable in 3.24: it must be a Bool, not a bit-field or another type.
dnl   - VG_BUINT_CLO and VG_BUINT_CLOM exist in newer releases only; VG_BINT_CLO is everywhere.
dnl   - VG_(args_the_exename) loses its const in 3.27; read it through a const pointer.
dnl   - VG_(am_shadow_alloc) returns a SysRes in newer releases; use VG_(malloc), VG_(perm_malloc) or
dnl     VG_(am_mmap_anon_float_valgrind), which never changed.
dnl   - VexControl grows at its end, IROp loses Iop_Clz32/64 and Iop_Ctz32/64 (3.27), Iop_DivU64E and others move:
dnl     names are stable, numbers are not. IRConst gained Ico_U128.
dnl   - newer preload libraries send the tool a client request of memcheck's ('M','C') to verify alignments:
dnl     handle_client_request must return False for codes it does not know, and say nothing.

dnl JM_PROBE(MACRO, WHAT, DECLARATIONS, STATEMENTS)
m4_define([JM_PROBE], [
AC_MSG_CHECKING([whether Valgrind has $2])
AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#include "pub_tool_basics.h"
#include "pub_tool_options.h"
#include "pub_tool_tooliface.h"
$3
]], [[$4]])],
    [AC_MSG_RESULT([yes]); AC_DEFINE([$1], [1], [Valgrind has $2.])],
    [AC_MSG_RESULT([no])])
])

dnl JM_WRAP(FUNCTION, REASON): lead the core's calls of a function to ours (the linker's --wrap).
m4_define([JM_WRAP], [
AS_IF([$GREP " T $1\$" conftest.functions >/dev/null], [WRAP_LDFLAGS="$WRAP_LDFLAGS -Wl,--wrap=$1"],
    [AC_MSG_ERROR([Valgrind $VG_VERSION has no function $1, so that jmassif cannot $2])])
])

dnl JM_TAG(FUNCTION, DEFAULT): the tag of the core's replacement for a function, with a higher priority for ours.
m4_define([JM_TAG], [
AC_MSG_CHECKING([the tag of the replaced $1])
jm_tag=`$GREP -a -o '_vgr[[0-9]]*0ZU_libcZdsoZa_$1' "$VG_LIBDIR/libreplacemalloc_toolpreload-$VG_ARCH-linux.a" | \
    $SED -n 's/_vgr\([[0-9]]*\)0ZU.*/\1/p' | $SED 1q`
AC_MSG_RESULT([${jm_tag:-not known}])
AC_DEFINE_UNQUOTED(m4_toupper([$1])[_TAG], [${jm_tag:-$2}1], [The tag of our $1.])
])

AC_DEFUN([JM_PROBE_VALGRIND_API], [
# -I and not -isystem: VG_() is a macro of these headers, so for system headers the compiler would let a call of an undeclared
# VG_(function) pass in silence, in our sources as in these probes.
# The headers are "pub_tool_basics.h" to a tool and <valgrind/valgrind.h> to a program.
VG_CPPFLAGS="-I$VG_INCLUDEDIR -I${VG_INCLUDEDIR%/valgrind}"
VG_CPPFLAGS="$VG_CPPFLAGS -DVGA_$VG_ARCH=1 -DVGO_linux=1 -DVGP_${VG_ARCH}_linux=1 -DVGPV_${VG_ARCH}_linux_vanilla=1"
AC_SUBST([VG_CPPFLAGS])

saved_CPPFLAGS=$CPPFLAGS
saved_CFLAGS=$CFLAGS
CPPFLAGS="$VG_CPPFLAGS $CPPFLAGS"
CFLAGS="$CFLAGS -fno-builtin -Werror"

AC_MSG_CHECKING([whether Valgrind's headers compile])
AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#include "pub_tool_basics.h"
#include "pub_tool_debuginfo.h"
#include "pub_tool_tooliface.h"
]], [[DiEpoch epoch = VG_(current_DiEpoch)(); (void)epoch;]])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no]); AC_MSG_ERROR([$CC cannot use the headers in $VG_INCLUDEDIR; config.log says why])])

dnl In 3.19, not in 3.16: operator new and delete with an alignment reach the tool as such. Before, as memalign and free.
JM_PROBE([HAVE_VG_ALIGNED_NEW], [aligned new and delete in needs_malloc_replacement],
    [extern void *alloc(ThreadId, SizeT), *calloc_(ThreadId, SizeT, SizeT), *realloc_(ThreadId, void *, SizeT);
     extern void free_(ThreadId, void *), free_aligned(ThreadId, void *, SizeT);
     extern SizeT size(ThreadId, void *);],
    [VG_(needs_malloc_replacement)(alloc, alloc, 0, alloc, 0, 0, calloc_, free_, free_, free_aligned, free_,
                                   free_aligned, realloc_, size, 0);])

dnl In 3.24, not in 3.19: memalign and aligned new also get the alignment as the program asked for it, before it was rounded up:
dnl   memalign(tid, align, orig_align, n), new_aligned(tid, n, align, orig_align).
JM_PROBE([HAVE_VG_MEMALIGN_ORIG_ALIGN], [the requested alignment in memalign and aligned new],
    [extern void *alloc(ThreadId, SizeT), *calloc_(ThreadId, SizeT, SizeT), *realloc_(ThreadId, void *, SizeT);
     extern void *alloc_aligned(ThreadId, SizeT, SizeT, SizeT), *memalign_(ThreadId, SizeT, SizeT, SizeT);
     extern void free_(ThreadId, void *), free_aligned(ThreadId, void *, SizeT);
     extern SizeT size(ThreadId, void *);],
    [VG_(needs_malloc_replacement)(alloc, alloc, alloc_aligned, alloc, alloc_aligned, memalign_, calloc_, free_, free_,
                                   free_aligned, free_, free_aligned, realloc_, size, 0);])

dnl In 3.16, not in 3.15, which has a number instead: how many superblocks may be joined.
JM_PROBE([HAVE_VEX_GUEST_CHASE], [--vex-guest-chase], [], [VG_(clo_vex_control).guest_chase = False;])

JM_PROBE([HAVE_VEX_SIGBUS_ON_MISALIGN], [guest_amd64_sigbus_on_misalign], [],
    [VexAbiInfo probe; probe.guest_amd64_sigbus_on_misalign = False; (void)probe;])

CPPFLAGS=$saved_CPPFLAGS
CFLAGS=$saved_CFLAGS

dnl All of these are in every release from 3.15 to 3.27. Their wrappers are in jmassif/host/valgrind.
AC_MSG_CHECKING([whether Valgrind has the functions to wrap])
"$NM" "$VG_LIBDIR"/lib*-$VG_ARCH-linux.a >conftest.functions 2>/dev/null
WRAP_LDFLAGS=
JM_WRAP([LibVEX_Translate], [take translations of an earlier run])
JM_WRAP([server_main], [stop doing so where a debugger sets breakpoints])
JM_WRAP([vgModuleLocal_generic_PRE_sys_mmap], [map libraries where an earlier run had them])
JM_WRAP([vgModuleLocal_read_callframe_info_dwarf3], [keep the core from reading unwind tables and libc's inlined calls])
JM_WRAP([vgPlain_use_CF_info], [unwind for the core])
JM_WRAP([vgPlain_string_match], [match names with functions to replace without measuring each name])
JM_WRAP([vgPlain_kill_self], [record the signal that ends the program])
AC_SUBST([WRAP_LDFLAGS])
AC_MSG_RESULT([yes])

JM_TAG([pvalloc], [1019])
])
