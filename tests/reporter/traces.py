# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces made by hand: `Trace` writes the records, and keeps the books that make a snapshot add up.

    trace = Trace(memory="unified")
    heap = trace.account("heap", "app", ["malloc_site (a.c:5)", "main (a.c:9)"])
    trace.snapshot(3, "time", {heap: (100, 1)})
    profile = trace.load()
"""

import io
import random
import re
import zlib
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from jmassif.model.records import DEVICE_KINDS, HOST_KINDS
from jmassif.model.run import Profile
from jmassif.reader.builder import load

ROOT = Path(__file__).resolve().parents[2]

Balances = Mapping[int, Tuple[int, ...]]  # account: bytes, blocks[, total bytes, total blocks, temporaries]

_FRAME = re.compile(r"(?P<python>py )?(?P<function>.*) \((?P<place>.*?)(?::(?P<line>\d+))?\)", re.DOTALL)


def escape(text: str) -> str:
    """As TEXT fields are written."""
    return re.sub(r"[\x00-\x1f\x7f\\]", lambda found: f"\\x{ord(found.group()):02x}", text)


class Trace:
    """`lines` may be added to, or tampered with, at will."""

    def __init__(self, **manifest: str) -> None:
        self.lines: List[str] = ["jmassif-trace 4"]
        for key, value in manifest.items():
            self.manifest(key.replace("_", "-"), value)
        self._strings: Dict[str, int] = {"": 0}
        self._frames: Dict[str, int] = {}
        self._nodes: Dict[Tuple[int, int], int] = {}
        self._types: Dict[Tuple[str, str], int] = {}
        self._last_node = 0  # of the last account
        self._kinds: Dict[int, str] = {}
        self._live: Dict[int, Tuple[int, ...]] = {}
        self._n_snapshots = 0
        self._n_events = 0

    def manifest(self, key: str, value: str) -> None:
        self.lines.append(f"m {key} {escape(value)}")

    def string(self, text: str) -> int:
        if text not in self._strings:
            self._strings[text] = len(self._strings)
            self.lines.append(f"s {self._strings[text]} {escape(text)}")
        return self._strings[text]

    def frame(self, text: str) -> int:
        """ "main (a.c:5)", "main (libfoo.so)" for an object file, or "py forward (/app/net.py:7)"."""
        if text not in self._frames:
            parts = _FRAME.fullmatch(text)
            assert parts, text
            function, place, line = self.string(parts["function"]), parts["place"], parts["line"] or "0"
            is_object = not parts["line"]
            object_, file = (self.string(place), 0) if is_object else (0, self.string(place))
            id_ = self._frames[text] = len(self._frames) + 1
            type_ = "p" if parts["python"] else "n"
            self.lines.append(f"f {id_} {type_} {function} {object_} {file} {line} {0x400000 + id_:x}")
        return self._frames[text]

    def frame_of_fields(self, name: str, fields: str) -> str:
        """A frame by the fields of its record; a stack has it under this name."""
        self._frames[name] = len(self._frames) + 1
        self.lines.append(f"f {self._frames[name]} {fields}")
        return name

    def thread(self, number: int, name: str = "") -> str:
        """A thread's frame, for the outer end of stacks; call it again to give the thread another name."""
        text = f"thread {number} (:0)"
        if text not in self._frames:
            self.frame_of_fields(text, f"t 0 0 0 {number} 0")
        if name:
            self.lines.append(f"T {number} {self.string(name)}")
        return text

    def source(self, path: str, content: bytes) -> None:
        """What the text of a file was that ran."""
        self.lines.append(f"h {self.string(path)} {zlib.crc32(content):x}")

    def stack(self, frames: Sequence[str]) -> int:
        """A node; the frames are given innermost first, as reports show them."""
        node = 0
        for text in reversed(frames):
            key = (node, self.frame(text))
            if key not in self._nodes:
                self._nodes[key] = len(self._nodes) + 1
                id_, parent = self._nodes[key], key[0]
                self.lines.append(f"n {parent - id_} {key[1]}")
            node = self._nodes[key]
        return node

    def account(self, kind: str, owner: str, frames: Sequence[str] = (), role: str = "") -> int:
        node = self.stack(frames)
        id_ = len(self._kinds) + 1
        self._kinds[id_] = kind
        if (kind, owner) not in self._types:
            self._types[kind, owner] = len(self._types) + 1
            self.lines.append(f"K {self._types[kind, owner]} {kind} {owner}")
        self.lines.append(f"a {node - self._last_node} {self._types[kind, owner]}")
        self._last_node = node
        if role:
            self.lines.append(f"r {id_} {role}")
        return id_

    def group(self, group: str, *owners: str) -> None:
        self.lines += [f"g {owner} {group}" for owner in owners]

    def mark(self, time: int, name: str) -> None:
        self.lines.append(f"M {time} {self.string(name)}")

    def region_begin(self, time: int, name: str, thread: int = 1) -> None:
        self.lines.append(f"B {time} {thread} {self.string(name)}")

    def region_end(self, time: int, name: str, thread: int = 1) -> None:
        self.lines.append(f"D {time} {thread} {self.string(name)}")

    def block(self, time: int, address: int, n_bytes: int, account: int) -> None:
        self.lines.append(f"+ {time} {address:x} {n_bytes} {account}")

    def block_end(self, time: int, address: int, account: int) -> None:
        self.lines.append(f"- {time} {address:x} {account}")

    def exhaustion(
        self,
        time: int,
        account: int,
        n_bytes: int,
        api: str = "cudaMalloc",
        error: int = 2,
        again: int = 0,
        figures: Optional[Mapping[str, int]] = None,
    ) -> int:
        """An event; its id."""
        name = self.string(api)
        self._n_events += 1
        self.lines.append(f"O {self._n_events} {time} 1 {account} {name} {error} {n_bytes} {again}")
        self.lines += [f"o {self._n_events} {figure} {value}" for figure, value in (figures or {}).items()]
        return self._n_events

    def outcome(self, event: int, time: int, outcome: str) -> None:
        self.lines.append(f"q {event} {time} {outcome}")

    def _sums(self, live: Balances) -> Tuple[int, int]:
        def side(kinds: Sequence[str]) -> int:
            return sum(held[0] for account, held in live.items() if self._kinds[account] in kinds)

        return side(HOST_KINDS), side(DEVICE_KINDS)

    def totals(self, time: int, host: int, device: int, maximum: Optional[int] = None) -> None:
        self.lines.append(f"t {time} {host} {device} {host + device if maximum is None else maximum}")

    def snapshot(
        self,
        time: int,
        reason: str = "time",
        changes: Optional[Balances] = None,
        peaks: Optional[Mapping[str, Tuple[int, Balances]]] = None,
    ) -> None:
        """A group. `changes` says what the accounts hold now; `peaks` are (time, what accounts held otherwise)."""
        changes = changes or {}
        self._n_snapshots += 1
        self._live.update(changes)
        host, device = self._sums(self._live)
        self.lines.append(f"S {self._n_snapshots} {time} {reason} {host} {device}")
        for account, held in changes.items():
            row = list(held) + [held[0], held[1], 0][len(held) - 2 :]
            self.lines.append(f"c {account} {' '.join(map(str, row))}")
        for which, (peak_time, differences) in (peaks or {}).items():
            at_peak: Dict[int, Tuple[int, ...]] = dict(self._live)
            at_peak.update(differences)
            host, device = self._sums(at_peak)
            self.lines.append(f"P {which} {peak_time} {host} {device}")
            self.lines += [f"d {account} {held[0]} {held[1]}" for account, held in differences.items()]
        self.lines.append(f"E {self._n_snapshots}")

    def bytes(self) -> bytes:
        return ("\n".join(self.lines) + "\n").encode("utf-8", "surrogateescape")

    def load(self) -> Profile:
        return load(io.BytesIO(self.bytes()))

    def save(self, directory: Path, name: str = "jmassif.out.1") -> Path:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.bytes())
        return path


