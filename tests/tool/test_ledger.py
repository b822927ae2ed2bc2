# SPDX-License-Identifier: GPL-2.0-or-later
"""The ledger on its own, all its events at random, against books kept by brute force.

The books here have whole numbers of any size and copy every balance when a total is larger than ever, or as large with
less of it in caches, which is what a peak is. The ledger's accounts are narrow, so each of an account's numbers outgrows
its width, in some runs without the others.
"""

import hashlib
import random
import re
import subprocess
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

import pytest

from tests.harness import ROOT, compile_c, record

SOURCE = ROOT / "jmassif"
HOST, DEVICE, NONE = "host", "device", None
TOTAL, OF_HOST, OF_DEVICE, ALLOCATED = range(4)  # PeakId

Live = List[Tuple[int, int]]  # bytes and blocks, by account


class Kind(NamedTuple):
    side: Optional[str]
    is_sampled: bool


def kinds() -> List[Kind]:
    rows = re.findall(
        r'X\((\w+), "[\w-]+", SIDE_(\w+), (?:True|False)\)', (SOURCE / "attribution" / "kind.h").read_text()
    )
    sides = {"HOST": HOST, "DEVICE": DEVICE, "NONE": NONE}
    return [Kind(sides[side], name in ("ANON", "FILE", "STACK")) for name, side in rows]


KINDS = kinds()
PINNED, DRIVER = (
    re.findall(r'X\((\w+), "', (SOURCE / "attribution" / "kind.h").read_text()).index(name)
    for name in ("PINNED", "DRIVER")
)
APP, CACHE, SLACK = 3, 4, 5  # attribution/owner.h


def driver() -> Path:
    flags = ["-I", str(SOURCE)]
    modules = [SOURCE / name for name in ("ledger/ledger.c", "base/table.c", "attribution/kind.c")]
    # What is compiled is found again by its flags, and by what the modules say now.
    texts = "".join(path.read_text() for path in sorted(SOURCE.glob("*/*.[ch]")))
    flags += [f"-DSOURCES={hashlib.sha256(texts.encode()).hexdigest()}", *map(str, modules)]
    return compile_c(Path(__file__).with_name("programs") / "ledger_driver.c", "-O1", "-w", *flags)


class Peak:
    def __init__(self) -> None:
        self.bytes = self.cached = 0
        self.live: Live = []
        self.at = 0

    def comes_to(self, total: int, cached: int, live: Callable[[], Live], at: int) -> None:
        if (total, -cached) > (self.bytes, -self.cached):
            self.bytes, self.cached, self.live, self.at = total, cached, live(), at


class Account:
    def __init__(self, kind: int, owner: int) -> None:
        self.kind = KINDS[kind]
        # What a caching allocator keeps of the device's memory, or of pinned memory, and the driver's slack.
        self.is_cache = (owner == CACHE and (self.kind.side == DEVICE or kind == PINNED)) or (owner, kind) == (
            SLACK,
            DRIVER,
        )
        self.bytes = self.blocks = self.total_bytes = self.total_blocks = self.temporaries = 0

    def row(self) -> Tuple[int, ...]:
        return self.bytes, self.blocks, self.total_bytes, self.total_blocks, self.temporaries


class Block(NamedTuple):
    number: int
    account: int
    bytes: int
    born: int


