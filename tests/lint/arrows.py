#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Holds the tree to the floors that docs/architecture.md lists.

    tests/lint/arrows.py [ROOT]

In each half (the recorder's C, the reporter's Python, the page's JavaScript) a folder uses only what stands above it in
the half's list, no files go round in a circle, and nothing is missing in the list or only there. In C no declaration
leads around an include, each include names its folder, and one header is the door to Valgrind's. Files and functions
stay short. Each fault is one line, FILE:LINE: what is wrong; the exit status is 1 if there is any, and 2 if there is no
list to go by.

The list: below the heading "The floors" each half has a heading of its own that ends with its folder in backticks, and an
indented block with a name a line, two spaces or more, and what lives there (for people):

    ### The recorder, `jmassif/`

        base/              uses nothing
        heap/ | driver/    side by side: neither uses the other
        questions/         a folder whose insides have an order of their own
            *              its files that have no line here
            job/
        main.c

A name with a slash is a folder, one without is a file (of x.c and x.h, which are one module, either; in Python and
JavaScript with its suffix). In a folder without an inner list all files may use each other, but not in a circle.
"""

import ast
import os
import re
import sys
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

LIST = "docs/architecture.md"
HEADING = "The floors"
EVERY_OTHER = "*"

# The one header that may include Valgrind's.
DOOR = "base/compat.h"
LONGEST_FUNCTION = 60


class Fault(NamedTuple):
    path: str  # from the root of the tree
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


class Use(NamedTuple):
    """One file names another, both as paths from the half's folder."""

    line: int
    user: str
    used: str


class Floor(NamedTuple):
    """A name in a half's list."""

    line: int  # of the list's file
    rank: int
    inside: Dict[str, "Floor"]  # by name; empty: no inner list


Floors = Dict[str, Floor]


class ListError(Exception):
    """There is no list to go by."""


# ---- the list ------------------------------------------------------------------------------------------------------


def read_floors(text: str) -> Dict[str, Floors]:
    """By the half's folder, without the last slash."""
    halves: Dict[str, Floors] = {}
    half: Optional[Floors] = None
    is_ours = False
    open_lists: List[Tuple[int, Floors]] = []  # the indents that we are in, and the list of each
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            is_ours = line[3:].strip() == HEADING
            half = None
        elif is_ours and line.startswith("### "):
            named = re.search(r"`([^`]+)/`\s*$", line)
            half = halves.setdefault(named.group(1), {}) if named else None
            open_lists = []
        elif half is not None and line.startswith("    ") and line.strip():
            indent = len(line) - len(line.lstrip())
            _read_row(number, indent, line.strip(), half, open_lists)
    if not halves or not all(halves.values()):
        raise ListError(f"{LIST}: no list of folders below the heading '## {HEADING}'")
    return halves


def _read_row(number: int, indent: int, row: str, half: Floors, open_lists: List[Tuple[int, Floors]]) -> None:
    while open_lists and indent < open_lists[-1][0]:
        open_lists.pop()
    if not open_lists:
        open_lists.append((indent, half))
    if indent > open_lists[-1][0]:
        last = open_lists[-1][1]
        outer = [name for name in last if last[name].rank == len(last) - 1]
        if len(outer) != 1 or not outer[0].endswith("/"):
            raise ListError(f"{LIST}:{number}: what is further in belongs to one folder, in the line above")
        open_lists.append((indent, last[outer[0]].inside))
    floors = open_lists[-1][1]
    rank = len(floors)
    for name in re.split(r"\s{2,}", row)[0].split(" | "):
        if name in floors or " " in name:
            raise ListError(f"{LIST}:{number}: '{name}' is listed twice, or is no name")
        floors[name] = Floor(number, rank, {})


# ---- a half ----------------------------------------------------------------------------------------------------------


class Half:
    """A folder of sources: its modules, what they use, and what is wrong with them one by one."""

    suffixes: Tuple[str, ...] = ()
    longest_file = 0  # lines; 0: any

    def __init__(self, root: Path, folder: str) -> None:
        self.folder = folder
        self.top = root / folder
        self.files = sorted(
            path.relative_to(self.top).as_posix()
            for path in self.top.rglob("*")
            if path.suffix in self.suffixes and not self.is_generated(path)
        )
        self.texts = {file: (self.top / file).read_text("utf-8") for file in self.files}
        self.faults: List[Fault] = []

    def is_generated(self, path: Path) -> bool:
        return False

    def module(self, file: str) -> str:
        """What is one node of the graph."""
        return file

    def uses(self) -> List[Use]:
        raise NotImplementedError

    def tables(self, file: str) -> Set[int]:
        """The lines of a file that are tables and not code."""
        return set()

    def functions(self, file: str) -> Iterator[Tuple[int, str, int]]:
        """Line, name, number of lines."""
        return iter(())

    def fault(self, file: str, line: int, text: str) -> None:
        self.faults.append(Fault(f"{self.folder}/{file}", line, text))

    def check_lengths(self) -> None:
        for file in self.files:
            length = len(self.texts[file].splitlines()) - len(self.tables(file))
            if self.longest_file and length > self.longest_file:
                self.fault(file, 1, f"{length} lines without tables, more than {self.longest_file}")
            for line, name, n_lines in self.functions(file):
                if n_lines > LONGEST_FUNCTION:
                    self.fault(file, line, f"{name}() has {n_lines} lines, more than {LONGEST_FUNCTION}")


# ---- C -----------------------------------------------------------------------------------------------------------------

INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b[ \t]*(.*)$", re.MULTILINE)
VALGRINDS = re.compile(r"^(?:.*/)?(?:pub_tool_|libvex)[a-z_0-9]*\.h$")
# A declaration at the left margin that names a function or a variable: all of it up to its semicolon.
DECLARATION = re.compile(r"^(?!static\b|typedef\b|return\b|else\b|\}|#)[A-Za-z_][^;{}=#]*;", re.MULTILINE)
# What would be in the way of finding the name in it.
OF_COMPILER = re.compile(r"__(?:typeof|attribute)__ *\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")
# The same inside of a function.
INNER_DECLARATION = re.compile(
    r"^[ \t]+(?:extern\b[^;(]*?(\w+)\s*[(\[;]|(?!return\b|else\b|do\b|goto\b)\w[\w ]*[ *](jm_\w+)\([^;{}()]*\);)",
    re.MULTILINE,
)
DECLARED = re.compile(r"[\w\s*]*?[\s*]([A-Za-z_]\w*)\s*(\(|\[|;)")
# What a .c file may declare by itself: what the linker leads elsewhere (--wrap; also by the names that configure has for
# it), what Valgrind's core has in no header that tools get, and what a profiled program may or may not have.
THE_LINKERS_OR_CORES = re.compile(
    r"^(__wrap_|__real_|WRAP_|REAL_|VG_$|ML_$|vgPlain_|vgModuleLocal_|amd64g_|__errno_location$)"
)


class Recorder(Half):
    suffixes = (".c", ".h", ".def")
    longest_file = 600

    def __init__(self, root: Path, folder: str) -> None:
        super().__init__(root, folder)
        self.code = {file: without_comments(text) for file, text in self.texts.items()}

    def is_generated(self, path: Path) -> bool:
        return path.name == "configured.h" or self.is_made_of_data(path)

    @staticmethod
    def is_made_of_data(path: Path) -> bool:
        """The build makes x_rules.h of x.rules beside it."""
        source = re.sub(r"_([a-z]+)\.h$", r".\1", path.name)
        return source != path.name and path.with_name(source).exists()

    def module(self, file: str) -> str:
        return re.sub(r"\.[ch]$", "", file)

    def uses(self) -> List[Use]:
        found = []
        for file in self.files:
            # A quoted name would be gone with the strings.
            for match in INCLUDE.finditer(without_comments(self.texts[file], keep_strings=True)):
                line = line_of(self.texts[file], match.start())
                used = self._included(file, line, match.group(1).strip())
                if used:
                    found.append(Use(line, file, used))
        self._check_declarations()
        return found

    def _included(self, file: str, line: int, argument: str) -> Optional[str]:
        named = re.match(r'(["<])([^">]+)[">]', argument)
        if not named:
            self.fault(file, line, f"includes {argument}, which is no name of a file")
            return None
        name = named.group(2)
        if VALGRINDS.match(name):
            if file != DOOR:
                self.fault(file, line, f"includes {name}: only {DOOR} includes Valgrind's headers for tools")
            return None
        if name in self.texts:
            return name
        if named.group(1) == "<" or self.is_made_of_data(self.top / name):
            return None
        beside = os.path.normpath(os.path.join(os.path.dirname(file), name))
        meant = [beside] if beside in self.texts else [other for other in self.files if Path(other).name == name]
        if meant:
            self.fault(file, line, f'includes "{name}" without its folder: "{meant[0]}"')
            return meant[0]
        self.fault(file, line, f'includes "{name}", which is not in {self.folder}/')
        return None

    def _check_declarations(self) -> None:
        """A declaration of what another module defines is an arrow that no include shows."""
        defined = {name: file for file in self.files if file.endswith(".c") for name in self._defined(file)}
        for file in self.files:
            for line, name, is_extern in self._declared(file):
                if THE_LINKERS_OR_CORES.match(name):
                    continue
                if file.endswith(".c") and is_extern:
                    self.fault(file, line, f"declares {name}: include the header of the module that it is of")
                elif file.endswith(".h") and name in defined and self.module(defined[name]) != self.module(file):
                    self.fault(
                        file, line, f"declares {name} of {defined[name]}: that is for {self.module(defined[name])}.h"
                    )

    def _declared(self, file: str) -> Iterator[Tuple[int, str, bool]]:
        """Of what is declared: the line, the name, and whether this is something that the file does not define itself."""
        own = set(self._defined(file))
        outer = self._outer_code(file)
        for match in DECLARATION.finditer(outer):
            declared = DECLARED.match(OF_COMPILER.sub("int", match.group()))
            if declared:
                name, is_function = declared.group(1), declared.group(2) == "("
                is_extern = match.group().startswith("extern") or (is_function and name not in own)
                yield line_of(outer, match.start()), name, is_extern
        if file.endswith(".c"):
            for match in INNER_DECLARATION.finditer(self.code[file]):
                yield line_of(self.code[file], match.start()), match.group(1) or match.group(2), True

    def _outer_code(self, file: str) -> str:
        """Without what is inside of braces that begin or end at the left margin, lines kept."""
        code = re.sub(r"^#(?:[^\n]*\\\n)*[^\n]*", lambda m: "\n" * m.group().count("\n"), self.code[file], flags=re.M)
        return re.sub(
            r"^[^\n]*\{[ \t]*\n(?:[^}\n][^\n]*\n|\n)*\}",
            lambda m: "{" + "\n" * m.group().count("\n") + "}",
            code,
            flags=re.M,
        )

    def _defined(self, file: str) -> Iterator[str]:
        for _, name, _ in self._bodies(file):
            yield name
        for match in re.finditer(
            r"^(?!static\b|extern\b|typedef\b)[A-Za-z_][\w\s*]*?[\s*](\w+)(?:\[[^=;]*\])?(?: = |;)",
            self._outer_or_initialised(file),
            re.MULTILINE,
        ):
            yield match.group(1)

    def _outer_or_initialised(self, file: str) -> str:
        return re.sub(r"^(.* = )\{$", r"\1", self.code[file], flags=re.MULTILINE)

    def _bodies(self, file: str) -> Iterator[Tuple[int, str, Tuple[int, int]]]:
        """Of each function: its first line, its name, and the lines of its braces, which stand at the left margin."""
        lines = self.code[file].split("\n")
        for opening, text in enumerate(lines, 1):
            if text.rstrip() != "{":
                continue
            closing = next((n for n in range(opening, len(lines)) if lines[n].startswith("}")), len(lines) - 1) + 1
            first = opening
            while first > 1 and re.match(r"[^#}\s].*[^;}\s]\s*$|\s+\S.*[^;}\s]\s*$", lines[first - 2]):
                first -= 1
            head = re.search(r"(\w+)\s*\(", OF_COMPILER.sub("", " ".join(lines[first - 1 : opening - 1])))
            if head:
                yield first, head.group(1), (opening, closing)

    def tables(self, file: str) -> Set[int]:
        lines = self.code[file].split("\n")
        if file.endswith(".def"):
            return set(range(1, len(lines)))
        inside: Set[int] = set()
        for number, text in enumerate(lines, 1):
            opened = re.match(r"(\s*)\S.*= \{\s*$", text)
            if opened and number not in inside:
                ends = (n for n in range(number, len(lines)) if re.match(re.escape(opened.group(1)) + r"\}", lines[n]))
                inside.update(range(number, next(ends, number - 1) + 2))
        return inside

    def functions(self, file: str) -> Iterator[Tuple[int, str, int]]:
        tables = self.tables(file)
        for first, name, (_, closing) in self._bodies(file):
            yield first, name, len(set(range(first, closing + 1)) - tables)


def without_comments(text: str, keep_strings: bool = False) -> str:
    """C with blanks in place of comments, and of what strings say."""

    def blank(match: "re.Match[str]") -> str:
        found = match.group()
        if found[0] in "\"'":
            return found if keep_strings else found[0] + " " * (len(found) - 2) + found[0]
        return re.sub(r"[^\n]", " ", found)

    return re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", blank, text, flags=re.DOTALL)


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


# ---- Python ------------------------------------------------------------------------------------------------------------


class Reporter(Half):
    suffixes = (".py",)
    longest_file = 400

    def __init__(self, root: Path, folder: str) -> None:
        super().__init__(root, folder)
        self.package = Path(folder).name
        self.trees = {file: ast.parse(text) for file, text in self.texts.items()}
        self.by_name = {self._dotted(file): file for file in self.files}

    def _dotted(self, file: str) -> str:
        parts = [self.package, *file[: -len(".py")].split("/")]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def uses(self) -> List[Use]:
        found = set()
        for file in self.files:
            for line, name in self._imported(file):
                used = self.by_name.get(name)
                if used and used != file:
                    found.add(Use(line, file, used))
        return sorted(found)

    def _imported(self, file: str) -> Iterator[Tuple[int, str]]:
        """Names of modules, of which some may be no modules of ours."""
        for node in ast.walk(self.trees[file]):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield node.lineno, alias.name
            elif isinstance(node, ast.ImportFrom):
                package = self._from(file, node)
                for alias in node.names:
                    inner = f"{package}.{alias.name}"
                    yield node.lineno, inner if inner in self.by_name else package
            else:
                # A module's full name in a string is imported later.
                text = getattr(node, "value", getattr(node, "s", None))
                if isinstance(text, str) and text in self.by_name and text != self.package:
                    yield getattr(node, "lineno", 1), text

    def _from(self, file: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = [self.package, *file.split("/")[:-1]]
        package = ".".join(parts[: len(parts) - node.level + 1])
        return f"{package}.{node.module}" if node.module else package

    def tables(self, file: str) -> Set[int]:
        inside: Set[int] = set()
        for node in self.trees[file].body:
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(
                node.value, (ast.Dict, ast.List, ast.Tuple, ast.Set)
            ):
                inside.update(range(node.lineno, last_line(node) + 1))
        return inside

    def functions(self, file: str) -> Iterator[Tuple[int, str, int]]:
        for node in ast.walk(self.trees[file]):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield node.lineno, node.name, last_line(node) - node.lineno + 1


def last_line(node: ast.AST) -> int:
    """Before Python 3.8 that of the last thing in it that has a line."""
    lines = [0]
    for inner in ast.walk(node):
        lines += filter(None, (getattr(inner, "lineno", 0), getattr(inner, "end_lineno", 0)))
    return max(lines)


# ---- JavaScript ----------------------------------------------------------------------------------------------------------

# Types in comments are imports too: import('./run.js').Run.
IMPORTS = re.compile(
    r"""^[ \t]*(?:import|export)\b[^'";()]*?\bfrom\s*['"]([^'"]+)['"]
      | ^[ \t]*import\s*['"]([^'"]+)['"]
      | \bimport\(\s*['"`]([^'"`]+)['"`]""",
    re.MULTILINE | re.VERBOSE,
)


class Page(Half):
    suffixes = (".js", ".mjs")

    def uses(self) -> List[Use]:
        found = []
        for file in self.files:
            for match in IMPORTS.finditer(self.texts[file]):
                name = next(filter(None, match.groups()))
                used = os.path.normpath(os.path.join(os.path.dirname(file), name))
                if name.startswith(".") and used in self.texts:
                    found.append(Use(line_of(self.texts[file], match.start()), file, used))
                elif name.startswith(".") and not (self.top / used).exists():
                    line = line_of(self.texts[file], match.start())
                    self.fault(file, line, f"imports {name}, which is not there")
        return found


HALVES: Dict[str, Callable[[Path, str], Half]] = {
    "jmassif": Recorder,
    "reporter/jmassif": Reporter,
    "reporter/web/src": Page,
}


# ---- the order -----------------------------------------------------------------------------------------------------------


def floor_of(floors: Floors, half: Half, parts: Sequence[str]) -> Optional[Tuple[str, Floor]]:
    """The floor of a path's first part in a list, and the name that it has there."""
    if len(parts) > 1:
        names = [parts[0] + "/"]
    else:
        names = [name for name in floors if half.module(name) == half.module(parts[0])] + [EVERY_OTHER]
    return next(((name, floors[name]) for name in names if name in floors), None)


def check_listed(half: Half, floors: Floors, uses: Sequence[Use]) -> None:
    """All that is there is listed, and all that is listed is there."""
    involved = {file for use in uses for file in (use.user, use.used)}
    found: Set[int] = set()  # identities of floors
    missing = set()
    for file in half.files:
        if Path(file).name == "__init__.py" and file not in involved:
            continue  # only says that its folder is a package
        parts, inner = file.split("/"), floors
        for depth in range(len(parts)):
            if not inner and (depth == len(parts) - 1):
                break  # any file may be in a folder without a list
            floor = floor_of(inner, half, parts[depth:])
            if floor is None:
                name = "/".join(parts[: depth + 1]) + ("/" if depth < len(parts) - 1 else "")
                if half.module(name) not in missing:
                    half.fault(file, 1, f"{name} is not in the list of {LIST}")
                missing.add(half.module(name))
                break
            found.add(id(floor[1]))
            inner = floor[1].inside
    for name, floor_ in all_floors(floors):
        path = half.top / name
        if id(floor_) not in found and not (path.is_file() and path.suffix not in half.suffixes):
            half.faults.append(Fault(LIST, floor_.line, f"lists {half.folder}/{name}, where nothing is"))


def all_floors(floors: Floors, folder: str = "") -> Iterator[Tuple[str, Floor]]:
    for name, floor in floors.items():
        yield folder + name, floor
        yield from all_floors(floor.inside, folder + name)


def check_order(half: Half, floors: Floors, uses: Sequence[Use]) -> None:
    for use in uses:
        user, used, inner, folder = use.user.split("/"), use.used.split("/"), floors, ""
        while len(user) > 1 and len(used) > 1 and user[0] == used[0] and user[0] + "/" in inner:
            folder += user[0] + "/"
            inner = inner[user[0] + "/"].inside
            user, used = user[1:], used[1:]
        here, there = floor_of(inner, half, user), floor_of(inner, half, used)
        if not here or not there or here[1] is there[1]:
            continue  # said already, or in a folder without an order
        if there[1].rank == here[1].rank:
            why = "which stands beside it"
        elif there[1].rank > here[1].rank:
            why = "which stands below it"
        else:
            continue
        names = [
            folder + (name if name != EVERY_OTHER else path[0]) for (name, _), path in ((here, user), (there, used))
        ]
        half.fault(
            use.user,
            use.line,
            f"{names[0]} uses {use.used} of {names[1]}, {why}"
            if names[1].endswith("/")
            else f"{names[0]} uses {names[1]}, {why}",
        )


def check_circles(half: Half, uses: Sequence[Use]) -> None:
    """One fault for each knot of modules that reach each other: its shortest circle."""
    arrows: Dict[str, Dict[str, Use]] = {}
    for use in uses:
        user, used = half.module(use.user), half.module(use.used)
        if user != used:
            arrows.setdefault(user, {}).setdefault(used, use)
    told: Set[str] = set()
    circles = [circle for circle in (shortest_circle(arrows, module) for module in sorted(arrows)) if circle]
    for circle in sorted(circles, key=len):
        if told.isdisjoint(circle):
            told.update(reachable_back(arrows, circle[0]))
            first = arrows[circle[0]][circle[1]]
            steps = [f"{arrows[a][b].user}:{arrows[a][b].line}" for a, b in zip(circle[1:], circle[2:])]
            half.fault(first.user, first.line, f"goes round in a circle: {' → '.join(circle)} (by {', '.join(steps)})")


def shortest_circle(arrows: Dict[str, Dict[str, Use]], start: str) -> List[str]:
    """From a module back to it; empty: there is none."""
    paths = [[start]]
    seen: Set[str] = set()
    while paths:
        longer = []
        for path in paths:
            for module in arrows.get(path[-1], {}):
                if module == start:
                    return path + [start]
                if module not in seen:
                    seen.add(module)
                    longer.append(path + [module])
        paths = longer
    return []


def reachable_back(arrows: Dict[str, Dict[str, Use]], start: str) -> Set[str]:
    """The knot: what can be reached from a module and reaches it."""
    backwards: Dict[str, Dict[str, Use]] = {}
    for user, all_used in arrows.items():
        for used, use in all_used.items():
            backwards.setdefault(used, {})[user] = use
    return reachable(arrows, start) & reachable(backwards, start)


def reachable(arrows: Dict[str, Dict[str, Use]], start: str) -> Set[str]:
    seen, left = {start}, [start]
    while left:
        for module in arrows.get(left.pop(), {}):
            if module not in seen:
                seen.add(module)
                left.append(module)
    return seen


def check(root: Path) -> List[Fault]:
    """All faults of a tree, in the order of files and lines. ListError: it has no list."""
    try:
        halves = read_floors((root / LIST).read_text("utf-8"))
    except FileNotFoundError:
        raise ListError(f"{LIST} is not there") from None
    faults: List[Fault] = []
    for folder, floors in halves.items():
        if folder not in HALVES:
            raise ListError(f"{LIST}: {folder}/ is none of {', '.join(f'{name}/' for name in HALVES)}")
        half = HALVES[folder](root, folder)
        uses = half.uses()
        check_listed(half, floors, uses)
        check_order(half, floors, uses)
        check_circles(half, uses)
        half.check_lengths()
        faults += half.faults
    unlisted = [folder for folder in HALVES if folder not in halves]
    return sorted(faults) + [Fault(LIST, 1, f"{folder}/ has no list") for folder in unlisted]


def main(arguments: Sequence[str]) -> int:
    if len(arguments) > 1 or arguments[:1] in (["-h"], ["--help"]):
        print(__doc__.strip())
        return 0 if len(arguments) == 1 else 2
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent.parent
    try:
        faults = check(root)
    except ListError as error:
        print(error, file=sys.stderr)
        return 2
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
