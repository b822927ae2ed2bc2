# SPDX-License-Identifier: GPL-2.0-or-later
"""Every format: its grammar, its sums against the model, strings that mean something to its readers."""

import csv
import gzip
import io
import json
import re
import shutil
import unicodedata
from itertools import product
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Sequence, Tuple

import pytest

from jmassif.analysis.aggregate import VALUES, ledger
from jmassif.analysis.moments import select
from jmassif.cli.report import FORMATS, writer
from jmassif.model.records import LISTED_KINDS, counted_blocks, side_of
from jmassif.model.run import Profile
from jmassif.model.run_info import run_id
from jmassif.reader.builder import load
from jmassif.render.view import BY, FOLDS, FormatError, View
from tests.reporter.commands import validator
from tests.reporter.consumers import PROFILE_PROTO, output_of
from tests.reporter.generate import generate
from tests.reporter.traces import ROOT, Trace, documented_example, random_run, small_training_run

# Words that end a field, a frame, a line or a string somewhere, or that a reader takes for something else.
HOSTILE = (
    "quote\" apostrophe' comma, semicolon; space",
    "newline\nreturn\rtab\t",
    "nul\x00bell\x07escape\x1b[2J",
    "byte \udce9\udcff of no UTF-8",
    "bidi \u202e line \u2028 é 漢 \U0001f600",
    "=1+1",
    "@SUM(A1)",
    "ends in 12",
    "(1) fn=(2) evil",
    "fl=x",
    "<script>alert(1)</script>",
    "back\\slash\\x41",
    "${} %s %d {0}",
    " ",
)


def hostile_run() -> Trace:
    trace = Trace(time_unit="ms", memory="unified", pid="7", start_unix_ms="1767323045000")
    for key in ("command", "host", "board", "package.nvidia-jetpack", "cwd"):
        trace.manifest(key, HOSTILE[0] + HOSTILE[1] + HOSTILE[2] + HOSTILE[3])
    trace.group("yours", "app")
    accounts = []
    for number, text in enumerate(HOSTILE):
        stack = [f"{text} (a{number}.c:5)", f"py {text} (/p/{text}.py:{number + 1})", f"main ({text or 'x'})"]
        accounts.append(trace.account("heap", "app", stack))
        trace.mark(number, text)
        trace.region_begin(number, text)
    lines = [f"x {number + 1} 0 1 {number} {number + 1} 0 {trace.string(text)}" for number, text in enumerate(HOSTILE)]
    lines += [f"e {trace.string(text)} 2 3" for text in HOSTILE]
    trace.lines += lines
    trace.snapshot(50, "time", {account: (1000 + account, 1) for account in accounts}, {"total": (50, {})})
    return trace


def large_numbers() -> Trace:
    trace = Trace(time_unit="B", memory="unified", pid="7", start_unix_ms="1")
    trace.group("yours", "app")
    large = trace.account("vmm", "app", ["main (a.c:1)"])
    trace.snapshot(2**53 - 1, "time", {large: (2**62 + 1, 1)}, {"total": (2**53 - 1, {})})
    trace.snapshot(2**53 + 1, "exit", {large: (3, 1)})
    return trace


def beyond_63_bits() -> Trace:
    trace = Trace()
    large = trace.account("vmm", "app", ["main (a.c:1)"])
    trace.snapshot(1, "time", {large: (2**63, 1)}, {"total": (1, {})})
    return trace


def recursive_run() -> Trace:
    """even calls odd calls even …: a call that a stack goes through more than once."""
    trace = Trace(time_unit="i")
    trace.group("yours", "app")
    for depth in (1, 2, 300):
        account = trace.account("heap", "app", ["even (a.c:1)", "odd (a.c:2)"] * depth + ["main (a.c:9)"])
        trace.snapshot(depth, "time", {account: (depth, 1)}, {"total": (depth, {})})
    return trace


def recorded() -> Profile:
    """Of docs/examples/train.py on the simulated Jetson."""
    return load(io.BytesIO(gzip.decompress((ROOT / "tests" / "data" / "small.jmassif.gz").read_bytes())))


def generated(n_snapshots: int = 60, n_stacks: int = 3000, seed: int = 1) -> Profile:
    stream = io.BytesIO()
    generate(stream, n_snapshots, n_stacks, seed)
    stream.seek(0)
    return load(stream)


