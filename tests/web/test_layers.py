# SPDX-License-Identifier: GPL-2.0-or-later
"""The page's sources: a folder uses only what stands before it, and no file, by whatever way, itself. Types count as well."""

import re
from pathlib import Path
from typing import Dict, List, Set

import pytest

from tests.web.browser import WEB

SOURCES = WEB / "src"
ABOVE = "."  # main.js and what it wires
FOLDERS = ("base", "runs", "charts", "views", ABOVE)
_IMPORT = re.compile(r"""(?:\bfrom\s+|\bimport\s*\(?\s*)'(\.[^']*)'""")


def imports(source: Path, text: str) -> List[Path]:
    return [(source.parent / found).resolve() for found in _IMPORT.findall(text)]


def folder(source: Path) -> str:
    parts = source.relative_to(SOURCES).parts
    return parts[0] if len(parts) > 1 else ABOVE


def used() -> Dict[Path, List[Path]]:
    return {source: imports(source, source.read_text()) for source in sorted(SOURCES.rglob("*.js"))}


def arrows_back(graph: Dict[Path, List[Path]]) -> List[str]:
    return [
        f"{source.relative_to(SOURCES)} uses {target.relative_to(SOURCES)}"
        for source, targets in graph.items()
        for target in targets
        if FOLDERS.index(folder(target)) > FOLDERS.index(folder(source))
    ]


def circles(graph: Dict[Path, List[Path]]) -> Set[Path]:
    """Files that are left when those which use nothing that is left are taken away, again and again."""
    left = dict(graph)
    while True:
        free = [source for source, targets in left.items() if not any(target in left for target in targets)]
        if not free:
            return set(left)
        for source in free:
            del left[source]


def test_folders_use_only_what_stands_before_them() -> None:
    graph = used()
    assert {folder(source) for source in graph} == set(FOLDERS)
    assert all(target.exists() for targets in graph.values() for target in targets)
    assert arrows_back(graph) == []
    views = [target for source, targets in graph.items() if folder(source) == "views" for target in targets]
    assert {target.name for target in views if folder(target) == "views"} == {"columns.js", "view.js"}


def test_no_file_uses_itself_by_way_of_others() -> None:
    assert circles(used()) == set()


@pytest.mark.parametrize("line", ["import { Calls } from '../views/calls.js';", "/** @type {import('../bars.js').Bar} */"])
def test_an_arrow_back_would_be_found(line: str) -> None:
    graph = used()
    run = SOURCES / "runs" / "run.js"
    graph[run] = graph[run] + imports(run, line)
    assert len(arrows_back(graph)) == 1 and run in circles(graph)