def documented_example() -> bytes:
    """The example of docs/trace-format.md."""
    text = (ROOT / "docs" / "trace-format.md").read_text(encoding="utf-8")
    found = re.search(r"```jmassif-trace\n(.*?)```", text, re.DOTALL)
    assert found
    return found.group(1).encode("utf-8")


def small_training_run(memory: str = "unified") -> Trace:
    """A run on a small board, with a bit of everything that a report can show."""
    mib = 1 << 20
    trace = Trace(
        command="python3 train.py --epochs 2",
        start="2026-01-02T03:04:05Z",
        pid="4711",
        time_unit="ms",
        memory=memory,
        board="NVIDIA Jetson Nano Developer Kit",
        l4t="32.7.1",
        arch="aarch64",
        cpus="4",
        kernel="4.9.253-tegra",
        mem_total_bytes=str(4156 * mib),
        python="3.6.9",
        pytorch="1.10.0",
        jmassif="0.1.0",
        valgrind="3.19.0",
    )
    trace.manifest("package.libcudnn8", "8.2.1.32-1+cuda10.2")
    trace.manifest("env.CUDA_VISIBLE_DEVICES", "0")
    trace.group("yours", "app", "tensor")
    trace.group("cached", "cache")
    trace.group("libraries", "cudnn", "python")
    trace.group("runtime", "context")
    python = ["py <module> (/home/u/train.py:87)", "main (/usr/bin/python3)"]
    torch = ["torch::empty (/usr/lib/libtorch.so)"] + python
    tensor = trace.account("device", "tensor", ["cudaMalloc (/usr/lib/libcudart.so.10.2)"] + torch, "parameter")
    cache = trace.account("device", "cache", ["c10::grow (/usr/lib/libc10_cuda.so)"] + torch)
    context = trace.account("driver", "context", ["cuInit (/usr/lib/libcuda.so.1)"] + python)
    cudnn = trace.account(
        "heap", "cudnn", ["malloc (vgpreload_jmassif-arm64-linux.so)", "cudnnCreate (libcudnn.so.8)"] + python
    )
    numbers = trace.account(
        "heap", "python", ["malloc (vgpreload_jmassif-arm64-linux.so)", "list_append (listobject.c:300)"] + python
    )
    overhead = trace.account("heap-overhead", "python")
    trace.snapshot(0, "start")
    trace.totals(100, 0, 60 * mib)
    trace.snapshot(250, "time", {context: (60 * mib, 1), numbers: (3 * mib, 3000), overhead: (48000, 3000)})
    trace.lines.append(f"e {trace.string('cudaMalloc')} 2 3")
    trace.lines.append("k unknown-ioctl 2")
    trace.mark(300, "epoch 1")
    trace.region_begin(300, "warm-up")
    trace.region_end(400, "warm-up")
    initialise, create, load_module = map(trace.string, ("cuInit", "cudnnCreate", "cuModuleLoad"))
    node = trace.stack(python)
    trace.lines += [
        f"x 1 0 1 90 150 {node} {initialise} driver {60 * mib} 1 heap 2000 4",
        f"x 2 3 1 310 390 {node} {load_module} heap {30 * mib} 2",
        f"x 3 0 1 300 420 {node} {create} heap {40 * mib} 12",
        f"X {load_module} 12 35 heap {mib} 12",
    ]
    trace.totals(500, 43 * mib, 180 * mib, 230 * mib)
    trace.snapshot(
        1000,
        "exit",
        {
            tensor: (0, 0, 200 * mib, 40, 0),
            cache: (100 * mib, 2),
            cudnn: (40 * mib, 12),
            numbers: (3 * mib, 3000, 9 * mib, 900000, 890000),
        },
        {
            "total": (600, {tensor: (80 * mib, 4), cache: (50 * mib, 1)}),
            "device": (600, {tensor: (80 * mib, 4), cache: (50 * mib, 1)}),
            "host": (900, {}),
        },
    )
    trace.lines.append("Z 1000 exit 0")
    return trace