RUNS: Dict[str, Callable[[], Profile]] = {
    "training": lambda: small_training_run().load(),
    "discrete": lambda: small_training_run("discrete").load(),
    "random": lambda: random_run(3).load(),
    "hostile": lambda: hostile_run().load(),
    "large numbers": lambda: large_numbers().load(),
    "recursive": lambda: recursive_run().load(),
    "start only": lambda: start_only().load(),
    "nothing": lambda: Trace().load(),
    "documented": lambda: load(io.BytesIO(documented_example())),
    "recorded": recorded,
    "generated": generated,
}


def start_only() -> Trace:
    trace = Trace()
    trace.snapshot(0, "start")
    return trace


@pytest.fixture(scope="module")
def profiles() -> Dict[str, Profile]:
    return {name: make() for name, make in RUNS.items()}


def view(form: str, **chosen: Any) -> View:
    return View(
        chosen.get("selector"),
        chosen.get("threshold", 0),
        chosen.get("by") or (FORMATS[form].by or BY)[0],
        70,
        chosen.get("fold"),
        (),
        chosen.get("value", "live-bytes"),
    )


def written(form: str, profile: Profile, **chosen: Any) -> str:
    return "".join(line + "\n" for line in writer(form)(profile, view(form, **chosen)))


# ---- the model's sums, in the order of VALUES --------------------------------------------------


def expected(profile: Profile, selector: str = "peak") -> List[int]:
    """By the ledger, and by what each account says of its whole life."""
    total = ledger(profile, select(profile, selector).composition).total
    sums = [total.bytes, total.blocks, 0, 0, 0]
    for account, counts in profile.counts().items():
        kind = profile.accounts[account].kind
        if kind not in LISTED_KINDS:
            sums[2] += counts.bytes
            sums[3] += counted_blocks(kind, counts.blocks)
            sums[4] += counted_blocks(kind, counts.temporaries)
    return sums


def by_owner(profile: Profile, selector: str = "peak") -> Dict[str, Tuple[int, int]]:
    """(host, device) bytes."""
    table = ledger(profile, select(profile, selector).composition)
    return {row.name: (row.usage.host_bytes, row.usage.device_bytes) for row in table.owners if row.bytes}


RUN = pytest.mark.parametrize("name", sorted(RUNS))

# ---- folded --------------------------------------------------------------------------------------


def folded_lines(text: str) -> Iterator[Tuple[List[str], int]]:
    """By the rules of flamegraph.pl: everything before the last space is the stack."""
    for line in text.splitlines():
        found = re.fullmatch(r"(.+) (\d+)", line)
        assert found and line.isprintable()
        frames = found[1].split(";")
        assert all(frames) and not re.search(r"\s\d+(\.\d*)?$", frames[-1])
        yield frames, int(found[2])


@RUN
def test_folded_stacks_add_up(profiles: Dict[str, Profile], name: str) -> None:
    for value, total in zip(VALUES, expected(profiles[name])):
        stacks = list(folded_lines(written("folded", profiles[name], value=value)))
        assert sum(weight for _, weight in stacks) == total
        assert len({tuple(frames) for frames, _ in stacks}) == len(stacks)


