# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints the table of tests/bench/run: medians of each tool, and jmassif's ratios as medians of the pairs. Runs that keep
translations have a table of their own, with their ratios.

    table.py FILE
"""
import statistics
import sys
from typing import Dict, List, Tuple

Run = Tuple[float, float, float]  # wall s, user s, peak RSS MiB
Workloads = Dict[str, Dict[str, List[Run]]]  # by tool

KEEPING = ("first", "second")


def read(path: str) -> Workloads:
    workloads: Workloads = {}
    with open(path) as lines:
        for line in lines:
            name, tool, _, wall, user, rss = line.rstrip("\n").split("\t")
            workloads.setdefault(name, {}).setdefault(tool, []).append((float(wall), float(user), int(rss) / 1024))
    return workloads


def ratio(ours: List[Run], theirs: List[Run], figure: int) -> float:
    """Runs with the same number ran one after the other, so their ratio is free of the machine's slow drift."""
    return statistics.median(a[figure] / b[figure] for a, b in zip(ours, theirs))


def cells_of(name: str, tool: str, runs: List[Run]) -> List[str]:
    medians = [statistics.median(run[i] for run in runs) for i in range(3)]
    return [name, tool, f"{medians[0]:.1f}", f"{medians[1]:.2f}", f"{medians[2]:.0f}"]


def print_tools(workloads: Workloads) -> None:
    print("| workload | tool | wall s | user s | peak RSS MiB | jmassif: wall | user | RSS |")
    print("|---|---|---|---|---|---|---|---|")
    for name, tools in workloads.items():
        for tool, runs in tools.items():
            if tool in KEEPING:
                continue
            cells = cells_of(name, tool, runs)
            ours = "native" if "native" in tools else "jmassif"
            if tool == ours or ours not in tools:
                cells += ["", "", ""]
            else:
                cells += [f"× {ratio(tools[ours], runs, figure):.2f}" for figure in range(3)]
            print("| " + " | ".join(cells) + " |")


def print_keeping(workloads: Workloads) -> None:
    print("| workload | run | wall s | user s | peak RSS MiB | × jmassif: wall | user | RSS | × none: user |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, tools in workloads.items():
        for tool in KEEPING:
            if tool not in tools:
                continue
            cells = cells_of(name, tool, tools[tool])
            for other, figures in (("jmassif", (0, 1, 2)), ("none", (1,))):
                for figure in figures:
                    cells.append(f"{ratio(tools[tool], tools[other], figure):.2f}" if other in tools else "")
            print("| " + " | ".join(cells) + " |")


def main() -> None:
    workloads = read(sys.argv[1])
    print_tools(workloads)
    if any(tool in KEEPING for tools in workloads.values() for tool in tools):
        print()
        print_keeping(workloads)


if __name__ == "__main__":
    main()
