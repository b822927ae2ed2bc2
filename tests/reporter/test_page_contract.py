# SPDX-License-Identifier: GPL-2.0-or-later
"""What the page is handed is what the typedefs in reporter/web/src/runs/data.js say that it is: each field, and no other."""

import json
import re
import struct
from typing import Any, Callable, Dict, Iterable, Iterator, List

import pytest

from jmassif.analysis.compare import Column, Stacks, compare, measure
from jmassif.analysis.processes import build_job_report, join
from jmassif.html import page as html
from jmassif.html.diff_page import comparison
from jmassif.html.data import report_of, run_data, together
from tests.reporter.test_exhaustion import two_failures
from tests.reporter.traces import ROOT, random_run, small_training_run

SOURCE = (ROOT / "reporter" / "web" / "src" / "runs" / "data.js").read_text(encoding="utf-8")
TOKEN = re.compile(r"\s*([A-Za-z_]\w*|'[^']*'|[{}\[\]<>:,|&])")

BASIC = {"string": (str,), "number": (int, float), "boolean": (bool,), "null": (type(None),)}

Check = Callable[[Any, str], Iterable[str]]  # from a value and where it is, to what is wrong with it


def field_texts(name: str) -> Dict[str, str]:
    """A typedef that is told property by property."""
    found = re.search(r"@typedef \{object\} %s\n(.*?)\*/" % name, SOURCE, re.DOTALL)
    assert found, name
    return {field: text for text, field in re.findall(r"@property \{(.*)\} (\w+)", found.group(1))}


def literal(name: str) -> str:
    found = re.search(r"@typedef \{(.*)\} %s\b" % name, SOURCE)
    assert found, name
    return found.group(1)


class Type:
    """A type as JSDoc has it, as far as the data needs: reads it, and says where a value is not of it."""

    def __init__(self, text: str) -> None:
        self.fields: Dict[str, Check] = {}  # of an object
        self._tokens: List[str] = TOKEN.findall(text) + [""]
        self._check = self._union()
        assert self._tokens == [""], f"{text}: not understood from {self._tokens}"

    def faults(self, value: Any, where: str) -> List[str]:
        return list(self._check(value, where))

    def _take(self, token: str) -> bool:
        is_next = self._tokens[0] == token
        if is_next:
            del self._tokens[0]
        return is_next

    def _union(self) -> Check:
        choices = [self._suffixed()]
        while self._take("|"):
            choices.append(self._suffixed())

        def check(value: Any, where: str) -> Iterator[str]:
            found: List[List[str]] = [list(choice(value, where)) for choice in choices]
            return iter([] if [] in found else found[0])

        return check

    def _suffixed(self) -> Check:
        check = self._one()
        while self._take("["):
            assert self._take("]")
            check = self._each(check)
        return check

    @staticmethod
    def _each(inner: Check) -> Check:
        def check(value: Any, where: str) -> Iterator[str]:
            if not isinstance(value, list):
                yield f"{where} is no list"
                return
            for number, item in enumerate(value):
                yield from inner(item, f"{where}[{number}]")

        return check

    def _one(self) -> Check:
        if self._take("{"):
            return self._object()
        if self._take("["):
            return self._tuple()
        name = self._tokens.pop(0)
        if name == "Record":
            return self._record()
        if name.startswith("'"):
            return lambda value, where: iter([] if value == name[1:-1] else [f"{where} is not {name}"])
        if name in BASIC:
            return lambda value, where: iter([] if type(value) in BASIC[name] else [f"{where} is no {name}"])
        return lambda value, where: iter(faults(name, value, where))

    def _object(self) -> Check:
        fields: Dict[str, Check] = {}
        while not self._take("}"):
            field = self._tokens.pop(0)
            assert self._take(":")
            fields[field] = self._union()
            self._take(",")
        self.fields = fields  # the outermost object is the last to end
        return fields_check(fields)

    def _tuple(self) -> Check:
        members: List[Check] = []
        while not self._take("]"):
            members.append(self._union())
            self._take(",")

        def check(value: Any, where: str) -> Iterator[str]:
            if not isinstance(value, (list, tuple)) or len(value) != len(members):
                yield f"{where} has not {len(members)} members"
                return
            for number, member in enumerate(members):
                yield from member(value[number], f"{where}[{number}]")

        return check

    def _record(self) -> Check:
        assert self._take("<")
        key = self._union()
        assert self._take(",")
        inner = self._union()
        assert self._take(">")

        def check(value: Any, where: str) -> Iterator[str]:
            for name, item in value.items():
                yield from key(name, f"{where}'s key {name}")
                yield from inner(item, f"{where}.{name}")

        return check


