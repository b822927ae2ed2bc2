# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints the table of tests/bench/run: medians of each tool, and jmassif's ratios as medians of the pairs.

    table.py FILE
"""
import statistics
import sys
from typing import Dict, List, Tuple

Run = Tuple[float, float, float]  # wall s, user s, peak RSS MiB


def read(path: str) -> Dict[str, Dict[str, List[Run]]]:
    workloads: Dict[str, Dict[str, List[Run]]] = {}
    with open(path) as lines:
        for line in lines:
            name, tool, _, wall, user, rss = line.rstrip("\n").split("\t")
            workloads.setdefault(name, {}).setdefault(tool, []).append((float(wall), float(user), int(rss) / 1024))
    return workloads


def ratio(ours: List[Run], theirs: List[Run], figure: int) -> float:
    """Runs with the same number ran one after the other, so their ratio is free of the machine's slow drift."""
    return statistics.median(a[figure] / b[figure] for a, b in zip(ours, theirs))


def main() -> None:
    print("| workload | tool | wall s | user s | peak RSS MiB | jmassif: wall | user | RSS |")
    print("|---|---|---|---|---|---|---|---|")
    for name, tools in read(sys.argv[1]).items():
        for tool, runs in tools.items():
            medians = [statistics.median(run[i] for run in runs) for i in range(3)]
            cells = [name, tool, f"{medians[0]:.1f}", f"{medians[1]:.1f}", f"{medians[2]:.0f}"]
            if tool == "jmassif":
                cells += ["", "", ""]
            else:
                cells += [f"× {ratio(tools['jmassif'], runs, figure):.2f}" for figure in range(3)]
            print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
