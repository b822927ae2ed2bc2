#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: install.sh [--prefix=DIR] [RELEASE]
# Installs jmassif below DIR (~/.local) from RELEASE, a directory or a URL (by default the directory of this script).
# To remove it: rm -r DIR/opt/jmassif DIR/bin/jmassif DIR/bin/jm_print DIR/bin/jm_diff

set -eu && umask 022
fail() { echo "install.sh: $*" >&2 && exit 1; }
is_there() { command -v "$1" >/dev/null; }
prefix=${HOME-}/.local release=$(dirname "$0")
for word; do
    case $word in
    --prefix=/*) prefix=${word#--prefix=} ;;
    -*) fail "$word: usage: install.sh [--prefix=/DIR] [DIRECTORY|URL]" ;;
    *) release=$word ;;
    esac
done
case $prefix in *[[:space:]:\$]*) fail "programs cannot load libraries from \"$prefix\": take a --prefix without spaces" ;; esac
case $release in *://*) is_there curl || is_there wget || fail "curl or wget is needed" ;; esac
for program in tar xz sha256sum; do is_there $program || fail "$program is needed (apt-get install xz-utils)"; done

fetch() { # FILE
    case $release in
    *://*) if is_there curl; then curl -fsSLo "$part/$1" "$release/$1"; else wget -nv -O "$part/$1" "$release/$1"; fi ;;
    *) cp "$release/$1" "$part/" ;;
    esac 2>"$part/log" || fail "no $1 in $release: $(tail -n 1 "$part/log")"
}
part=$(mkdir -p "$prefix/opt" "$prefix/bin" && mktemp -d "$prefix/opt/jmassif.XXXXXX") 2>/dev/null || fail "cannot write to $prefix"
trap 'rm -rf "$part"' EXIT && trap 'exit 1' HUP INT TERM
fetch SHA256SUMS
line=$(grep -E "  jmassif-.*-$(uname -m)\.tar\.xz$" "$part/SHA256SUMS") || fail "no archive for $(uname -m) in $release"
fetch "${line##* }"
(cd "$part" && mkdir new && echo "$line" | sha256sum -c - >log 2>&1) || fail "${line##* } is damaged: another SHA-256"
tar -xJf "$part/${line##* }" --no-same-owner --strip-components=1 -C "$part/new" || fail "cannot unpack ${line##* }"
rm -rf "$prefix/opt/jmassif" && mv "$part/new" "$prefix/opt/jmassif"
for name in jmassif jm_print jm_diff; do ln -sf "../opt/jmassif/bin/$name" "$prefix/bin/"; done
case ":$PATH:" in *":$prefix/bin:"*) j=jmassif ;; *) j=$prefix/bin/jmassif ;; esac
python=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null) || { echo "next: $j PROGRAM (reports need python3)"; exit; }
echo "next: $j $python -c 'kept = [bytes(1 << 20) for _ in range(64)]' && $j report"