class Books:
    """Accounts from 1 on."""

    def __init__(self, has_pages: bool) -> None:
        self.has_pages = has_pages
        self.accounts: List[Account] = [Account(0, APP)]
        self.peaks = [Peak() for _ in range(4)]
        self.n_events = 0
        self.changed: Dict[int, None] = {}  # in order

    def counts(self, peak: int, account: int) -> bool:
        kind = self.accounts[account].kind
        if kind.side is NONE:
            return False
        return {
            TOTAL: True,
            OF_HOST: kind.side == HOST,
            OF_DEVICE: kind.side == DEVICE,
            ALLOCATED: not (self.has_pages and kind.is_sampled),
        }[peak]

    def total(self, peak: int) -> int:
        return sum(self.accounts[i].bytes for i in range(1, len(self.accounts)) if self.counts(peak, i))

    def cached(self, peak: int) -> int:
        chosen = range(1, len(self.accounts))
        return sum(self.accounts[i].bytes for i in chosen if self.counts(peak, i) and self.accounts[i].is_cache)

    def live(self) -> Live:
        return [(account.bytes, account.blocks) for account in self.accounts]

    def change(self, *steps: Tuple[int, int, int]) -> None:
        """One event: accounts with the bytes and blocks that they gain."""
        self.n_events += 1
        for i, n_bytes, n_blocks in steps:
            self.accounts[i].bytes += n_bytes
            self.accounts[i].blocks += n_blocks
            self.changed[i] = None
        for which, peak in enumerate(self.peaks):
            peak.comes_to(self.total(which), self.cached(which), self.live, self.n_events)

    def allocated(self, i: int, n_bytes: int, n_blocks: int) -> None:
        self.accounts[i].total_bytes += n_bytes
        self.accounts[i].total_blocks += n_blocks

    def move(self, source: int, to: int, block: Block) -> None:
        self.n_events += 1
        for which, peak in enumerate(self.peaks):
            if peak.live and block.born <= peak.at:
                for i in (source, to):
                    if self.accounts[i].is_cache and self.counts(which, i):
                        peak.cached += block.bytes if i == to else -block.bytes
                for i, sign in ((source, -1), (to, 1)):
                    n_bytes, n_blocks = peak.live[i] if i < len(peak.live) else (0, 0)
                    peak.live += [(0, 0)] * (i + 1 - len(peak.live))
                    peak.live[i] = n_bytes + sign * block.bytes, n_blocks + sign
        for i, sign in ((source, -1), (to, 1)):
            self.accounts[i].bytes += sign * block.bytes
            self.accounts[i].blocks += sign
            self.allocated(i, sign * block.bytes, sign)
            self.changed[i] = None

    def expected(self) -> "Dump":
        peaks = {}
        for which, peak in enumerate(self.peaks):
            if peak.bytes and (which != ALLOCATED or self.has_pages):
                peaks[which] = {i: value for i, value in enumerate(peak.live) if value != (0, 0)}
        return Dump([account.row() for account in self.accounts[1:]], list(self.changed), peaks)


class Dump(NamedTuple):
    accounts: List[Tuple[int, ...]]
    changed: List[int]
    peaks: Dict[int, Dict[int, Tuple[int, int]]]


SIZES = [0, 1, 24, 200, 4000, 8191, 8192, 16384, 65535, 65536, 1 << 20, (1 << 32) - 1, 1 << 32, 5 << 32, 1 << 41]