def random_run(
    seed: int, n_snapshots: int = 30, n_accounts: int = 60, options: Optional[Mapping[str, str]] = None
) -> Trace:
    """Random stacks of random depth that share frames, random balances, and true peaks of the snapshots."""
    random_ = random.Random(seed)
    trace = Trace(command=f"random {seed}", time_unit="ms", memory="unified")
    for name, value in (options or {}).items():
        trace.manifest(f"option.{name}", value)
    trace.group("yours", "app", "tensor")
    trace.group("libraries", "lib", "cudnn")
    functions = [f"f{i} (a.c:{i})" for i in range(5)] + ["g (lib.so)", "t (/usr/lib/libtorch.so)"]
    functions += ["py h (/p/m.py:3)", "py relu (/usr/lib/python3/dist-packages/torch/nn/functional.py:9)"]
    kinds = HOST_KINDS + DEVICE_KINDS + ("imported",)
    for _ in range(n_accounts):
        kind = random_.choice(kinds)
        depth = 0 if kind == "heap-overhead" else random_.randrange(9)
        frames = [random_.choice(functions) for _ in range(depth)]
        owner = random_.choice(["app", "lib", "cudnn", "tensor"])
        trace.account(kind, owner, frames, random_.choice(["", "gradient"]) if owner == "tensor" else "")
    live: Dict[int, Tuple[int, int]] = {}
    largest = -1
    for number in range(n_snapshots):
        changes = {}
        for account in random_.sample(range(1, n_accounts + 1), random_.randrange(n_accounts)):
            size = random_.choice([0, 1, 4096, random_.randrange(1 << 30)])
            changes[account] = (size, random_.randrange(1, 9) if size else 0)
        live.update(changes)
        host, device = trace._sums(live)
        peaks: Dict[str, Tuple[int, Balances]] = {}
        if host + device > largest:
            largest = host + device
            peaks["total"] = (10 * number, {})
        trace.snapshot(10 * number, "time", changes, peaks)
    trace.lines.append(f"Z {10 * n_snapshots} exit 0")
    return trace
