# SPDX-License-Identifier: GPL-2.0-or-later
"""Source lines and inlined calls of native frames that the recorder left to readers: all those of an object file in one batch.

Such a frame has an address in the object's file. The file is asked only if it is the one that was recorded; else its separate
debug file, which has the same build-id. What turns out to be the same function and line is one frame afterwards, so that the
profile is as if the recorder had known the lines.
"""

import os
import re
import shutil
import struct
import subprocess
from array import array
from collections import defaultdict
from typing import Any, DefaultDict, Dict, List, NamedTuple, Optional, Set, Tuple

from jmassif.model.run import Profile
from jmassif.reader.merging import merge_accounts


# ---- object files ----

_DEBUG_FILES = "/usr/lib/debug/.build-id"
_SECTION = "IIQQQQ"  # name, type, flags, address, offset, size, of 64-bit files
_NOTES = 7  # type of section
_MOST_SECTIONS = 1024
_MOST_BYTES = 1 << 20  # of headers, names and notes
_BUILD_ID = 3  # type of note


class _Object(NamedTuple):
    build_id: str
    has_lines: bool


def _build_id(notes: bytes, order: str) -> str:
    at = 0
    while at + 12 <= len(notes):
        name_size, size, type_ = struct.unpack_from(order + "3I", notes, at)
        begin = at + 12 + (name_size + 3 & ~3)
        if type_ == _BUILD_ID and notes[at + 12 : at + 16] == b"GNU\0":
            return notes[begin : begin + size].hex()
        at = begin + (size + 3 & ~3)
    return ""


def _object(path: str) -> Optional[_Object]:
    """None if it is not there, or is not an object file."""
    try:
        if not os.path.isfile(path):  # a pipe would wait
            return None
        with open(path, "rb") as file:
            header = file.read(64)
            if header[:5] != b"\x7fELF\2" or len(header) < 64:
                return None

            def read(offset: int, size: int) -> bytes:
                file.seek(offset)
                return file.read(min(size, _MOST_BYTES))

            order = "<" if header[5] == 1 else ">"
            (offset,), (size, n, names_at) = struct.unpack_from(order + "Q", header, 40), struct.unpack_from(
                order + "3H", header, 58
            )
            table = read(offset, size * n)
            sections = [struct.unpack_from(order + _SECTION, table, size * i) for i in range(min(n, _MOST_SECTIONS))]
            names = read(*sections[names_at][4:6])
            ids = [_build_id(read(*each[4:6]), order) for each in sections if each[1] == _NOTES]
            called = {names[each[0] :].partition(b"\0")[0] for each in sections if each[5]}
            return _Object(next(filter(None, ids), ""), b".debug_line" in called)
    except (OSError, OverflowError, ValueError, IndexError, struct.error):
        return None


def _file_with_lines(path: str, version: str) -> str:
    """The object's file or its debug file, if it is the one that was recorded; else ""."""
    kind, _, numbers = version.partition(" ")
    if kind == "build-id" and re.fullmatch("[0-9a-f]{4,128}", numbers):
        for name in (path, f"{_DEBUG_FILES}/{numbers[:2]}/{numbers[2:]}.debug"):
            found = _object(name)
            if found and found.has_lines and found.build_id == numbers:
                return name
        return ""
    try:
        state = os.stat(path)
    except (OSError, ValueError):
        return ""
    is_same = version == f"file {state.st_size} {state.st_mtime_ns}"
    found = _object(path) if is_same else None
    return path if found and found.has_lines else ""


# ---- addr2line ----

# Any of these does, and they print nearly the same. The best is first: that of binutils 2.40 takes some headers' lines for the
# source file's (DWARF 5), and that of elfutils needs .debug_aranges, which clang leaves out.
_TOOLS = ("llvm-addr2line", "addr2line", "eu-addr2line")
_MOST_SECONDS = 60  # for an object file
_ADDRESS = re.compile(r"0x[0-9a-f]+")
# "/a/b.c:7", with elfutils "/a/b.c:7:15"; of an unknown line "??:0" or "/a/b.c:?"
_PLACE = re.compile(r"(.*?):(\d+|\?)(?::\d+)?(?: \(discriminator \d+\))?")
_MOST_INLINED = 64
# Object files whose inlined calls are not shown, as they name only internal helpers; below Valgrind likewise.
_C_LIBRARY = re.compile(r"(libc\.so|libc-2\.|libm\.so|libm-2\.|ld-linux|ld-2\.)")