class Walk:
    """Random events, as lines for the driver, that the books follow."""

    def __init__(self, seed: int, has_pages: bool, has_large: bool) -> None:
        self.has_large = has_large
        self.random = random.Random(seed)
        self.books = Books(has_pages)
        self.lines: List[str] = ["pages 0 0 0 0"] if has_pages else []
        self.blocks: List[Block] = []
        self.n_blocks = 0
        self.upwards = 0.5
        self.expected: List[Dump] = []
        # Device memory comes late: then the host's peak parts from the total's.
        self.kinds = [i for i, kind in enumerate(KINDS) if kind.side != DEVICE]

    def line(self, event: str, *numbers: int) -> None:
        self.lines.append(" ".join([event, *map(str, [*numbers, 0, 0, 0, 0][:4])]))

    def open(self) -> int:
        kind, owner = self.random.choice(self.kinds), self.random.choice([APP, CACHE, SLACK])
        self.line("open", len(self.books.accounts), kind, owner)
        self.books.accounts.append(Account(kind, owner))
        return len(self.books.accounts) - 1

    def account(self) -> int:
        n = len(self.books.accounts)
        if n < 4 or self.random.random() < 0.02:
            return self.open()
        # Few are used often and most are hardly used, as in programs.
        return max(1, min(n - 1, int(n * self.random.random() ** 3) + 1))

    def like(self, account: int) -> int:
        kind = self.books.accounts[account].kind
        alike = [i for i in range(1, len(self.books.accounts)) if self.books.accounts[i].kind == kind]
        return self.random.choice(alike)

    def size(self) -> int:
        if not self.has_large:
            return self.random.randrange(3)
        if self.random.random() < 0.7:
            return self.random.randrange(200)
        return self.random.choice(SIZES) + self.random.randrange(2)

    def take_out(self) -> Block:
        i = self.random.randrange(len(self.blocks))
        self.blocks[i], self.blocks[-1] = self.blocks[-1], self.blocks[i]
        return self.blocks.pop()

    def credit(self) -> None:
        account, n_bytes = self.account(), self.size()
        self.n_blocks += 1
        self.line("+", account, n_bytes, self.n_blocks)
        self.books.change((account, n_bytes, 1))
        self.books.allocated(account, n_bytes, 1)
        self.blocks.append(Block(self.n_blocks, account, n_bytes, self.books.n_events))

    def debit(self) -> None:
        block = self.take_out()
        self.line("-", block.account, block.bytes)
        self.books.change((block.account, -block.bytes, -1))
        for _ in range(
            self.random.choice([0, 0, 1, 4])
        ):  # more than blocks, so that their number is the first to outgrow
            self.line("x", block.account)
            self.books.accounts[block.account].temporaries += 1

    def resize(self) -> None:
        block, n_bytes = self.take_out(), self.size()
        to = self.like(block.account) if self.random.random() < 0.8 else block.account
        self.line("resize", block.account, block.bytes, to, n_bytes)
        self.books.change((block.account, -block.bytes, -1), (to, n_bytes, 1))
        self.books.allocated(to, n_bytes, 1)
        self.blocks.append(block._replace(account=to, bytes=n_bytes, born=self.books.n_events, number=0))

    def transfer(self) -> None:
        """Part of an account's bytes become a block of another account's, and go back."""
        block = self.random.choice(self.blocks)
        to, n_bytes = self.like(block.account), self.random.randrange(block.bytes + 1)
        self.line("transfer", block.account, to, n_bytes, 1)
        self.books.change((block.account, -n_bytes, 0), (to, n_bytes, 1))
        self.books.allocated(to, n_bytes, 1)
        self.dump(0.1)
        self.line("transfer", to, block.account, n_bytes, -1)
        self.books.change((to, -n_bytes, -1), (block.account, n_bytes, 0))

    def carve(self) -> None:
        """Part of an account's bytes are another's, perhaps of the other side, and go back."""
        blocks = [b for b in self.blocks if b.bytes and not self.is_sampled(b.account) and self.side(b.account) != NONE]
        if not blocks:
            return
        block = self.random.choice(blocks)
        to = self.account()
        if self.is_sampled(to) or self.side(to) == NONE:
            return
        n_bytes = self.random.randrange(1, block.bytes + 1)
        self.line("carve", block.account, to, n_bytes, 1)
        self.books.change((block.account, -n_bytes, 0), (to, n_bytes, 0))
        self.books.allocated(to, n_bytes, 0)
        self.dump(0.1)
        self.line("carve", to, block.account, n_bytes, 0)
        self.books.change((to, -n_bytes, 0), (block.account, n_bytes, 0))

    def side(self, account: int) -> Optional[str]:
        return self.books.accounts[account].kind.side

    def is_sampled(self, account: int) -> bool:
        return self.books.accounts[account].kind.is_sampled

    def move(self) -> None:
        i = self.random.randrange(len(self.blocks))
        block = self.blocks[i]
        to = self.like(block.account)
        if block.number == 0 or to == block.account:
            return
        self.line("move", block.account, to, block.bytes, block.number)
        self.books.move(block.account, to, block)
        self.blocks[i] = block._replace(account=to, number=0)

    def adjust(self) -> None:
        account, n_bytes = self.account(), self.size()
        self.line("adjust", account, n_bytes)
        self.books.change((account, n_bytes, 0))
        self.books.allocated(account, n_bytes, 0)
        self.dump(0.05)
        self.line("adjust", account, -n_bytes)
        self.books.change((account, -n_bytes, 0))

    def dump(self, likely: float = 1.0) -> None:
        if self.random.random() < likely:
            self.line("dump")
            self.expected.append(self.books.expected())
            self.books.changed.clear()

    def walk(self, n: int) -> None:
        events = [self.resize, self.transfer, self.carve, self.move, self.move, self.adjust]
        for i in range(n):
            if i == n // 2:
                self.kinds = list(range(len(KINDS)))
            if i % 40 == 0:
                self.upwards = self.random.choice([0.2, 0.5, 0.8])
            if not self.blocks or self.random.random() < self.upwards:
                self.credit()
            elif self.random.random() < 0.6:
                self.debit()
            else:
                self.random.choice(events)()
            self.dump(0.03)
        self.dump()


