# SPDX-License-Identifier: GPL-2.0-or-later
"""JSON Schema (draft 7) of records, from their annotations."""

import collections.abc
from typing import Any, Dict, List, Mapping, Sequence, Tuple, Union, get_type_hints

_PLAIN: Mapping[Any, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}
_LISTS = (list, List, Sequence, collections.abc.Sequence)
_OBJECTS = (dict, Dict, Mapping, collections.abc.Mapping)


def _record(type_: Any) -> Dict[str, Any]:
    hints = get_type_hints(type_)
    members = {name: schema_of(hints[name]) for name in type_._fields}
    required = list(members)
    if "usage" in members:  # export/json.py adds it where the whole is known
        members["share"] = {"type": "object", "additionalProperties": {"type": "number"}}
    return {"type": "object", "properties": members, "required": required, "additionalProperties": False}


def schema_of(type_: Any) -> Dict[str, Any]:
    """The schema of a NamedTuple, or of a type that annotates one of its fields. Raises TypeError for any other type."""
    if type_ is Any:
        return {}
    if type_ is type(None):
        return {"type": "null"}
    if type_ in _PLAIN:
        return {"type": _PLAIN[type_]}
    if hasattr(type_, "_fields"):
        return _record(type_)
    origin = getattr(type_, "__origin__", None)
    arguments: Any = getattr(type_, "__args__", ())
    if origin is Union:
        return {"anyOf": [schema_of(each) for each in arguments]}
    if origin in _OBJECTS:
        return {"type": "object", "additionalProperties": schema_of(arguments[1])}
    if origin in _LISTS or (origin in (tuple, Tuple) and arguments[-1] is Ellipsis):
        return {"type": "array", "items": schema_of(arguments[0])}
    if origin in (tuple, Tuple):
        items = [schema_of(each) for each in arguments]
        return {"type": "array", "items": items, "additionalItems": False, "minItems": len(items)}
    raise TypeError(f"no schema for {type_}")


def schema_of_file(parts: Sequence[Any], optional: Sequence[str], title: str) -> Dict[str, Any]:
    """The schema of an object that has the fields of several records; later ones replace those of the same name."""
    members: Dict[str, Any] = {}
    for part in parts:
        members.update(_record(part)["properties"])
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": title,
        "type": "object",
        "properties": members,
        "required": [name for name in members if name not in optional],
        "additionalProperties": False,
    }
