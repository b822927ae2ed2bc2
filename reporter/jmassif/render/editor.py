# SPDX-License-Identifier: GPL-2.0-or-later
"""Links that open a line of source in an editor.

Whoever makes the page says which editor, as the beginning of an address; of a trace come a path and a number alone, and the path is
percent-encoded, so that nothing in it is anything but a path.
"""

import os
import re
from typing import NamedTuple
from urllib.parse import quote


# By name. A file is an absolute path, with its first slash.
EDITORS = {
    "vscode": "vscode://file{file}:{line}",
    "vscodium": "vscodium://file{file}:{line}",
    "cursor": "cursor://file{file}:{line}",
    "idea": "idea://open?file={file}&line={line}",
    "pycharm": "pycharm://open?file={file}&line={line}",
    "textmate": "txmt://open?url=file://{file}&line={line}",
}

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[!-~]*")
_LONGEST = 4096  # Linux's PATH_MAX
# What a browser would take for something to be run, or shown as a page of ours.
_REFUSED = ("javascript", "data", "vbscript", "blob", "about", "view-source")


class EditorError(ValueError):
    """The message is one line."""


class Editor(NamedTuple):
    template: str  # an address with {file} and {line} in it

    def link(self, path: str, line: int, home: str) -> str:
        """What opens a line; "" for a path that is none of a file. `home` is what paths begin in."""
        return self.pattern(path, home).replace("{line}", str(line))

    def pattern(self, path: str, home: str) -> str:
        """Likewise what opens any line of a file, with {line} for its number."""
        whole = os.path.join(home, path)
        if not path or not os.path.isabs(whole) or path.startswith("<") or not whole[: _LONGEST + 1].isprintable():
            return ""
        if len(whole) > _LONGEST:
            return ""
        # POSIX lets two slashes at the beginning be, and an address takes what follows them for a host.
        text = quote("/" + os.path.normpath(whole).lstrip("/"), safe="/", errors="surrogateescape")
        return self.template.replace("{file}", text)


def parse_editor(text: str) -> Editor:
    """A name of EDITORS, or an address. Raises EditorError."""
    template = EDITORS.get(text, text)
    scheme = template.partition(":")[0].lower()
    has_both = "{file}" in template and "{line}" in template
    if not _ADDRESS.fullmatch(template) or not has_both or scheme in _REFUSED or len(template) > 1000:
        names = ", ".join(EDITORS)
        raise EditorError(f'"{text[:60]}" is none of {names}, and no address with {{file}} and {{line}} in it')
    return Editor(template)