@pytest.mark.parametrize("name", ["training", "random", "recorded"])
def test_stacks_add_up_in_any_view(profiles: Dict[str, Profile], name: str) -> None:
    for number, (by, fold) in enumerate(product(BY, FOLDS)):
        threshold = 5 * (number // 2 % 2)
        text = written("folded", profiles[name], by=by, fold=fold, threshold=threshold)
        assert sum(weight for _, weight in folded_lines(text)) == expected(profiles[name])[0]
        assert ("below 5 %)" in text) <= bool(threshold)


def test_folded_stacks_read_from_the_outermost_frame(profiles: Dict[str, Profile]) -> None:
    text = written("folded", profiles["training"], by="owner", threshold=20)
    assert text.splitlines() == [
        "cache;main (python3);train.py:87 (<module>);torch::empty (libtorch.so);c10::grow (libc10_cuda.so) 52428800",
        "context;main (python3);train.py:87 (<module>);cuInit (libcuda.so.1) 62914560",
        "tensor;main (python3);train.py:87 (<module>);torch::empty (libtorch.so);cudaMalloc (libcudart.so.10.2) 83886080",
        "(2 places below 20 %) 45136768",
    ]


def test_a_semicolon_is_no_end_of_a_frame(profiles: Dict[str, Profile]) -> None:
    for frames, _ in folded_lines(written("folded", profiles["hostile"])):
        assert len(frames) == 3
    assert "comma, semicolon\\x3b space (a0.c:5) " in written("folded", profiles["hostile"])


# ---- pprof ---------------------------------------------------------------------------------------


def pprof(profile: Profile, selector: str = "peak") -> bytes:
    return b"".join(writer("pprof")(profile, view("pprof", selector=selector)))


class Decoded:
    """protoc's own reading of the message, as text."""

    def __init__(self, content: bytes) -> None:
        if not (shutil.which("protoc") and PROFILE_PROTO.exists()):
            pytest.skip("protoc or pprof's profile.proto is not installed")
        options = [f"-I{PROFILE_PROTO.parent}", "--decode=perftools.profiles.Profile", PROFILE_PROTO.name]
        text = output_of("protoc", *options, stdin=gzip.decompress(content))
        self.messages: Dict[str, List[str]] = {}
        for key, body in re.findall(r"^(\w+)(?: \{\n(.*?)^\}$|: [^\n]*$)", text, re.DOTALL | re.MULTILINE):
            self.messages.setdefault(key, []).append(body)
        # A field that the schema does not have is shown by its number.
        assert not re.search(r"^\s*\d+(:| \{)", text, re.MULTILINE)
        literals = re.findall(r'^string_table: "(.*)"$', text, re.MULTILINE)
        self.strings = [self._unescape(literal) for literal in literals]

    @staticmethod
    def _unescape(literal: str) -> str:
        simple = {"n": b"\n", "r": b"\r", "t": b"\t", '"': b'"', "'": b"'", "\\": b"\\"}

        def one(found: "re.Match[str]") -> bytes:
            text = found.group()
            return bytes([int(text[1:], 8)]) if text[1].isdigit() else simple[text[1]]

        pieces = re.split(r"(\\[0-7]{3}|\\.)", literal)
        pattern = re.compile(r"\\(?:[0-7]{3}|.)")
        raw = b"".join(
            one(found) if found else piece.encode() for piece in pieces for found in [pattern.fullmatch(piece)]
        )
        return raw.decode("utf-8")

    def numbers(self, message: str, key: str) -> List[int]:
        return [int(number) for number in re.findall(rf"^  {key}: (-?\d+)$", message, re.MULTILINE)]

    def labels(self, sample: str) -> Dict[str, str]:
        pairs = re.findall(r"  label \{\n    key: (\d+)\n    str: (\d+)\n  \}", sample)
        return {self.strings[int(key)]: self.strings[int(text)] for key, text in pairs}


@RUN
def test_protoc_reads_a_pprof_profile_that_adds_up(profiles: Dict[str, Profile], name: str) -> None:
    profile = Decoded(pprof(profiles[name]))
    samples = profile.messages.get("sample", [])
    values = [profile.numbers(sample, "value") for sample in samples]
    assert [sum(column) for column in zip(*values)] == (expected(profiles[name]) if samples else [])
    assert bool(samples) == any(expected(profiles[name]))
    locations = {profile.numbers(location, "id")[0] for location in profile.messages.get("location", [])}
    assert len(locations) == len(profile.messages.get("location", []))
    for sample in samples:
        stack = profile.numbers(sample, "location_id")
        assert stack and set(stack) <= locations
    functions = {profile.numbers(function, "id")[0] for function in profile.messages.get("function", [])}
    for location in profile.messages.get("location", []):
        (function,) = re.findall(r"function_id: (\d+)", location)
        assert int(function) in functions
    types = [
        [profile.strings[n] for key in ("type", "unit") for n in profile.numbers(t, key)]
        for t in profile.messages["sample_type"]
    ]
    assert types[:4] == [
        ["inuse_space", "bytes"],
        ["inuse_objects", "count"],
        ["alloc_space", "bytes"],
        ["alloc_objects", "count"],
    ]


def test_pprof_labels_say_whose_memory_it_is_and_where(profiles: Dict[str, Profile]) -> None:
    profile = Decoded(pprof(profiles["generated"]))
    held: Dict[str, int] = {}
    for sample in profile.messages["sample"]:
        labels = profile.labels(sample)
        assert labels["host"] == "board-1" and labels["jetpack"] == "4.6.1" and labels["process"] == "4711"
        assert labels["board"] == "NVIDIA Jetson Nano Developer Kit" and labels["run"] == run_id(profiles["generated"])
        assert labels["side"] == side_of(labels["kind"]) and ("role" in labels) == (labels["owner"] == "tensor")
        held[labels["owner"]] = held.get(labels["owner"], 0) + profile.numbers(sample, "value")[0]
    assert {owner: n for owner, n in held.items() if n} == {
        owner: host + device for owner, (host, device) in by_owner(profiles["generated"]).items()
    }


def test_pprof_mappings_are_the_object_files(profiles: Dict[str, Profile]) -> None:
    profile = Decoded(pprof(profiles["recorded"]))
    mappings = {}
    for mapping in profile.messages["mapping"]:
        start, limit = (profile.numbers(mapping, key) or [0] for key in ("memory_start", "memory_limit"))
        path = profile.strings[profile.numbers(mapping, "filename")[0]]
        mappings[profile.numbers(mapping, "id")[0]] = (start[0], limit[0], path)
    assert re.fullmatch(r".*/python3\.\d+", mappings[1][2])
    in_range = 0
    for location in profile.messages["location"]:
        (mapping_id,) = profile.numbers(location, "mapping_id") or [0]
        (address,) = profile.numbers(location, "address") or [0]
        if mapping_id and mappings[mapping_id][1]:
            assert mappings[mapping_id][0] <= address < mappings[mapping_id][1]
            in_range += 1
    assert in_range > 100


@pytest.mark.skipif(not shutil.which("go"), reason="go is not installed: it takes 450 MB")
@pytest.mark.parametrize("name", ["training", "hostile", "recorded", "generated", "random"])
def test_go_tool_pprof_opens_it(profiles: Dict[str, Profile], name: str, tmp_path: Path) -> None:
    file = tmp_path / "profile.pb.gz"
    file.write_bytes(pprof(profiles[name]))
    for index, total in zip(("inuse_space", "inuse_objects", "alloc_space", "alloc_objects"), expected(profiles[name])):
        unit = "B" if index.endswith("space") else ""
        options = ["-top", "-unit=B" if unit else "-unit=count", f"-sample_index={index}", "-nodecount=5"]
        said = output_of("go", "tool", "pprof", *options, file)
        found = re.search(rf"of (\d+){unit} total", said)
        assert found and int(found[1]) == total


def test_what_a_format_cannot_hold_is_said() -> None:
    with pytest.raises(FormatError, match="beyond 63 bits"):
        pprof(beyond_63_bits().load())


# ---- csv -----------------------------------------------------------------------------------------


def table(text: str) -> List[Dict[str, str]]:
    """As RFC 4180 has it: CR LF at the end of each line, and nothing in quotes here spans lines."""
    assert all(line.endswith("\r") and line[:-1].isprintable() for line in text.split("\n")[:-1])
    head, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert all(len(row) == len(head) for row in rows)
    return [dict(zip(head, row)) for row in rows]


_COLUMNS = [name.replace("-", "_") for name in VALUES]


@RUN
def test_csv_columns_add_up(profiles: Dict[str, Profile], name: str) -> None:
    for by in FORMATS["csv"].by:
        rows = table(written("csv", profiles[name], by=by))
        sums = [sum(int(row[f"{side}_{column}"]) for row in rows for side in ("host", "device")) for column in _COLUMNS]
        assert sums == expected(profiles[name])
        assert len({row[by] for row in rows}) == len(rows)
        if by == "owner":
            held = {row["owner"]: (int(row["host_live_bytes"]), int(row["device_live_bytes"])) for row in rows}
            assert {owner: figures for owner, figures in held.items() if any(figures)} == by_owner(profiles[name])


@RUN
def test_csv_over_time_adds_up_to_each_snapshot(profiles: Dict[str, Profile], name: str) -> None:
    sums = {str(snapshot.id): [0, 0] for snapshot in profiles[name].snapshots}
    for row in table(written("csv", profiles[name], by="kind", selector="all")):
        sums[row["snapshot"]][0] += int(row["host_live_bytes"])
        sums[row["snapshot"]][1] += int(row["device_live_bytes"])
    assert sums == {str(snapshot.id): [snapshot.host, snapshot.device] for snapshot in profiles[name].snapshots}


def test_no_cell_is_a_formula(profiles: Dict[str, Profile]) -> None:
    names = [row["python-function"] for row in table(written("csv", profiles["hostile"], by="python-function"))]
    assert any(name.startswith("'=1+1") for name in names) and any(name.startswith("'@SUM") for name in names)
    assert any(name.startswith("quote\" apostrophe' comma, semicolon; space") for name in names)


# ---- json ----------------------------------------------------------------------------------------


@RUN
def test_json_holds_the_run(profiles: Dict[str, Profile], name: str) -> None:
    profile = profiles[name]
    report = json.loads(written("json", profile))
    total = report["ledger"]["total"]
    assert total["host_bytes"] + total["device_bytes"] == expected(profile)[0]
    rows = report["table"]
    parts = (
        ("held", "bytes"),
        ("held", "blocks"),
        ("allocated", "bytes"),
        ("allocated", "blocks"),
        ("temporaries", "blocks"),
    )
    sides = ("host", "device")
    sums = [sum(row[part][f"{side}_{unit}"] for row in rows for side in sides) for part, unit in parts]
    assert sums == expected(profile)
    accounts = [dict(zip(report["accounts"]["columns"], row)) for row in report["accounts"]["rows"]]
    counted = [account for account in accounts if account["kind"] not in LISTED_KINDS]
    assert sum(account["live_bytes"] for account in counted) == expected(profile)[0]
    assert sum(account["allocated_bytes"] for account in counted) == expected(profile)[2]
    stacks = {stack: (parent, frame) for stack, parent, frame in report["stacks"]["rows"]}
    frames = {row[0] for row in report["frames"]["rows"]}
    assert all(account["stack"] == 0 or account["stack"] in stacks for account in accounts)
    assert all(parent == 0 or parent in stacks for parent, _ in stacks.values())
    assert all(frame in frames for _, frame in stacks.values())
    assert [(s["id"], s["host"], s["device"]) for s in report["snapshots"]] == [
        (s.id, s.host, s.device) for s in profile.snapshots
    ]


@RUN
def test_json_keeps_its_schema(profiles: Dict[str, Profile], name: str) -> None:
    schema = validator()
    schema.check_schema(schema.schema)
    schema.validate(json.loads(written("json", profiles[name])))


def test_the_schema_would_notice(profiles: Dict[str, Profile]) -> None:
    schema = validator()
    for spoil in ("run", "accounts", "table", "moment"):
        report = json.loads(written("json", profiles["training"]))
        del report[spoil]
        assert not schema.is_valid(report)
    report = json.loads(written("json", profiles["training"]))
    report["snapshots"][0]["host"] = "1"
    assert not schema.is_valid(report)


# ---- perfetto ------------------------------------------------------------------------------------


def events(profile: Profile, **chosen: Any) -> List[Dict[str, Any]]:
    """Checked by the rules of the Trace Event Format, as published."""
    file = json.loads(written("perfetto", profile, **chosen))
    assert file["displayTimeUnit"] in ("ms", "ns")
    open_ends: Dict[int, List[int]] = {}
    for event in file["traceEvents"]:
        assert event["ph"] in "XCiM" and isinstance(event["name"], str) and isinstance(event["pid"], int)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name") and isinstance(event["args"]["name"], str)
            continue
        assert isinstance(event["ts"], int) and event["ts"] >= 0
        if event["ph"] == "C":
            assert event["args"] and all(isinstance(value, int) for value in event["args"].values())
        elif event["ph"] == "i":
            assert event["s"] in ("g", "p", "t")
        else:
            assert event["dur"] >= 0 and isinstance(event["tid"], int)
    slices = [event for event in file["traceEvents"] if event["ph"] == "X"]
    for event in sorted(slices, key=lambda event: (event["ts"], -event["dur"])):
        ends = open_ends.setdefault(event["tid"], [])
        end = event["ts"] + event["dur"]
        while ends and ends[-1] <= event["ts"] and ends[-1] < end:
            ends.pop()
        assert not ends or end <= ends[-1], "slices of a thread must nest"
        ends.append(end)
    found: List[Dict[str, Any]] = file["traceEvents"]
    return found


@RUN
def test_perfetto_counters_add_up_to_each_snapshot(profiles: Dict[str, Profile], name: str) -> None:
    profile = profiles[name]
    scale = 1000 if profile.time_unit == "ms" else 1
    prefixes = ("host ", "device ") if profile.is_discrete else ("",)
    for number, by in enumerate(FORMATS["perfetto"].by, sorted(RUNS).index(name)):
        counters = [event for event in events(profile, by=by, threshold=10 * (number % 2)) if event["ph"] == "C"]
        for prefix in prefixes:
            told = [(e["ts"], sum(e["args"].values())) for e in counters if e["name"] == f"{prefix}by {by}"]
            wanted = [
                (s.time * scale, {"host ": s.host, "device ": s.device, "": s.host + s.device}[prefix])
                for s in profile.snapshots
            ]
            assert told == wanted or not told and not any(n_bytes for _, n_bytes in wanted)
    totals = [(e["ts"], e["args"]["host"], e["args"]["device"]) for e in counters if e["name"] == "memory"]
    timeline = profile.timeline
    assert totals == [(t * scale, h, d) for t, h, d in zip(timeline.time, timeline.host, timeline.device)]


def test_perfetto_has_the_regions_scopes_marks_and_peaks(profiles: Dict[str, Profile]) -> None:
    found = events(profiles["training"])
    slices = {(e["cat"], e["name"]): (e["ts"], e["dur"], e["args"]) for e in found if e["ph"] == "X"}
    assert slices[("region", "warm-up")][:2] == (300000, 100000)
    assert slices[("scope", "cuInit")] == (
        90000,
        60000,
        {"host_growth_bytes": 2000, "device_growth_bytes": 60 << 20, "driver_blocks": 1, "heap_blocks": 4},
    )
    instants = {(e["cat"], e["name"]): e["ts"] for e in found if e["ph"] == "i"}
    assert instants[("mark", "epoch 1")] == 300000 and instants[("peak", "host peak")] == 900000


def test_regions_that_overlap_without_nesting_are_on_tracks_of_their_own() -> None:
    trace = Trace(time_unit="ms")
    for time, act, name in ((1, "B", "a"), (2, "B", "b"), (3, "D", "a"), (4, "D", "b"), (5, "B", "c"), (6, "D", "c")):
        (trace.region_begin if act == "B" else trace.region_end)(time, name)
    slices = {e["name"]: (e["ts"], e["dur"], e["tid"]) for e in events(trace.load()) if e["ph"] == "X"}
    assert slices["a"] == (1000, 2000, 1) and slices["c"] == (5000, 1000, 1)
    assert slices["b"][:2] == (2000, 2000) and slices["b"][2] != 1


# ---- hostile strings -----------------------------------------------------------------------------


def visible(text: str) -> str:
    """Bytes that were no UTF-8 stand as \\xHH."""
    return "".join(f"\\x{ord(c) - 0xDC00:02x}" if 0xDC80 <= ord(c) <= 0xDCFF else c for c in text)


def assert_no_control_characters(lines: Sequence[str]) -> None:
    for line in lines:
        assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in line)


