#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A recording in the container: its report has the line and the 64 MiB that the line keeps.

set -euo pipefail
cd "$(mktemp -d)"
printf 'kept = [bytes(1 << 20) for _ in range(64)]\n' >keeps.py
jmassif -q -o trace python3 keeps.py
jmassif report trace | tee report
grep -q '^keeps\.py:1 .* 64\.0 MiB' report