_Call = Tuple[str, str, int]  # function, file and line


_OPERATOR = re.compile(r"operator(?:\(\)|<=>|<<=?|>>=?|<=?|>=?|->\*?)")
_ANONYMOUS = "(anonymous namespace)"
_UNNAMED = ("", "decltype")  # what is left of names that have another shape


def short_name(function: str) -> str:
    """The name of an inlined function as debug information has it, and Valgrind shows it: of
    "void std::vector<int>::emplace_back<int>(int&&)" that is "emplace_back<int>"."""
    if "(" not in function:
        return function
    depth = start = at = 0
    while at < len(function):
        operator = _OPERATOR.match(function, at)
        if operator and start == at:
            at = operator.end()
            continue
        if function.startswith(_ANONYMOUS, at):
            at += len(_ANONYMOUS)
            continue
        char = function[at]
        if char == "(" and not depth:
            break
        depth += (char in "<([{") - (char in ">)]}")
        is_operator = function.startswith("operator", start)  # "operator new", "operator std::string"
        if not depth and not is_operator and (char == " " or function.startswith("::", at - 1)):
            start = at + 1
        at += 1
    found = function[start:at]
    return function if found in _UNNAMED else found


def parse(output: str) -> Dict[int, List[_Call]]:
    """What addr2line -a -f -i has printed, by address: the innermost call first. Unknown names are "", and lines 0."""
    found: Dict[int, List[_Call]] = {}
    calls: List[_Call] = []
    function = None
    for line in output.splitlines():
        if function is None and _ADDRESS.fullmatch(line):
            calls = found[int(line, 16)] = []
        elif function is None:
            function = line.partition(" inlined at ")[0]  # as elfutils has it
        else:
            place = _PLACE.fullmatch(line)
            file, number = place.groups() if place else ("??", "0")
            is_known = file != "??" and number.isdecimal() and number != "0"
            calls.append((function if function != "??" else "", *((file, int(number)) if is_known else ("", 0))))
            function = None
    return found


def _ask(tool: str, path: str, addresses: Set[int]) -> Dict[int, List[_Call]]:
    command = [tool, "-e", path, "-a", "-f", "-i", "-C"]
    asked = "".join(f"0x{address:x}\n" for address in sorted(addresses))
    # The last answer counts: the first from binutils has the symbol around it for some inlined C++ functions.
    asked *= 2
    environment = {**os.environ, "LC_ALL": "C", "DEBUGINFOD_URLS": ""}  # nothing is fetched
    pipes: Dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    try:
        done = subprocess.run(command, input=asked.encode(), env=environment, timeout=_MOST_SECONDS, **pipes)
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    return parse(done.stdout.decode("utf-8", "surrogateescape"))


# ---- profiles ----

_Frame = Tuple[str, int, int, int, int, int]  # as Profile.frames has it


class _Frames:
    """Frames and strings of a profile, and more of both."""

    def __init__(self, profile: Profile) -> None:
        self._frames, self._strings = profile.frames, profile.strings
        self._string_of = {text: id_ for id_, text in profile.strings.items()}
        self._known: Dict[_Frame, int] = {}
        self._next, self._next_string = max(profile.frames) + 1, max(profile.strings) + 1

    def string(self, text: str) -> int:
        id_ = self._string_of.setdefault(text, self._next_string)
        if id_ == self._next_string:
            self._strings[id_] = text
            self._next_string += 1
        return id_

    def add(self, frame: _Frame) -> int:
        """The id of the frame of that function and line or, where the function has no name, of its address."""
        key = (*frame[:5], 0 if frame[1] else frame[5])
        id_ = self._known.setdefault(key, self._next)
        if id_ == self._next:
            self._frames[id_] = frame
            self._next += 1
        return id_


