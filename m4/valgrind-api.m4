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

dnl JM_IF_FUNCTION(LIBRARY, FUNCTION, THEN, ELSE): whether one of Valgrind's libraries has the function under this name.
AC_DEFUN([JM_IF_FUNCTION],
[AS_IF(["$NM" "$VG_LIBDIR/$1-$VG_ARCH-linux.a" 2>/dev/null | $GREP " T $2\$" >/dev/null], [$3], [$4])])

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

dnl What code_cache.c stands in the place of: the one function that translates, and the one in which a debugger is heard.
AC_MSG_CHECKING([whether translations can be kept])
keeps_translations=yes
CACHE_WRAP_LDFLAGS="-Wl,--wrap=LibVEX_Translate -Wl,--wrap=server_main"
JM_IF_FUNCTION([libvex], [LibVEX_Translate], [], [keeps_translations=no])
JM_IF_FUNCTION([libcoregrind], [server_main], [], [keeps_translations=no])
AC_MSG_RESULT([$keeps_translations])
AS_IF([test $keeps_translations = yes],
    [AC_DEFINE([KEEPS_TRANSLATIONS], [1], [Translations can be kept between runs.])],
    [CACHE_WRAP_LDFLAGS=])

CORE_WRAP_LDFLAGS=

dnl Where places.c asks for a place.
AC_MSG_CHECKING([whether object files can be given places])
keeps_places=no
JM_IF_FUNCTION([libcoregrind], [vgModuleLocal_generic_PRE_sys_mmap], [keeps_places=$keeps_translations])
AC_MSG_RESULT([$keeps_places])
AS_IF([test $keeps_places = yes], [
    AC_DEFINE([KEEPS_PLACES], [1], [Object files can be given places.])
    CACHE_WRAP_LDFLAGS="$CACHE_WRAP_LDFLAGS -Wl,--wrap=vgModuleLocal_generic_PRE_sys_mmap"
])
AC_SUBST([CACHE_WRAP_LDFLAGS])

dnl The core's unwinder, which core_takeover.c takes over in the same way, and what core_step.c asks of it.
AC_MSG_CHECKING([whether the core's unwinder can be taken over])
takes_unwinder=yes
for function in vgPlain_use_CF_info vgModuleLocal_read_callframe_info_dwarf3; do
    JM_IF_FUNCTION([libcoregrind], [$function], [], [takes_unwinder=no])
done
AC_MSG_RESULT([$takes_unwinder])
AS_IF([test $takes_unwinder = yes && { test "$VG_ARCH" = amd64 || test "$VG_ARCH" = arm64; }], [
    AC_DEFINE([TAKES_OVER_CORE_UNWINDER], [1], [The core's unwinder is taken over.])
    for function in vgPlain_use_CF_info vgModuleLocal_read_callframe_info_dwarf3; do
        CORE_WRAP_LDFLAGS="$CORE_WRAP_LDFLAGS -Wl,--wrap=$function"
    done
])

dnl Where the core keeps names of symbols (symbol_names.c).
AC_MSG_CHECKING([whether names can stay in their files])
asks_for_names=yes
for function in vgModuleLocal_addStr vgModuleLocal_addSym vgPlain_am_mmap_file_float_valgrind vgPlain_am_munmap_valgrind; do
    JM_IF_FUNCTION([libcoregrind], [$function], [], [asks_for_names=no])
done
AC_MSG_RESULT([$asks_for_names])
AS_IF([test $asks_for_names = yes], [
    AC_DEFINE([ASKS_FOR_NAMES], [1], [The core's calls for a place of a name are taken over.])
    CORE_WRAP_LDFLAGS="$CORE_WRAP_LDFLAGS -Wl,--wrap=vgModuleLocal_addStr -Wl,--wrap=vgModuleLocal_addSym"
])

dnl What the core sends a process that a signal has killed, when all else is over (killed.c).
AC_MSG_CHECKING([whether the signal that kills a program can be told])
tells_signal=no
JM_IF_FUNCTION([libcoregrind], [vgPlain_kill_self], [tells_signal=yes])
AC_MSG_RESULT([$tells_signal])
AS_IF([test $tells_signal = yes], [
    AC_DEFINE([TELLS_FATAL_SIGNAL], [1], [The core's last call for a process that a signal has killed is taken over.])
    CORE_WRAP_LDFLAGS="$CORE_WRAP_LDFLAGS -Wl,--wrap=vgPlain_kill_self"
])
AC_SUBST([CORE_WRAP_LDFLAGS])

JM_TAG([pvalloc], [1019])
JM_TAG([mallinfo], [1021])
])