def test_hostile_names_survive_in_json(profiles: Dict[str, Profile]) -> None:
    text = written("json", profiles["hostile"])
    assert text.encode("ascii")
    report = json.loads(text)
    assert [mark["text"] for mark in report["marks"]] == [visible(name) for name in HOSTILE]
    columns = report["frames"]["columns"]
    functions = {row[columns.index("function")] for row in report["frames"]["rows"]}
    assert {visible(name) for name in HOSTILE} <= functions
    assert json.dumps(report, ensure_ascii=False).encode("utf-8")


def test_hostile_names_survive_in_perfetto(profiles: Dict[str, Profile]) -> None:
    found = events(profiles["hostile"])
    for category in ("mark", "scope", "region"):
        assert {e["name"] for e in found if e.get("cat") == category} == {visible(name) for name in HOSTILE}


def test_hostile_names_survive_in_pprof(profiles: Dict[str, Profile]) -> None:
    profile = Decoded(pprof(profiles["hostile"]))
    assert {visible(name) for name in HOSTILE} <= set(profile.strings)


def test_hostile_names_do_not_leave_their_line(profiles: Dict[str, Profile]) -> None:
    text = written("folded", profiles["hostile"])
    assert_no_control_characters(text.split("\n"))
    for shown in ("newline\\x0areturn\\x0dtab\\x09", "nul\\x00bell\\x07escape\\x1b[2J", "byte \\xe9\\xff of no UTF-8"):
        assert shown in text
