# SPDX-License-Identifier: GPL-2.0-or-later
"""A run without anything that identifies its user or machine: for reports that are passed on.

Of a file stays its path within an installed package or Python's own library, and else its name; files of one name in several
directories stay apart by a number. Of what describes the run stays what is known to be harmless: versions, the board, figures. Texts of
the program's own (marks, regions, names of functions) lose paths, and the words that are the user's or the host's name.
"""

import re
from typing import Dict, List

from jmassif.model.run import Profile
from jmassif.model.run_info import OF_RANK


# Shown in place of a directory.
_SOMEWHERE = "…"

# From where on a path says nothing of its machine. The first that is found counts; what is before it goes.
_PACKAGED = re.compile(
    r".*/((?:site|dist)-packages/.+|lib(?:32|64)?/python3\.\d+t?/.+|python3\d+t?\.zip/.+|bin/[^/]+)", re.DOTALL
)
# In the name of a function: an absolute path of two names or more. In other texts: whatever has a slash in it.
_PATH = re.compile(r"(?:/[^\s'\"<>|:;,()\[\]{}=/]+){2,}")
_TOKEN = re.compile(r"[^\s'\"<>|:;,()\[\]{}=]*/[^\s'\"<>|:;,()\[\]{}=]*")

_KEPT = set(
    """pid ppid forked-from process start start-unix-ms time-unit memory jmassif recorder valgrind arch kernel page-size
    mem-total-bytes cpus board l4t python pytorch""".split()
)
_HARMLESS = re.compile(r"[A-Za-z0-9.+%-]{0,24}")  # values of options that name no file or function
_NAMED = ("option.owners", "option.alloc-fn", "option.ignore-fn", "option.jmassif-out-file", "option.code-cache")


def _base(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _secrets(profile: Profile) -> List[str]:
    """The user's and the host's name, as words, and the user's in paths of home directories."""
    manifest = profile.manifest
    words = {manifest.get("user", ""), manifest.get("host", ""), manifest.get("host", "").partition(".")[0]}
    for text in (*manifest.values(), *profile.strings.values()):
        words |= set(re.findall(r"/(?:home|Users)/([^/\s:]+)", text))
    return sorted((word for word in words if len(word) > 1), key=len, reverse=True)


class _Scrubber:
    """Takes paths and names of the user and the host from texts."""

    def __init__(self, profile: Profile) -> None:
        self._paths: Dict[str, str] = {}  # their names
        self._n_called: Dict[str, int] = {}  # how many paths have a name
        words = "|".join(map(re.escape, _secrets(profile)))
        self._names = re.compile(rf"(?<![A-Za-z0-9])(?:{words})(?![A-Za-z0-9])") if words else None

    def _name(self, path: str) -> str:
        """Files of one name stay apart."""
        if "/" in path and path not in self._paths:
            packaged = _PACKAGED.fullmatch(path)
            rest = packaged.group(1) if packaged else _base(path)
            number = self._n_called[rest] = self._n_called.get(rest, 0) + 1
            self._paths[path] = f"{_SOMEWHERE}{number if number > 1 else ''}/{rest}"
        return self._paths.get(path, path)

    def words(self, text: str) -> str:
        return self._names.sub(_SOMEWHERE, text) if self._names else text

    def path(self, text: str) -> str:
        """A path; what is compiled from a string has none: "<string>"."""
        if text.startswith("<"):
            return self.text(text)
        found = self._name(text)
        return found if _PACKAGED.fullmatch(text) else self.words(found)

    def function(self, text: str) -> str:
        """A function may well be called as the user is."""
        return _PATH.sub(lambda match: self._name(match.group()), text)

    def text(self, text: str) -> str:
        return self.words(_TOKEN.sub(lambda match: self._name(match.group()), text))


def _command(profile: Profile) -> str:
    """The program's own name, without arguments: of what was run the part that is the name of an object file as well."""
    objects = {_base(each.path) for each in profile.objects}
    objects |= {_base(profile.strings[frame[2]]) for frame in profile.frames.values()}
    first = _base(profile.manifest.get("command", "").split(" ")[0])
    return first if first and first in objects else "(program)"


def _frames(profile: Profile, scrub: _Scrubber) -> None:
    """Functions, object files and source files; their strings are made anew, so that no other is left."""
    strings = profile.strings
    ids: Dict[str, int] = {"": 0}

    def string(text: str) -> int:
        return ids.setdefault(text, len(ids))

    for id_, (type_, function, object_, file, line, address) in profile.frames.items():
        places = string(scrub.path(strings[object_])), string(scrub.path(strings[file]))
        profile.frames[id_] = (type_, string(scrub.function(strings[function])), *places, line, address)
    profile.strings = {id_: text for text, id_ in ids.items()}


def _manifest(profile: Profile, scrub: _Scrubber) -> Dict[str, str]:
    kept: Dict[str, str] = {"command": _command(profile)}
    for key, value in profile.manifest.items():
        is_option = key.startswith("option.") and key not in _NAMED and _HARMLESS.fullmatch(value)
        is_rank = key in OF_RANK and value.isdecimal()
        if key in _KEPT or key.startswith("package.") or is_option or is_rank:
            kept[key] = scrub.words(value)
        elif key == "stopped":
            kept[key] = scrub.text(value)
    return kept


def anonymize(profile: Profile) -> None:
    """Remove from a run what identifies its user or machine. To be done before anything asks it for names."""
    scrub = _Scrubber(profile)
    profile.manifest = _manifest(profile, scrub)
    _frames(profile, scrub)
    profile.source_hashes = {}
    profile.thread_names = {number: scrub.text(name) for number, name in profile.thread_names.items()}
    profile.objects = [each._replace(soname=_base(each.soname), path=scrub.path(each.path)) for each in profile.objects]
    profile.marks = [each._replace(text=scrub.text(each.text)) for each in profile.marks]
    profile.regions = [each._replace(text=scrub.text(each.text)) for each in profile.regions]
    sums = [each._replace(text=scrub.text(each.text)) for each in profile.region_sums.values()]
    profile.region_sums = {each.text: each for each in sums}
    profile.scopes = [each._replace(name=scrub.text(each.name)) for each in profile.scopes]
    calls = [each._replace(name=scrub.text(each.name)) for each in profile.scope_sums.values()]
    profile.scope_sums = {each.name: each for each in calls}
    profile.failures = {(scrub.text(name), code): n for (name, code), n in profile.failures.items()}
    profile.exhaustions = {id_: each._replace(api=scrub.text(each.api)) for id_, each in profile.exhaustions.items()}
    profile.truncation = scrub.text(profile.truncation) if profile.truncation else profile.truncation