def fields_check(fields: Dict[str, Check]) -> Check:
    def check(value: Any, where: str) -> Iterator[str]:
        if not isinstance(value, dict):
            yield f"{where} is no object"
            return
        yield from (f"{where}.{name} is not written" for name in fields if name not in value)
        yield from (f"{where}.{name} is not in the typedef" for name in value if name not in fields)
        for name in fields:
            if name in value:
                yield from fields[name](value[name], f"{where}.{name}")

    return check


def fields_of(name: str) -> Dict[str, Check]:
    """With those of the typedefs that it extends: `A & {…}`."""
    if f"{{object}} {name}\n" in SOURCE:
        return {field: Type(text).faults for field, text in field_texts(name).items()}
    fields: Dict[str, Check] = {}
    *bases, own = literal(name).split(" & ")
    for base in bases:
        fields.update(fields_of(base))
    fields.update(Type(own).fields)
    return fields


def faults(name: str, value: Any, where: str) -> List[str]:
    is_object = f"{{object}} {name}\n" in SOURCE or literal(name).endswith("}")
    if is_object:
        return list(fields_check(fields_of(name))(value, where))
    return Type(literal(name)).faults(value, where)


def head_of(packed: bytes) -> Dict[str, Any]:
    (length,) = struct.unpack_from("<I", packed)
    head: Dict[str, Any] = json.loads(packed[4 : 4 + length].decode("utf-8"))
    return head


@pytest.mark.parametrize("make", [small_training_run, lambda: two_failures().trace, lambda: random_run(1)])
def test_what_is_written_of_a_run_is_what_is_told_of_it(make: Callable[[], Any]) -> None:
    (run,) = head_of(html.pack([run_data(report_of(make().load()))], "a title"))["runs"]
    assert faults("RunHead", run, "head") == []
    assert set(field_texts("RunHead")) == set(run)


def test_what_is_written_of_several_processes_is_what_is_told_of_them() -> None:
    job = join([("one", small_training_run().load()), ("other", random_run(1).load())])
    runs = [run_data(report_of(process.profile)) for process in job.members]
    head = head_of(html.pack(runs, "a title", together(build_job_report(job))))
    assert faults("Together", head["together"], "together") == []


def test_what_is_written_of_a_difference_is_what_is_told_of_it() -> None:
    traces = [small_training_run().load(), small_training_run().load(), random_run(1).load()]
    views, stacks = ["owner", "scope"], Stacks()
    runs = [measure(str(number), profile, views, "peak", stacks) for number, profile in enumerate(traces)]
    found = compare([Column("old", runs[:2]), Column("new", runs[2:])], views, 0)
    assert faults("Difference", json.loads(json.dumps(comparison(found))), "difference") == []


def test_a_field_that_is_missing_or_unknown_or_of_another_type_is_found() -> None:
    (run,) = head_of(html.pack([run_data(report_of(small_training_run().load()))], "a title"))["runs"]
    del run["pid"]
    run["novel"] = 1
    run["unit"] = "fortnights"
    run["kinds"][0]["is_handle"] = 3
    del run["scopes"][0]["host"]
    assert sorted(fault.split(" is ")[0] for fault in faults("RunHead", run, "head")) == [
        "head.kinds[0].is_handle",
        "head.novel",
        "head.pid",
        "head.scopes[0].host",
        "head.unit",
    ]
