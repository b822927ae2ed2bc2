#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# usage: tests/lint.sh [CHECK]…   (default: all)
# House style, checked by the tools that define it. Exit status 77: the tool for it is not here, or is another release whose
# idea of style differs.

# shellcheck disable=SC2317 # the checks are called by name
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
kept=${JMASSIF_BUILD:-build} # has the caches of black and mypy
checks=(clang_format black mypy shellcheck spdx words glossary arrows prettier eslint)

skip() {
    echo "$*"
    exit 77
}

if [ ! -e .git ] || ! command -v git >/dev/null; then skip "style is checked in a git checkout"; fi
all_files=$(git ls-files --cached --others --exclude-standard) || exit 1

# The project's files whose names end in one of these.
files() {
    echo "$all_files" | grep -E "($1)\$" | while read -r file; do
        if [ -f "$file" ]; then echo "$file"; fi
    done
}

# Scripts have no suffix to go by.
scripts() {
    files '' | xargs grep -anHm1 -E "^#!.*\b($1)\b" | sed -n 's/:1:#!.*//p'
}

check_clang_format() {
    local tool
    tool=$(command -v clang-format-14 || command -v clang-format) || skip "clang-format is not installed"
    "$tool" --version | grep -q 'version 14\.' || skip "this needs clang-format 14"
    files '\.c|\.h|\.cc' | xargs -r "$tool" --dry-run -Werror
}

check_black() {
    command -v black >/dev/null || skip "black is not installed"
    black --version | grep -q ' 23\.' || skip "this needs black 23: its style changes from year to year"
    local -a sources
    mapfile -t sources < <({ files '\.py'; scripts python3; } | sort -u)
    # With --diff it does without its cache, so that comes second.
    BLACK_CACHE_DIR="$kept/black" black --quiet --check "${sources[@]}" || { black --quiet --diff "${sources[@]}" && return 1; }
}

check_mypy() {
    command -v mypy >/dev/null || skip "mypy is not installed"
    mypy --version | grep -q '^mypy 1\.' || skip "this needs mypy 1"
    local status=0
    local -a command=(mypy --no-error-summary --scripts-are-modules --cache-dir="$kept/mypy")
    { echo reporter/jmassif tests && scripts python3 | grep -v '\.py$'; } | xargs "${command[@]}" || status=1
    files '\.py' | grep -vE '^(reporter|tests)/' | xargs -r "${command[@]}" || status=1
    return "$status"
}

check_shellcheck() {
    command -v shellcheck >/dev/null || skip "shellcheck is not installed"
    { files '\.sh'; scripts 'sh|bash'; } | sort -u | xargs -r shellcheck
}

# Licence texts, golden outputs, which are compared byte by byte, and what npm writes have none.
check_spdx() {
    local bad
    bad=$(files '' | grep -vE '^(COPYING|tests/.*/(golden|data)/|reporter/web/package-lock\.json$)' | xargs grep -lI . |
        xargs awk 'FNR == 1 {bad[FILENAME]} FNR < 13 && /SPDX-License-Identifier/ {delete bad[FILENAME]}
                   END {for (file in bad) print file}')
    [ -z "$bad" ] || { echo "without an SPDX line:" && echo "$bad" && return 1; }
}

# What belongs to one machine or one moment: mirrors' hosts, somebody's paths, numbers of tickets. The brackets keep this
# file from finding itself.
check_words() {
    local words='debian[.]org|ubuntu[.]com|pypi[.]org|registry[.]npmjs|/wor[k]/(main|shared)|/tmp/(brie[f]|j[m]-)'
    words+='|\bissues? #?[0-9]|\bticket #?[0-9]|design[.]md'
    ! files '' | grep -vE ^COPYING | xargs -r grep -nIiE "$words"
}

# The words that users read, and those that comments begin with.
check_glossary() {
    local pattern instead found status=0
    local -a texts
    mapfile -t texts < <(files '' | grep -E '^(reporter|docs|jmassif|packaging)/|^(README.md|NEWS)$' | grep -vE 'package-lock|/assets/')
    while IFS=$'\t' read -r pattern instead; do
        if [[ $pattern == '#'* ]]; then continue; fi
        if found=$(grep -nIE "$pattern" "${texts[@]}"); then
            printf '%s\n  write: %s\n' "$found" "$instead"
            status=1
        fi
    done <tests/lint/glossary.txt
    few '\b(tell|tells|told|whose|heard)\b' 20 "${texts[@]}" || status=1
    few '("""|# )(What|Where|Whether|Who|Of|By|That)\b' 40 "${texts[@]}" || status=1
    return "$status"
}

# At most so many lines of the reporter's Python have this: few PATTERN MOST FILE…
few() {
    local found
    found=$(printf '%s\n' "${@:3}" | grep '^reporter/.*\.py$' | xargs grep -nE "$1")
    if (($(wc -l <<<"$found") > $2)); then printf '%s\n  write the thing itself first: %s such lines are too many\n' "$found" "$(wc -l <<<"$found")"; return 1; fi
}

# Which folder uses which: docs/architecture.md, "The floors".
check_arrows() {
    command -v python3 >/dev/null || skip "python3 is not installed"
    tests/lint/arrows.py
}

# A program that npm installs with the page's packages; `make page` does.
node_program() {
    command -v node >/dev/null || skip "node is not installed"
    local program=reporter/web/node_modules/.bin/$1
    [ -x "$program" ] || skip "$1 is not installed: run npm ci in reporter/web"
    echo "$program"
}

check_prettier() {
    local program
    program=$(node_program prettier) || { echo "$program" && return 77; }
    files '\.mjs|\.tsx?' | xargs "$program" --config reporter/web/package.json --log-level warn --check
}

check_eslint() {
    local program
    program=$(node_program eslint) || { echo "$program" && return 77; }
    cd reporter/web && "../../$program" --max-warnings 0 --no-error-on-unmatched-pattern src
}

status=0
for check in "${@:-${checks[@]}}"; do
    (check_"$check") || status=$?
done
exit $status