class _Source:
    """Calls at addresses of object files. Files that have changed or are gone are listed in `missing`."""

    def __init__(self, tool: str, is_anonymous: bool) -> None:
        self._tool = tool
        self._home = os.path.expanduser("~") if is_anonymous else ""  # it is ~ in the trace, and in answers
        self.missing: Set[str] = set()

    def calls(self, path: str, version: str, addresses: Set[int]) -> Dict[int, List[_Call]]:
        home, name = self._home, path.rpartition("/")[2]
        if home and path.startswith("~/"):
            path = home + path[1:]
        file = _file_with_lines(path, version) if path.startswith("/") else ""
        if not file:
            self.missing.add(name)
            return {}
        found = _ask(self._tool, file, addresses)
        if _C_LIBRARY.match(name):
            found = {address: calls[:1] for address, calls in found.items()}
        if home:
            for address, calls in found.items():
                found[address] = [(name, file.replace(home + "/", "~/"), line) for name, file, line in calls]
        return found


def find_lines(profile: Profile, is_wanted: bool = True) -> None:
    """Give frames their lines, and the calls inlined there frames of their own.

    Unless that is wanted, or without a tool or the file, they become one frame a function.
    """
    places, strings = profile.line_places, profile.strings
    wanted: DefaultDict[Tuple[int, int], Set[int]] = defaultdict(set)  # by object and its file's version
    for id_, (version, address) in places.items():
        wanted[profile.frames[id_][2], version].add(address)
    tool = next((name for name in _TOOLS if shutil.which(name)), "")
    found: Dict[Tuple[int, int], Dict[int, List[_Call]]] = {}
    if is_wanted and tool:
        source = _Source(tool, any(strings[object_].startswith("~/") for object_, _ in wanted))
        for (object_, version), addresses in wanted.items():
            found[object_, version] = source.calls(strings[object_], strings[version], addresses)
        if source.missing:
            names = ", ".join(sorted(source.missing))
            profile.without_lines = f"native code has no source lines, for the file has changed or is gone: {names}"
    elif is_wanted:
        profile.without_lines = "native code has no source lines: install addr2line (of binutils)"
    frames = _Frames(profile)
    chains: Dict[int, List[int]] = {}  # the frames that stand in place of one, the outermost first
    for id_, (version, address) in places.items():
        type_, function, object_, _, _, first = profile.frames.pop(id_)
        *inlined, (_, file, line) = found.get((object_, version), {}).get(address) or [("", "", 0)]
        chain = chains[id_] = [frames.add((type_, function, object_, frames.string(file), line, first))]
        for name, file, line in reversed(inlined[:_MOST_INLINED]):
            function = frames.string(short_name(name))
            chain.append(frames.add(("i", function, object_, frames.string(file), line, first)))
    profile.line_places = {}
    _replace(profile, chains)


def _replace(profile: Profile, chains: Dict[int, List[int]]) -> None:
    """Put chains of frames in place of frames; nodes with the same caller and frame become one."""
    parents, frames = array("I", [0]), array("I", [0])
    node_of = array("I", [0])  # by old node
    known: Dict[int, int] = {}  # by caller and frame
    for parent, frame in zip(profile.node_parent[1:], profile.node_frame[1:]):
        node = node_of[parent]
        for each in chains.get(frame) or (frame,):
            key = node << 32 | each
            found = known.get(key)
            if found is None:
                found = known[key] = len(frames)
                parents.append(node)
                frames.append(each)
            node = found
        node_of.append(node)
    profile.node_parent, profile.node_frame = parents, frames
    profile.accounts.nodes = array("I", map(node_of.__getitem__, profile.accounts.nodes))
    profile.scopes = [scope._replace(node=node_of[scope.node]) for scope in profile.scopes]
    merge_accounts(profile)
