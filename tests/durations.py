# SPDX-License-Identifier: GPL-2.0-or-later
"""usage: python3 -m tests.durations [DEPTH]

Sums the seconds of the last run (durations.tsv) by the first DEPTH parts of the tests' paths, default 2: a folder's files.
"""

import os
import sys
from collections import defaultdict
from pathlib import Path
from typing import DefaultDict, List


def main() -> None:
    depth = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    build = Path(os.environ.get("JMASSIF_BUILD") or "build")
    groups: DefaultDict[str, List[float]] = defaultdict(list)
    for line in (build / "tests/made/durations.tsv").read_text().splitlines():
        took, _, node = line.partition("\t")
        groups["/".join(node.partition("::")[0].split("/")[1 : depth + 1])].append(float(took))
    for name, seconds in sorted(groups.items(), key=lambda entry: -sum(entry[1])):
        print(f"{sum(seconds):8.1f} s {len(seconds):6} tests  {name}")


if __name__ == "__main__":
    main()
