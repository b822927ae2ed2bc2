# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Sourced by scripts that test on a whole Debian trixie in a directory of its own (torch-cuda/run, field/*). The caller sets
# top (the checkout), root (the directory, made by it) and subject (its name in messages).

say() { printf '== %s\n' "$*"; }
die() {
    # shellcheck disable=SC2154 # set by the caller
    printf '%s: %s\n' "$subject" "$*" >&2
    exit 1
}

# Runs a command in the root, which has our sources in /src, in a mount namespace of its own: nothing stays mounted.
in_root() {
    # shellcheck disable=SC2016,SC2154 # the dollars are the inner shell's; set by the caller
    unshare --mount bash -c 'root=$1 top=$2 && shift 2 && mkdir -p "$root/src" &&
        mount --bind "$top" "$root/src" && mount -o remount,bind,ro "$root/src" &&
        mount -t proc proc "$root/proc" && mount --bind /dev "$root/dev" && exec chroot "$root" "$@"' - "$root" "$top" "$@"
}

make_root() {
    local mirror release=/usr/share/keyrings/debian-archive-keyring.gpg
    [ "$(id -u)" -eq 0 ] || die "needs root, for debootstrap and chroot"
    [ ! -e "$root/.made" ] || return 0
    command -v debootstrap >/dev/null || die "debootstrap is not installed"
    # shellcheck disable=SC2016 # the dollars are apt's
    mirror=$(apt-get indextargets --format '$(ORIGIN) $(COMPONENT) $(REPO_URI)' 'Identifier: Packages' |
        awk '$1 == "Debian" && $2 == "main" && !found { print $3; found = 1 }')
    [ -n "$mirror" ] || die "this machine's apt sources name no Debian mirror"
    [ -f $release ] || die "$release is missing (package debian-archive-keyring)"
    say "making a Debian trixie in $root"
    debootstrap --variant=minbase --keyring="$release" --components=main,contrib,non-free --include=ca-certificates \
        trixie "$root" "$mirror" >"$root.log" 2>&1 || die "debootstrap failed (see $root.log)"
    touch "$root/.made"
}

install_packages() { # PACKAGE...
    [ "$(cat "$root/.packages" 2>/dev/null)" != "$*" ] || return 0
    say "installing what builds and measures"
    # shellcheck disable=SC2016 # the dollars are the inner shell's
    in_root bash -euc 'apt-get -q update
        DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "$@"' - "$@" \
        >>"$root.log" 2>&1 || die "packages could not be installed (see $root.log)"
    echo "$*" >"$root/.packages"
}

# Builds jmassif inside and installs it; then runs the command there, in a copy of the sources, because ./configure and what
# Automake writes belong to the machine that made them.
build_inside() { # COMMAND...
    local built="$root/opt/jmassif" sources
    local tree=(tar -C "$top" --exclude=./build --exclude=./.git --exclude=Makefile.in --exclude=./configure
        --exclude=./aclocal.m4 --exclude=./autom4te.cache --exclude=./build-aux --exclude='*.h.in' --exclude=__pycache__ -cf -)
    say "building jmassif and the simulation inside"
    # Make goes by times: objects of another checkout can be newer than a header that differs.
    sources=$("${tree[@]}" --sort=name --mtime=@0 --owner=0 --group=0 ./configure.ac ./jmassif ./tests/sim | sha256sum)
    [ "$(cat "$built/.sources" 2>/dev/null)" = "$sources" ] || rm -rf "$built"
    mkdir -p "$built"
    echo "$sources" >"$built/.sources"
    "${tree[@]}" . | tar -C "$built" -xf -
    # shellcheck disable=SC2016 # the dollars are the inner shell's
    in_root bash -euc '
        cd /opt/jmassif
        [ -x configure ] || autoreconf -i
        ./configure -q --prefix=/usr --disable-page
        make -C jmassif install && make -C reporter install && ldconfig
        "$@"' - "$@" >"$root.build.log" 2>&1 || die "the build failed (see $root.build.log)"
}
