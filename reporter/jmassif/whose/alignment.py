# SPDX-License-Identifier: GPL-2.0-or-later
"""Names without what changes from release to release, so that two runs can be laid side by side.

libcudnn_ops_infer.so.8.6.0 of one JetPack is libcudnn_ops_infer.so.8.2.1 of another. What stays is the name that a person
would use for both: libcudnn_ops_infer.so.
"""

import re

_SUFFIX = re.compile(r"\.so(?:\.[\w.+-]*)?$")
# What stands between a library's name and .so: Python's ABI, auditwheel's hash, a version.
_INFIXES = (
    re.compile(r"\.(?:cpython|pypy)[\w-]*$|\.abi3$"),
    re.compile(r"(?:-[0-9a-f]{8}(?:\.[\d.]+)?)$"),
    re.compile(r"-\d+(?:\.\d+)*$"),
)
_PYTHON = re.compile(r"(lib)?python\d(?:\.\d+)?[a-z]*")
# Longer ones are nobody's, and patterns would be slow on them.
_MAX_LENGTH = 1000
_LOADER = re.compile(r"ld(?:-linux.*|-\d.*)?\.so.*")


def library(name: str) -> str:
    """An object file's base name, without versions: "libcudart-9335f6a2.so.11.0" → "libcudart.so"."""
    if len(name) > _MAX_LENGTH:
        return name
    if _LOADER.fullmatch(name):
        return "ld.so"
    stem = _SUFFIX.sub("", name)
    is_shared = stem != name
    if is_shared:
        for infix in _INFIXES:
            stem = infix.sub("", stem) or stem
    if _PYTHON.fullmatch(stem):
        stem = "libpython" if stem.startswith("lib") else "python"
    return f"{stem}.so" if is_shared else stem


_COMPILERS = re.compile(r"(?:\.(?:constprop|isra|part|cold|lto_priv)(?:\.\d+)*)+$|@+[\w.]+$")
_REVISION = re.compile(r"(?:_v\d+|_ptsz|_ptds)+$")


def function(name: str) -> str:
    """A function's name, without the compiler's additions and the version of its symbol."""
    return name if len(name) > _MAX_LENGTH else _COMPILERS.sub("", name) or name


def scope(name: str) -> str:
    """The name of a call: "cuCtxCreate_v4" → "cuCtxCreate", "dlopen libcudnn.so.8" → "dlopen libcudnn.so"."""
    if len(name) > _MAX_LENGTH:
        return name
    call, space, argument = name.partition(" ")
    call = _REVISION.sub("", call) or call
    return f"{call} {library(argument)}" if space else call
