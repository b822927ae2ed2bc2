dnl SPDX-License-Identifier: GPL-2.0-or-later
dnl
dnl JM_FIND_VALGRIND: where Valgrind's parts are. Sets and substitutes
dnl   VG_VERSION VG_ARCH     e.g. 3.19.0, amd64
dnl   VG_INCLUDEDIR          pub_tool_*.h
dnl   VG_LIBDIR              libcoregrind-*.a and its fellows
dnl   VG_LIBEXEC             the tools themselves
dnl   VG_LOAD_ADDRESS        where a tool's text segment must be linked
dnl   VALGRIND               the launcher
dnl Distributions disagree about the directories: Debian keeps the libraries under the multiarch triplet, and its tools
dnl moved from there to /usr/lib/valgrind and on to /usr/libexec/valgrind. So nothing is assumed beyond valgrind.pc.

AC_DEFUN([JM_FIND_VALGRIND], [
AS_CASE([$host],
    [x86_64-*-linux*], [VG_ARCH=amd64],
    [aarch64-*-linux*], [VG_ARCH=arm64],
    [AC_MSG_ERROR([jmassif runs on x86_64 and aarch64 Linux, not on $host])])
platform=$VG_ARCH-linux

AC_PATH_TOOL([PKG_CONFIG], [pkg-config])
AS_IF([test -z "$PKG_CONFIG"], [AC_MSG_ERROR([pkg-config is needed to find Valgrind; install the package pkg-config])])

AC_MSG_CHECKING([for Valgrind])
vg_pc_path=
vg_pc_prefix=
AS_IF([test -n "$with_valgrind"], [
    AS_IF([test ! -d "$with_valgrind"], [AC_MSG_ERROR([--with-valgrind: $with_valgrind is not a directory])])
    with_valgrind=`cd "$with_valgrind" && pwd`
    vg_triplet=`$CC -print-multiarch 2>/dev/null`
    for dir in "$with_valgrind" "$with_valgrind/usr" "$with_valgrind/usr/local"; do
        for pc in "$dir/lib/$vg_triplet" "$dir/lib" "$dir/lib64" "$dir"/lib/*-linux-gnu; do
            AS_IF([test -z "$vg_pc_path" && test -f "$pc/pkgconfig/valgrind.pc"],
                [vg_pc_path=$pc/pkgconfig; vg_pc_prefix=$dir])
        done
    done
    AS_IF([test -z "$vg_pc_path"], [AC_MSG_ERROR([there is no valgrind.pc below $with_valgrind])])
])

# pkg-config is asked for single variables: a file of an unpacked package speaks of /usr, and its prefix is replaced.
jm_pkg_config () {
    AS_IF([test -n "$vg_pc_path"],
        [PKG_CONFIG_LIBDIR=$vg_pc_path PKG_CONFIG_PATH= "$PKG_CONFIG" --define-variable=prefix="$vg_pc_prefix" "$][@" valgrind],
        ["$PKG_CONFIG" "$][@" valgrind])
}
VG_VERSION=`jm_pkg_config --modversion 2>/dev/null`
AS_IF([test -z "$VG_VERSION"], [AC_MSG_ERROR([
    pkg-config knows no Valgrind for $platform. Install the package valgrind (on some systems valgrind-devel),
    or point --with-valgrind=DIR at a prefix or an unpacked package.])])
AC_MSG_RESULT([$VG_VERSION])
jm_pkg_config --atleast-version=3.15 || AC_MSG_ERROR([Valgrind $VG_VERSION is too old; jmassif needs 3.15 or later])

vg_pc_arch=`jm_pkg_config --variable=arch`
AS_IF([test "$vg_pc_arch" != "$VG_ARCH"], [AC_MSG_ERROR([
    this Valgrind is for $vg_pc_arch, and the build is for $VG_ARCH. Point --with-valgrind=DIR at one for $VG_ARCH.])])
VG_LOAD_ADDRESS=`jm_pkg_config --variable=valt_load_address`
AS_IF([test -z "$VG_LOAD_ADDRESS"], [AC_MSG_ERROR([valgrind.pc names no valt_load_address])])
VG_INCLUDEDIR=`jm_pkg_config --variable=includedir`
AS_CASE([$VG_INCLUDEDIR], [*/valgrind], [], [VG_INCLUDEDIR=$VG_INCLUDEDIR/valgrind])
AS_IF([test ! -f "$VG_INCLUDEDIR/pub_tool_tooliface.h"],
    [AC_MSG_ERROR([Valgrind's tool headers are missing: no $VG_INCLUDEDIR/pub_tool_tooliface.h])])

vg_libdir=`jm_pkg_config --variable=libdir`
vg_prefix=`jm_pkg_config --variable=prefix`

AC_MSG_CHECKING([for Valgrind's static libraries])
VG_LIBDIR=
for dir in "$vg_libdir/valgrind" "$vg_prefix/lib/valgrind" "$vg_prefix/lib64/valgrind" "$vg_prefix/libexec/valgrind"; do
    AS_IF([test -z "$VG_LIBDIR" && test -f "$dir/libcoregrind-$platform.a"], [VG_LIBDIR=$dir])
done
AS_IF([test -z "$VG_LIBDIR"], [AC_MSG_ERROR([no libcoregrind-$platform.a in $vg_libdir/valgrind])])
AC_MSG_RESULT([$VG_LIBDIR])
for lib in libvex libreplacemalloc_toolpreload libgcc-sup; do
    AS_IF([test ! -f "$VG_LIBDIR/$lib-$platform.a"], [AC_MSG_ERROR([no $lib-$platform.a in $VG_LIBDIR])])
done

AS_IF([test -n "$with_valgrind"], [
    AC_PATH_PROG([VALGRIND], [valgrind], [], [$vg_prefix/bin])
], [AC_PATH_PROG([VALGRIND], [valgrind])])

AC_MSG_CHECKING([for Valgrind's tools])
VG_LIBEXEC=
for dir in "$vg_prefix/libexec/valgrind" "$vg_libdir/valgrind" "$vg_prefix/lib/valgrind" "$vg_prefix/lib64/valgrind"; do
    AS_IF([test -z "$VG_LIBEXEC" && test -x "$dir/none-$platform"], [VG_LIBEXEC=$dir])
done
# In no known place: the launcher itself says, with -d, what it starts.
AS_IF([test -z "$VG_LIBEXEC" && test -n "$VALGRIND" && test "$cross_compiling" = no], [
    VG_LIBEXEC=`"$VALGRIND" -d --tool=none --version 2>&1; "$VALGRIND" -d --tool=none /bin/true 2>&1`
    VG_LIBEXEC=`AS_ECHO(["$VG_LIBEXEC"]) | $SED -n "s,^.*launching \(.*\)/none-$platform.*,\1,p" | $SED 1q`
])
AS_IF([test -z "$VG_LIBEXEC"], [AC_MSG_ERROR([no none-$platform below $vg_prefix: where are Valgrind's tools?])])
AC_MSG_RESULT([$VG_LIBEXEC])

AC_SUBST([with_valgrind])
AC_SUBST([VG_VERSION])
AC_DEFINE_UNQUOTED([JM_VALGRIND_VERSION], ["$VG_VERSION"], [The release of Valgrind that the tool is built for.])
AC_SUBST([VG_ARCH])
AC_SUBST([VG_INCLUDEDIR])
AC_SUBST([VG_LIBDIR])
AC_SUBST([VG_LIBEXEC])
AC_SUBST([VG_LOAD_ADDRESS])
])