def dumps(text: str) -> Iterator[Dump]:
    """As a reader of a trace has them: what was told of a peak stands until it is told again."""
    accounts: List[Tuple[int, ...]] = []
    changed: List[int] = []
    live: Dict[int, Dict[int, Tuple[int, int]]] = {}
    told: Set[int] = set()
    for line in text.splitlines():
        what, *fields = line.split()
        numbers = [int(field) for field in fields]
        if what == "account":
            accounts.append(tuple(numbers[1:]))
        elif what == "changed":
            changed.append(numbers[0])
        elif what == "peak" and numbers[3]:
            told.add(numbers[0])
            live[numbers[0]] = {i: (row[0], row[1]) for i, row in enumerate(accounts, 1)}
        elif what == "differing" and numbers[0] in told:
            which, account, n_bytes, n_blocks = numbers
            live[which][account] = n_bytes, n_blocks
        elif what == "end":
            peaks = {which: {i: v for i, v in held.items() if v != (0, 0)} for which, held in live.items()}
            yield Dump(accounts, changed, peaks)
            accounts, changed, told = [], [], set()


@pytest.mark.parametrize("has_pages", [False, True], ids=["exact-kinds", "pages"])
@pytest.mark.parametrize("has_large", [True, False], ids=["of-all-sizes", "tiny"])
@pytest.mark.parametrize("seed", range(1, 6))
def test_balances_and_peaks_are_exact_whatever_comes(seed: int, has_large: bool, has_pages: bool) -> None:
    walk = Walk(seed, has_pages, has_large)
    walk.walk(4000)
    done = subprocess.run([str(driver())], input="\n".join(walk.lines).encode(), stdout=subprocess.PIPE, check=True)
    told = list(dumps(done.stdout.decode()))
    assert len(told) == len(walk.expected) > 100
    for now, expected in zip(told, walk.expected):
        assert now == expected


# 4.5 GiB in all from one place, half a GiB at a time, and 100,000 blocks from another.
TRAFFIC = """
#include <stdlib.h>
static __attribute__((noinline)) void one(size_t bytes) { free((void *)(*(void *volatile[]){malloc(bytes)})); }
int main(void)
{
    for (int i = 0; i < 9; i++)
        one((size_t)1 << 29);
    for (int i = 0; i < 100000; i++)
        one(1);
    return 0;
}
"""


def test_what_a_program_has_allocated_in_all_outgrows_32_bits() -> None:
    profile = record([compile_c(TRAFFIC, "-fno-builtin")]).profile
    counts = [tuple(row) for row in profile.counts().values()]
    assert (9 << 29, 9, 9) in counts
    assert (100_000, 100_000, 100_000) in counts
    assert profile.peaks["total"].host > 1 << 29
