# SPDX-License-Identifier: GPL-2.0-or-later
"""Types for the page's sources, from the records that the page's data is made of.

After a change to these run `PYTHONPATH=reporter python3 -m jmassif.html.typescript >reporter/web/src/runs/head.ts`.
"""

from typing import Any, Dict, Iterator

from jmassif.export.json import merged_schema
from jmassif.html.head import RUN, FleetPage, Together

_PLAIN = {"boolean": "boolean", "integer": "number", "number": "number", "string": "string", "null": "null"}
_WIDTH = 150  # of a line, as reporter/web/package.json has it


def _text(schema: Dict[str, Any], found: Dict[str, Dict[str, Any]]) -> str:
    """A type in TypeScript. Records that it names are added to `found`."""
    if "enum" in schema:
        return " | ".join(f"'{word}'" for word in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_text(each, found) for each in schema["anyOf"]))
    if "title" in schema:
        assert found.setdefault(schema["title"], schema) == schema, f"two records are called {schema['title']}"
        return str(schema["title"])
    if schema["type"] in _PLAIN:
        return _PLAIN[schema["type"]]
    if schema["type"] == "object":
        return f"Record<string, {_text(schema['additionalProperties'], found)}>"
    if isinstance(schema["items"], list):
        return f"[{', '.join(_text(each, found) for each in schema['items'])}]"
    text = _text(schema["items"], found)
    return f"({text})[]" if "anyOf" in schema["items"] else f"{text}[]"


def typescript() -> Iterator[str]:
    """The lines of a module, as prettier has them."""
    yield from ["// SPDX-License-Identifier: GPL-2.0-or-later", "//"]
    yield from ["// The JSON in a page. Written by reporter/jmassif/html/typescript.py: do not edit.", ""]
    roots = {"RunHead": RUN, "Together": (Together,), "FleetPage": (FleetPage,)}
    pending = {name: merged_schema(name, parts) for name, parts in roots.items()}
    written: Dict[str, Dict[str, Any]] = {}
    while pending:
        name, schema = pending.popitem()
        if name in written:
            assert written[name] == schema, f"two records are called {name}"
            continue
        written[name] = schema
        if "description" in schema:
            yield f"/** {schema['description']} */"
        members = [f"{member}: {_text(type_, pending)};" for member, type_ in schema["properties"].items()]
        line = f"export type {name} = {{ {' '.join(members)[:-1]} }};"
        if len(line) <= _WIDTH:
            yield line
        else:
            yield from [f"export type {name} = {{", *(f"    {member}" for member in members), "};"]


if __name__ == "__main__":
    print("\n".join(typescript()))
