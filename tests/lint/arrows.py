#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Hold the tree to the floors of docs/architecture.md.

    tests/lint/arrows.py [ROOT]

A folder uses only what stands above it in its list, no files use each other in a circle, and the lists name all that is
there and nothing else. Each fault is a line, FILE:LINE: text; the exit status is 1 if there is any.
"""

import os
import re
import sys
from pathlib import Path
from typing import Dict, Iterator, List, Set, Tuple

LIST = "docs/architecture.md"
HALVES = {"jmassif": (".c", ".h", ".def"), "reporter/jmassif": (".py",), "reporter/web/src": (".js", ".ts", ".tsx")}
NO_SOURCE = {"jmassif": "configured.h", "reporter/jmassif": "-", "reporter/web/src": "*.d.ts"}
USES = {
    "jmassif": r'^\s*#\s*include\s*"(?!pub_tool_|libvex)([^"]+)"',
    # A module's full name in a string is imported later.
    "reporter/jmassif": r"\bfrom jmassif((?:\.\w+)*) import \(?(?=([\w\s,]+))|\bjmassif\.([\w.]+)",
    # Types in comments are imports too: import('./run.js').Run.
    "reporter/web/src": r"""(?:\bfrom\s*|\bimport\s*\(?\s*)['"`](\.[^'"`]+)['"`]""",
}
VALGRINDS = r"\b(?:VG_|VKI_|SysRes|pub_tool_|libvex)"  # names that only one host's files use
HOST = "host/valgrind/"
# These call no analysis but through the report models. Types and constants are free, and so are queries whose key a user's option
# names: they cannot be computed once.
RENDERERS = ("render/", "export/", "html/", "cli/")
QUERIES = ("aggregate", "calltree", "moments")
MODELS = """summary.build_report summary.default_moment summary.moment_of processes.build_job_report processes.join
    compare.compare compare.measure budgets.judge budgets.parse_budget budgets.parse_budgets
    fit.fit_batches fit.try_settings levers.levers_of
    range_diff.between device_history.device_history""".split()
FORBIDDEN = {".h": VALGRINDS, ".c": VALGRINDS + r"|^\s*extern\b.*\bjm_\w+", ".py": r"^\s*from \."}


def read_lists(text: str) -> Dict[str, Dict[str, int]]:
    """For each half of the tree the ranks of files and folders. A folder's name ends with a slash."""
    lists: Dict[str, Dict[str, int]] = {}
    for part in text.partition("\n## The floors\n")[2].partition("\n## ")[0].split("\n### ")[1:]:
        floors = lists[part.partition("`")[2].partition("/`")[0]] = {}
        outer = ""
        for rank, (indent, row) in enumerate(re.findall(r"^    ( *)(\S+(?: \| \S+)*)", part, re.MULTILINE)):
            names = row.split(" | ")
            outer = outer if indent else names[0]
            floors.update({(outer if indent else "") + name.rstrip("*"): rank for name in names})
    return lists


def uses(half: str, file: str, text: str) -> Iterator[Tuple[int, List[str]]]:
    """The line of each use, and the files that it may mean: the first of those that are there."""
    for match in re.finditer(USES[half], text, re.MULTILINE):
        line = text.count("\n", 0, match.end()) + 1
        if half == "jmassif":
            yield line, [match[1], re.sub(r"_([a-z]+)\.h$", r".\1", match[1])]  # x_rules.h is made of x.rules
        elif half == "reporter/web/src":
            name = os.path.normpath(os.path.join(os.path.dirname(file), match[1]))
            yield line, [name] + [
                re.sub(r"\.js$", suffix, name) for suffix in (".ts", ".tsx", ".d.ts")
            ]  # as tsc resolves it
        else:
            module = (match[1] or match[3] or "").strip(".").replace(".", "/")
            for name in (match[2] or "").split(","):
                inner = "/".join(filter(None, [module, *name.split()[:1]]))
                yield line, [f"{inner}.py", f"{inner}/__init__.py", f"{module}.py", f"{module}/__init__.py".lstrip("/")]


def calls_of_analyses(text: str) -> Iterator[Tuple[int, str]]:
    """Functions that a renderer imports of analyses, with the line: MODULE.NAME."""
    pattern = r"^[ \t]*(?:from jmassif\.(analysis(?:\.\w+)?) import |import jmassif\.(?=analysis\b))(\([^)]*\)|.*)"
    for match in re.finditer(pattern, text, re.MULTILINE):
        module = (match[1] or "").partition(".")[2]
        for name in re.findall(r"[\w.]+", re.sub(r"#.*| as \w+", "", match[2])):
            call = f"{module}.{name}".lstrip(".")
            if module not in QUERIES and call not in MODELS and name == name.lower():
                yield text.count("\n", 0, match.start()) + 1, call


def in_circles(graph: Dict[str, Set[str]]) -> List[str]:
    """Leave out, again and again, what uses nothing that is left, or is used by nothing."""
    left = set(graph)
    while True:
        used = set().union(*(graph[module] for module in left))
        ends = {module for module in left if module not in used or left.isdisjoint(graph[module])}
        if not ends:
            return sorted(left)
        left -= ends


def check(root: Path, half: str, floors: Dict[str, int]) -> Iterator[str]:
    top = root / half
    paths = sorted(path for path in top.rglob("*") if path.suffix in HALVES[half] and not path.match(NO_SOURCE[half]))
    files = {path.relative_to(top).as_posix(): path.read_text("utf-8") for path in paths}
    floor = {file: max((name for name in floors if f"{file}/".startswith(name)), key=len, default="") for file in files}
    module = {file: re.sub(r"\.[ch]$", "", file) for file in files}  # x.c and x.h are one
    graph: Dict[str, Set[str]] = {name: set() for name in module.values()}
    for name in floors:
        if not (top / name).exists():
            yield f"{LIST}:1: lists {half}/{name}, where nothing is"
    for file, text in files.items():
        if not floor[file]:
            yield f"{half}/{file}:1: is not in the list of {LIST}"
        for match in re.finditer(FORBIDDEN.get(Path(file).suffix, r"(?!)"), text, re.MULTILINE):
            if not file.startswith(HOST):
                yield f"{half}/{file}:{text.count(chr(10), 0, match.end()) + 1}: not allowed here: {match[0].strip()}"
        for line, candidates in uses(half, file, text):
            used = next((name for name in candidates if name in files), "")
            if used:
                graph[module[file]] |= {module[used]} - {module[file]}
                if floor[used] != floor[file] and floors.get(floor[used], -1) >= floors.get(floor[file], 1000):
                    yield f"{half}/{file}:{line}: {floor[file]} uses {used}, which does not stand above it"
            elif half != "reporter/jmassif" and not any((top / name).exists() for name in candidates):
                yield f"{half}/{file}:{line}: {candidates[0]} is not in {half}/"
        for line, call in calls_of_analyses(text) if file.startswith(RENDERERS) else ():
            yield f"{half}/{file}:{line}: calls {call}, not through a report model"
    for name in in_circles(graph):
        yield f"{half}/{name}:1: is in a circle of files that use each other"


def main(root: Path) -> int:
    lists = read_lists((root / LIST).read_text("utf-8"))
    faults = [fault for half in HALVES for fault in check(root, half, lists.get(half, {}))]
    print(*faults, sep="\n", end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(Path(*sys.argv[1:]) if sys.argv[1:] else Path(__file__).resolve().parents[2]))
