# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs in the assembler of x86-64 whose results depend on condition codes that were set several blocks before.

Whatever leaves out the setting of a flag that "nobody reads" has to decode what follows, so there are many ways to say
each thing: all sizes, immediates and ways of addressing, and immediates that look like instructions. Only flags that the
architecture defines are read. The processor itself is asked for the right results: output and exit status under the tool
are those without Valgrind, with no cache of translations and in the first and the second run with one.

    python3 -m tests.fuzz.flags [--seed=N] [--programs=100] [--keep=DIRECTORY]
"""

import os
import random
import sys
import tempfile
from pathlib import Path
from typing import Callable, Dict, FrozenSet, List, Optional, Sequence, Tuple

from tests.fuzz.caches import cached
from tests.fuzz.searching import ended, parser
from tests.harness import VALGRIND, Argument, Run, check_run, run

Flags = FrozenSet[str]
ALL: Flags = frozenset("CPAZSO")
NONE: Flags = frozenset()
BITS = {"C": 0x1, "P": 0x4, "A": 0x10, "Z": 0x40, "S": 0x80, "O": 0x800}

CONDITIONS = {
    **dict.fromkeys(("o", "no"), frozenset("O")),
    **dict.fromkeys(("c", "nc"), frozenset("C")),
    **dict.fromkeys(("z", "nz"), frozenset("Z")),
    **dict.fromkeys(("be", "a"), frozenset("CZ")),
    **dict.fromkeys(("s", "ns"), frozenset("S")),
    **dict.fromkeys(("p", "np"), frozenset("P")),
    **dict.fromkeys(("l", "ge"), frozenset("SO")),
    **dict.fromkeys(("le", "g"), frozenset("SOZ")),
}

# Others have a purpose: rbp, r11, r12 and r13 are the middle of the scratch memory, r14 a small index, r15 counts rounds.
FREE = ("rax", "rcx", "rdx", "rbx", "rsi", "rdi", "r8", "r9", "r10")
LEGACY: Dict[str, Tuple[str, ...]] = {
    "rax": ("al", "ax", "eax", "rax"),
    "rcx": ("cl", "cx", "ecx", "rcx"),
    "rdx": ("dl", "dx", "edx", "rdx"),
    "rbx": ("bl", "bx", "ebx", "rbx"),
    "rsi": ("sil", "si", "esi", "rsi"),
    "rdi": ("dil", "di", "edi", "rdi"),
}
SUFFIXES = "bwlq"
# Immediates and distances whose bytes are cmp, test, add, xor, and what reads: adc, setc, pushf, jb, a prefix.
LOOKS_LIKE = (
    0x39,
    0xC0,
    0x85,
    0x01,
    0x31,
    0x3C,
    0x83,
    0x11,
    0x0F,
    0x92,
    0x9C,
    0x72,
    0xE9,
    0xEB,
    0x48,
    0x66,
    0xF8,
    0x24,
)


def processor() -> Flags:
    """What this one says it has."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return frozenset(line.split(":")[1].split())
    return NONE


class Program:
    """Text of one, made from front to back: `defined` is what may be read where the next instruction goes."""

    def __init__(self, chance: random.Random, has: Flags) -> None:
        self.chance = chance
        self.has = has
        self.defined = NONE
        self.lines: List[str] = []
        self.elsewhere: List[str] = []
        self.n_labels = 0
        self.n_traced = 0
        self.depth = 0
        self.keepers: List[Callable[[], None]] = [
            self.move,
            self.move,
            self.move,
            self.load_address,
            self.extend,
            self.stack,
            self.vector_move,
            self.vector_move,
            self.nothing,
            self.exchange,
            self.other_keeper,
        ]
        self.writers: List[Callable[[], None]] = [
            self.arithmetic,
            self.arithmetic,
            self.arithmetic,
            self.logic,
            self.shift,
            self.unary,
            self.multiply,
            self.compare_numbers,
            self.other_writer,
        ]
        self.partial: List[Callable[[], None]] = [self.step, self.carry, self.rotate, self.bit, self.scan, self.divide]
        self.readers: List[Callable[[], None]] = [
            self.read_all,
            self.read_all,
            self.set_byte,
            self.set_byte,
            self.conditional_move,
            self.with_carry,
            self.with_carry,
            self.rotate_carry,
            self.short_branch,
            self.short_branch,
        ]

    # ---- operands ----

    def say(self, line: str) -> None:
        self.lines.append("    " + line)

    def label(self) -> str:
        self.n_labels += 1
        return f".L{self.n_labels}"

    def pick(self, *choices: str) -> str:
        return self.chance.choice(choices)

    def size(self) -> int:
        return self.chance.randrange(4)

    def register(self, size: int, of: Sequence[str] = FREE) -> str:
        name = self.chance.choice(of)
        if name in LEGACY:
            return "%" + LEGACY[name][size]
        return "%" + name + ("b", "w", "d", "")[size]

    def byte_register(self) -> str:
        return self.pick("%ah", "%bh", "%ch", "%dh") if self.chance.random() < 0.25 else self.register(0)

    def number(self, bits: int) -> int:
        """Signed, small ones often."""
        kind = self.chance.random()
        if kind < 0.3:
            value = self.chance.randrange(-128, 128)
        elif kind < 0.6:
            pairs = (b"\x39\xc0", b"\x85\xc9", b"\x31\xd2", b"\x01\xf6", b"\xa8\x39", b"\x85\xff")
            value = int.from_bytes((b"".join(self.chance.choice(pairs) for _ in range(4)))[: bits // 8], "little")
        elif kind < 0.7:
            value = int.from_bytes(bytes(self.chance.choice(LOOKS_LIKE) for _ in range(bits // 8)), "little")
        elif kind < 0.8:
            value = self.chance.choice((0, 1, -1, 1 << (bits - 1), (1 << (bits - 1)) - 1))
        else:
            value = self.chance.getrandbits(bits)
        value &= (1 << bits) - 1
        return value - (1 << bits) if value >> (bits - 1) else value

    def immediate(self, size: int) -> str:
        return f"${self.number((8, 16, 32, 32)[size])}"

    def memory(self, aligned: bool = False) -> str:
        """Somewhere in the scratch memory. Aligned to 16 bytes for vectors that must be."""
        chance = self.chance
        base = "%" + self.pick("rbp", "r11", "r12", "r13")
        step = 16 if aligned else 1
        kind = chance.randrange(11)
        near = chance.randrange(-128, 112) // step * step
        far = chance.randrange(-1500, 1500) // step * step
        if kind == 0:
            return f"({base})"
        if kind == 1:
            return f"{near}({base})"
        if kind == 2:
            return f"{far}({base})"
        if kind == 3:
            return f"scratch+{far}(%rip)"
        if kind == 4:
            return f"scratch+{far}"
        if kind == 5:
            return f"%fs:scratch+{far}" if chance.random() < 0.3 else f"%ds:{near}({base})"
        if kind == 6:
            return f"{chance.choice((0, near))}({base}d)" if base != "%rbp" else f"{near}(%ebp)"
        if aligned:
            return f"{near}({base})"
        scale = chance.choice((1, 2, 4, 8))
        if kind == 7:
            return f"({base},%r14,{scale})"
        if kind == 8:
            return f"{near}({base},%r14,{scale})"
        if kind == 9:
            return f"{far}({base},%r14,{scale})"
        return f"scratch+{far}(,%r14,{scale})"

    def forced(self) -> str:
        """A longer or another encoding of the same, where there is one."""
        if self.chance.random() < 0.8:
            return ""
        return self.pick("{disp32} ", "{disp32} ", "{load} ", "{store} ", "ds ", "cs ", "rex ")

    def pair(self, size: int) -> str:
        """Source and destination."""
        kind = self.chance.randrange(6)
        if kind == 0:
            return f"{self.register(size)}, {self.register(size)}"
        if kind == 1:
            return f"{self.memory()}, {self.register(size)}"
        if kind == 2:
            return f"{self.register(size)}, {self.memory()}"
        if kind == 3:
            return f"{self.immediate(size)}, {self.memory()}"
        if kind == 4 and size == 0:
            # No REX prefix may go with these.
            high = self.pick("%ah", "%bh", "%ch", "%dh")
            return self.pick(f"{high}, %al", f"%bl, {high}", f"{self.immediate(0)}, {high}", f"{high}, (%rbp)")
        if kind == 4:
            return f"{self.immediate(size)}, {self.register(size, ('rax',))}"
        return f"{self.immediate(size)}, {self.register(size)}"

    def fit(self, line: str) -> None:
        """With a prefix that is allowed."""
        prefix = self.forced()
        if prefix == "rex " and ("h" in line or "r8" in line or "r9" in line or "r1" in line or "q " in line):
            prefix = ""
        if prefix in ("ds ", "cs ") and ("%fs" in line or "%ds" in line or line.startswith("lea")):
            prefix = ""
        self.say(prefix + line)

    # ---- those that leave the flags alone ----

    def move(self) -> None:
        size = self.size()
        kind = self.chance.random()
        if kind < 0.15:
            self.say(f"movabsq ${self.number(64)}, {self.register(3)}")
        elif kind < 0.19:
            # The wider one of two prefixes holds.
            self.say(f".byte 0x66; movq {self.immediate(2)}, {self.pick(self.register(3), self.memory())}")
        elif kind < 0.26:
            accumulator = "%" + LEGACY["rax"][size]
            self.say(self.pick(f"movabs scratch+64, {accumulator}", f"movabs {accumulator}, scratch+72"))
        else:
            self.fit(f"mov{SUFFIXES[size]} {self.pair(size)}")

    def load_address(self) -> None:
        size = self.chance.randrange(2, 4)
        a, b = self.register(3), self.register(3)
        distance = self.number(self.chance.choice((8, 32)))
        scale = self.chance.choice((1, 2, 4, 8))
        self.fit(
            f"lea{SUFFIXES[size]} "
            + self.pick(
                f"{distance}({a})", f"{distance}({a},{b},{scale})", f"{distance}(,{b},{scale})", f"{distance}(%rsp)"
            ).replace("(%rsp)", "(%rbp)")
            + f", {self.register(size)}"
        )

    def extend(self) -> None:
        kind = self.chance.randrange(6)
        if kind == 0:
            self.say(self.pick("cbtw", "cwtl", "cltq", "cwtd", "cltd", "cqto"))
        elif kind == 1:
            self.say(f"movslq {self.pick(self.register(2), self.memory())}, {self.register(3)}")
        else:
            of = self.chance.randrange(2)
            to = self.chance.randrange(of + 1, 4)
            source = self.pick(self.register(of), self.memory())
            self.say(f"mov{self.pick('z', 's')}{SUFFIXES[of]}{SUFFIXES[to]} {source}, {self.register(to)}")

    def stack(self) -> None:
        kind = self.chance.randrange(9)
        if kind == 0:
            self.say(f"push {self.register(3)}")
            self.say(f"pop {self.register(3)}")
        elif kind == 1:
            self.say(f"pushq ${self.number(self.chance.choice((8, 32)))}")
            if self.chance.random() < 0.5:
                self.keeper()
            self.say(f"popq {self.pick(self.register(3), self.memory())}")
        elif kind == 2:
            self.say(f"pushq {self.memory()}")
            self.say(f"pop {self.register(3)}")
        elif kind == 3:
            self.say(f"pushw ${self.number(16)}")
            self.say(f"popw {self.register(1)}")
        elif kind == 4:
            self.say("push %rbp")
            self.say("mov %rsp, %rbp")
            self.say(f"movl {self.immediate(2)}, -8(%rbp)")
            self.say("leave")
        elif kind == 5:
            self.say("enter $16, $0")
            self.say("leave")
        elif kind == 6:
            self.say("lea -128(%rsp), %rsp")
            self.say(f"mov{self.pick('l', 'q')} {self.immediate(2)}, {self.pick('', '8', '32')}(%rsp)")
            self.say("lea 128(%rsp), %rsp")
        elif kind == 7:
            self.say(f"push {self.register(3)}")
            self.say(f"popw {self.register(1)}")
            self.say("lea 6(%rsp), %rsp")
        else:
            self.say("push %r12")
            self.say("pop %r13")

    def vector(self) -> str:
        return f"%xmm{self.chance.randrange(16)}"

    def vector_move(self) -> None:
        a, b = self.vector(), self.vector()
        kind = self.chance.randrange(12)
        if kind == 0:
            op = self.pick("movaps", "movapd", "movdqa")
            at = self.memory(True)
            self.say(self.pick(f"{op} {a}, {b}", f"{op} {at}, {a}", f"{op} {a}, {at}"))
        elif kind == 1:
            op = self.pick("movups", "movupd", "movdqu", "lddqu" if self.chance.random() < 0.1 else "movdqu")
            at = self.memory()
            self.say(f"{op} {at}, {a}" if op == "lddqu" else self.pick(f"{op} {at}, {a}", f"{op} {a}, {at}"))
        elif kind == 2:
            op = self.pick("movss", "movsd", "movq", "movd")
            at = self.memory()
            self.say(self.pick(f"{op} {at}, {a}", f"{op} {a}, {at}"))
        elif kind == 3:
            op, at = self.pick("movhps", "movlps", "movhpd", "movlpd"), self.memory()
            self.say(self.pick(f"{op} {at}, {a}", f"{op} {a}, {at}"))
        elif kind == 4:
            self.say(self.pick(f"movd {a}, {self.register(2)}", f"movq {a}, {self.register(3)}"))
        elif kind == 5:
            self.say(self.pick(f"movd {self.register(2)}, {a}", f"movq {self.register(3)}, {a}"))
        elif kind == 6:
            names = "paddb paddw paddd paddq psubb psubd psubq pxor por pand pandn pcmpeqb pcmpeqw pcmpeqd pcmpgtd"
            names += (
                " punpcklbw punpckhdq pmuludq paddusb packuswb xorps andps orps andnps unpcklps pmullw pavgb pmaxub"
            )
            op = self.chance.choice(names.split())
            self.say(f"{op} {self.pick(b, self.memory(True))}, {a}")
        elif kind == 7:
            op = self.pick("pshufd", "pshuflw", "pshufhw", "shufps", "shufpd")
            self.say(f"{op} {self.immediate(0)}, {self.pick(b, self.memory(True))}, {a}")
        elif kind == 8:
            op = self.pick("psllq", "psrld", "psraw", "pslldq", "psrldq")
            self.say(f"{op} ${self.chance.randrange(40)}, {a}")
        elif kind == 9:
            self.say(self.pick(f"pmovmskb {a}, {self.register(2)}", f"movmskps {a}, {self.register(2)}"))
        elif kind == 10:
            self.say(
                self.pick(
                    f"cvtsi2sd {self.register(2)}, {a}",
                    f"cvtsi2sdq {self.register(3)}, {a}",
                    f"cvttsd2si {a}, {self.register(2)}",
                    f"pextrw $3, {a}, {self.register(2)}",
                    f"pinsrw $5, {self.register(2)}, {a}",
                )
            )
        elif "avx2" in self.has:
            c = self.vector()
            self.say(
                self.pick(
                    f"vmovdqu {self.memory()}, {a.replace('x', 'y', 1)}",
                    f"vmovups {a}, {self.memory()}",
                    f"vpxor {a}, {b}, {c}",
                    f"vpaddd {self.memory()}, {b}, {c}",
                    f"vpshufd {self.immediate(0)}, {a}, {b}",
                    f"vpalignr {self.immediate(0)}, {a}, {b}, {c}",
                    "vzeroupper",
                )
            )
        elif "ssse3" in self.has:
            self.say(
                self.pick(
                    f"palignr {self.immediate(0)}, {a}, {b}", f"pshufb {a}, {b}", f"pabsd {self.memory(True)}, {b}"
                )
            )

    def nothing(self) -> None:
        kind = self.chance.randrange(8)
        if kind < 2:
            self.say("endbr64")
        elif kind < 5:
            far = self.number(32)
            self.say(
                self.pick(
                    "nop",
                    "xchg %ax, %ax",
                    "nopl (%rax)",
                    "nopl 0(%rax,%rax,1)",
                    f"nopw {far}(%rax,%rax,1)",
                    f"nopl {far}(%rax)",
                    f"cs nopw {far}(%rax,%rax,1)",
                    f".byte 0x66; cs nopw {far}(%rax,%rax,1)",
                    f".byte 0x66, 0x66; cs nopw {far}(%rax,%rax,1)",
                    "{disp8} nopl 0(%rax,%rax,1)",
                )
            )
        elif kind == 5:
            self.say(
                self.pick("pause", "cld", "mfence", "lfence", "sfence", "prefetcht0 (%rbp)", "prefetchnta 57(%r12)")
            )
        elif kind == 6:
            after = self.label()
            self.say(f"{self.pick('jmp', 'jmp', '{disp32} jmp')} {after}")
            garbage = ", ".join(str(self.chance.choice(LOOKS_LIKE)) for _ in range(self.chance.randrange(9)))
            if garbage:
                self.say(f".byte {garbage}")
            self.lines.append(f"{after}:")
        else:
            self.say(f".p2align {self.chance.randrange(2, 6)}")

    def exchange(self) -> None:
        size = self.size()
        others = FREE[1:] if size == 1 else FREE  # VEX clears the rest of rax for one way to say "xchg %ax, %r8w"
        self.say(
            self.pick(
                f"xchg{SUFFIXES[size]} {self.register(size, others)}, {self.register(size, others)}",
                f"xchg{SUFFIXES[size]} {self.register(size)}, {self.memory()}",
                f"xchgq %rax, {self.register(3)}",
                f"bswap {self.register(self.chance.randrange(2, 4))}",
                f"not{SUFFIXES[size]} {self.pick(self.register(size), self.memory())}",
                f"not{SUFFIXES[size]} {self.pick(self.register(size), self.memory())}",
            )
        )

    def other_keeper(self) -> None:
        kind = self.chance.randrange(8)
        if kind == 0:
            self.say("mov %r12, %rsi")
            self.say(self.pick("lodsb", "lodsw", "lodsl", "lodsq"))
        elif kind == 1:
            self.say("lea 96(%r13), %rdi")
            self.say(self.pick("stosb", "stosw", "stosl", "stosq"))
        elif kind == 2:
            self.say("lea 128(%r13), %rdi")
            self.say("mov %r11, %rsi")
            if self.chance.random() < 0.5:
                self.say(f"mov ${self.chance.randrange(20)}, %ecx")
                self.say(self.pick("rep movsb", "rep movsq", "rep stosb", "rep stosl"))
            else:
                self.say(self.pick("movsb", "movsw", "movsl", "movsq"))
        elif kind == 3 and "movbe" in self.has:
            self.say(f"movbe {self.memory()}, {self.register(self.chance.randrange(1, 4))}")
        elif kind == 4 and "bmi2" in self.has:
            a, b, c = (self.register(3) for _ in range(3))
            self.say(
                self.pick(f"rorx $7, {a}, {b}", *(f"{op} {a}, {b}, {c}" for op in ("shlx", "sarx", "pdep", "pext")))
            )
        elif kind == 5:
            self.say(f"mov ${self.chance.randrange(32)}, %r14d")
        elif kind == 6:
            self.say(f"movnti {self.register(3)}, {self.memory()}")
        elif kind == 7:
            after = self.label()
            self.say(f"jrcxz {after}")
            self.say(f"mov {self.register(3)}, {self.register(3)}")
            self.lines.append(f"{after}:")

    # ---- those that set them ----

    def arithmetic(self) -> None:
        size = self.size()
        op = self.pick("add", "sub", "cmp", "cmp")
        lock = ""
        operands = self.pair(size)
        if op != "cmp" and operands.endswith(")") and self.chance.random() < 0.1:
            lock = "lock "
        if lock:
            self.say(f"{lock}{op}{SUFFIXES[size]} {operands}")
        else:
            self.fit(f"{op}{SUFFIXES[size]} {operands}")
        self.defined = ALL

    def logic(self) -> None:
        size = self.size()
        op = self.pick("and", "or", "xor", "test", "test")
        operands = self.pair(size)
        if op == "test" and not operands.startswith(("%", "$")) or operands.startswith("%fs"):
            operands = f"{self.register(size)}, {self.memory()}"
        if self.chance.random() < 0.1:
            register = self.register(2)
            op, size, operands = "xor", 2, f"{register}, {register}"
        self.fit(f"{op}{SUFFIXES[size]} {operands}")
        self.defined = ALL - {"A"}

    def shift(self) -> None:
        size = self.size()
        bits = 8 << size
        mask = 63 if size == 3 else 31
        op = self.pick("shl", "shr", "sar", "shld", "shrd")
        by_register = self.chance.random() < 0.3
        count = self.chance.choice((0, 1, 2, 3, 7, bits - 1, 31, 32, 33, 63, 64, 65, 96, 128, 255))
        if self.chance.random() < 0.5:
            count = 1
        if op in ("shld", "shrd"):
            size = max(size, 1)
            bits = 8 << size
            mask = 63 if size == 3 else 31
            # VEX sets flags of its own for none, and the architecture for too many.
            if not 0 < (count & mask) < bits:
                count = 5
        target = self.pick(self.register(size, tuple(name for name in FREE if name != "rcx")), self.memory())
        how = f"${count}"
        if by_register:
            self.say(f"mov ${count}, {self.pick('%ecx', '%cl', '%rcx')}")
            how = "%cl"
        if op in ("shld", "shrd"):
            self.say(f"{op}{SUFFIXES[size]} {how}, {self.register(size)}, {target}")
        elif how == "$1" and self.chance.random() < 0.7:
            self.say(f"{op}{SUFFIXES[size]} {target}")
        else:
            self.say(f"{op}{SUFFIXES[size]} {how}, {target}")
        count &= mask
        if count:
            self.defined = frozenset("CPZS") | (frozenset("O") if count == 1 else NONE)
            if count >= bits and op != "sar":
                self.defined -= {"C"}

    def unary(self) -> None:
        size = self.size()
        target = (
            self.pick(self.register(size), self.memory()) if size else self.pick(self.byte_register(), self.memory())
        )
        self.say(f"neg{SUFFIXES[size]} {target}")
        self.defined = ALL

    def multiply(self) -> None:
        size = self.size()
        target = self.pick(self.register(size), self.memory())
        kind = self.chance.randrange(3)
        if kind == 0:
            self.say(f"{self.pick('mul', 'imul')}{SUFFIXES[size]} {target}")
        else:
            size = max(1, size)
            source = self.pick(self.register(size), self.memory())
            extra = f"${self.number(self.chance.choice((8, (16, 16, 32, 32)[size])))}, " if kind == 1 else ""
            self.say(f"imul{SUFFIXES[size]} {extra}{source}, {self.register(size)}")
        self.defined = frozenset("CO")

    def compare_numbers(self) -> None:
        wide = self.chance.random() < 0.5
        op = self.pick("ucomi", "comi") + ("sd" if wide else "ss")
        self.say(f"{op} {self.pick(self.vector(), self.memory())}, {self.vector()}")
        self.defined = ALL
        if "sse4_1" in self.has and self.chance.random() < 0.2:
            self.say(f"ptest {self.vector()}, {self.pick(self.vector(), '%xmm1')}")
        elif "avx" in self.has and self.chance.random() < 0.2:
            self.say(f"vucomisd {self.vector()}, {self.vector()}")

    def other_writer(self) -> None:
        size = self.size()
        kind = self.chance.randrange(8)
        if kind == 0:
            # VEX takes the flags of "xadd %rax, %rax" from another sum.
            self.say(
                f"xadd{SUFFIXES[size]} {self.register(size, FREE[:4])}, {self.pick(self.register(size, FREE[4:]), self.memory())}"
            )
        elif kind == 1:
            size = self.chance.choice((0, 1, 3))  # VEX clears the upper halves for "cmpxchgl" always
            self.say(f"cmpxchg{SUFFIXES[size]} {self.register(size)}, {self.pick(self.register(size), self.memory())}")
        elif kind == 2:
            self.say("lea -64(%r12), %rsi")
            self.say("lea 64(%r13), %rdi")
            if self.chance.random() < 0.5:
                self.say(f"mov ${self.chance.randrange(1, 9)}, %ecx")
                self.say(self.pick("repe cmpsb", "repne scasb", "repe cmpsl", "repne scasw"))
            else:
                self.say(self.pick("scasb", "scasw", "scasl", "scasq"))
        elif kind == 3 and "popcnt" in self.has:
            self.say(f"popcnt {self.pick(self.register(3), self.memory())}, {self.register(3)}")
        elif kind == 4:
            bits = sum(bit for bit in BITS.values() if self.chance.random() < 0.5)
            self.say(f"pushq ${bits | 0x202}")
            self.say("popfq")
        elif kind == 5 and "sse4_1" in self.has:
            self.say(f"ptest {self.vector()}, {self.vector()}")
        elif kind == 6 and "bmi1" in self.has:
            a, b, c = (self.register(self.chance.choice((3,))) for _ in range(3))
            op = self.pick("andn", "blsr", "blsi", "blsmsk", "bextr")
            self.say(f"{op} {a}, {b}, {c}" if op in ("andn", "bextr") else f"{op} {a}, {b}")
            self.defined = frozenset({"bextr": "ZCO", "blsmsk": "SCO", "andn": "SZCO"}.get(op, "SZCO"))
            return
        else:
            self.say(f"test {self.register(3)}, {self.register(3)}")
            self.defined = ALL - {"A"}
            return
        self.defined = ALL

    # ---- those that set some ----

    def step(self) -> None:
        size = self.size()
        self.fit(f"{self.pick('inc', 'dec')}{SUFFIXES[size]} {self.pick(self.register(size), self.memory())}")
        self.defined = ALL - {"C"} | self.defined & {"C"}

    def carry(self) -> None:
        kind = self.chance.randrange(5)
        if kind == 0 and "C" in self.defined:
            self.say("cmc")
        elif kind == 1:
            self.say(f"mov {self.immediate(0)}, %ah")
            self.say("sahf")
            self.defined |= frozenset("CPAZS")
        else:
            self.say(self.pick("clc", "stc"))
        self.defined |= {"C"}

    def rotate(self) -> None:
        size = self.size()
        count = self.chance.choice((0, 1, 1, 2, 5, 31, 32))
        if 0 < count & (63 if size == 3 else 31) and count >= 8 << size:
            count = 3
        target = self.pick(self.register(size), self.memory())
        self.say(f"{self.pick('rol', 'ror')}{SUFFIXES[size]} ${count}, {target}")
        if count & (63 if size == 3 else 31):
            self.defined = (self.defined | {"C"}) - {"O"}
            if count == 1:
                self.defined |= {"O"}

    def bit(self) -> None:
        size = self.chance.randrange(1, 4)
        op = self.pick("bt", "bts", "btr", "btc")
        self.say(
            f"{op}{SUFFIXES[size]} ${self.chance.randrange(256) - 128}, {self.pick(self.register(size), self.memory())}"
        )
        self.defined = self.defined & {"Z"} | {"C"}

    def scan(self) -> None:
        size = self.chance.randrange(1, 4)
        if "bmi1" in self.has and "abm" in self.has and self.chance.random() < 0.6:
            op, defined = self.pick("tzcnt", "lzcnt"), frozenset("CZ")
            source = self.pick(self.register(size), self.memory())
        else:
            op, defined, source = self.pick("bsf", "bsr"), frozenset("Z"), self.register(size)
            self.say(f"or{SUFFIXES[size]} $64, {source}")
        self.say(f"{op}{SUFFIXES[size]} {source}, {self.register(size)}")
        self.defined = defined

    def divide(self) -> None:
        self.say("mov $1234577, %eax" if self.chance.random() < 0.5 else "movzwl %ax, %eax")
        self.say("cltd" if self.chance.random() < 0.5 else "mov $0, %edx")
        self.say(f"mov ${self.chance.randrange(1, 10000)}, %{self.pick('ecx', 'r9d')}")
        self.say("push %rcx")
        self.say("mov $77, %ecx")
        self.say(f"{self.pick('div', 'idiv')}l %ecx")
        self.say("pop %rcx")
        self.defined = NONE

    # ---- those that read them ----

    def trace(self) -> str:
        self.n_traced += 1
        return f"traced+{self.n_traced - 1}{self.pick('', '(%rip)')}"

    def condition(self) -> Optional[str]:
        possible = [name for name, needed in sorted(CONDITIONS.items()) if needed <= self.defined]
        return self.chance.choice(possible) if possible else None

    def read_all(self) -> None:
        mask = sum(BITS[flag] for flag in self.defined)
        if not mask:
            return
        if self.chance.random() < 0.3 and self.defined >= frozenset("CPAZS"):
            self.say("lahf")
            self.say(f"mov %ah, traced+{self.n_traced}")
            self.n_traced += 1
            return
        register = self.register(3)
        self.say("pushfq")
        self.say(f"pop {register}")
        self.say(f"and ${mask}, {register}")
        self.say(f"add {register}, traced+{self.n_traced}")
        self.n_traced += 8
        self.defined = ALL

    def set_byte(self) -> None:
        condition = self.condition()
        if condition:
            if self.chance.random() < 0.6:
                self.say(f"set{condition} {self.trace()}")
            else:
                self.say(f"set{condition} {self.byte_register()}")

    def conditional_move(self) -> None:
        condition = self.condition()
        if condition:
            size = self.chance.randrange(1, 4)
            to = self.register(size)
            self.say(f"cmov{condition} {self.pick(self.register(size), self.memory())}, {to}")

    def with_carry(self) -> None:
        if "C" not in self.defined:
            return
        size = self.size()
        kind = self.chance.random()
        if kind < 0.2 and "adx" in self.has:
            self.say(f"adcx {self.register(3)}, {self.register(3)}")
            return
        if kind < 0.3:
            self.say("sbb %eax, %eax")
        elif kind < 0.5:
            self.say(f"adc{SUFFIXES[size]} {self.immediate(size)}, {self.trace()}")
            self.n_traced += 7
        else:
            self.fit(f"{self.pick('adc', 'sbb')}{SUFFIXES[size]} {self.pair(size)}")
        self.defined = ALL

    def rotate_carry(self) -> None:
        if "C" not in self.defined:
            return
        size = self.size()
        count = self.chance.choice((1, 1, 2, 3, 7))
        how = "" if count == 1 and self.chance.random() < 0.5 else f"${count}, "
        self.say(f"{self.pick('rcl', 'rcr')}{SUFFIXES[size]} {how}{self.pick(self.register(size), self.memory())}")
        self.defined = self.defined - {"O"} | {"C"}
        if count == 1:
            self.defined |= {"O"}

    def short_branch(self) -> None:
        """Over a few instructions, or to a few that lie elsewhere and lead back."""
        condition = self.condition()
        if not condition or self.depth > 2:
            return
        self.depth += 1
        defined = self.defined
        other, back = self.label(), self.label()
        near = self.chance.random() < 0.6
        self.say(f"{self.pick('', '', '{disp32} ')}j{condition} {back if near else other}")
        if not near:
            lines, self.lines = self.lines, []
            self.lines.append(f"{other}:")
        self.some(self.chance.randrange(1, 4))
        if not near:
            self.say(f"jmp {back}")
            self.elsewhere += self.lines
            self.lines = lines
            there, self.defined = self.defined, defined
            if self.chance.random() < 0.5:
                self.some(self.chance.randrange(1, 3))
            self.defined &= there
        self.lines.append(f"{back}:")
        if near:
            self.defined &= defined
        self.depth -= 1

    # ---- blocks ----

    def keeper(self) -> None:
        self.chance.choice(self.keepers)()

    def some(self, n: int) -> None:
        for _ in range(n):
            kind = self.chance.random()
            if kind < 0.40:
                self.keeper()
            elif kind < 0.60 or not self.defined:
                self.chance.choice(self.writers)()
            elif kind < 0.70:
                self.chance.choice(self.partial)()
            elif kind < 0.94 or self.depth > 1:
                self.chance.choice(self.readers)()
            else:
                self.chance.choice((self.call, self.counted))()

    def elsewhere_until(self, name: str, end: str, body: Callable[[], None]) -> None:
        lines, self.lines = self.lines, [f"{name}:"]
        body()
        self.say(end)
        self.elsewhere += self.lines
        self.lines = lines

    def call(self) -> None:
        """What it leaves in the flags is read after it, and it reads what was there before."""
        self.depth += 1
        name = self.label()
        self.elsewhere_until(name, self.pick("ret", "ret", "repz ret"), lambda: self.some(self.chance.randrange(4)))
        kind = self.chance.random()
        if kind < 0.7:
            self.say(f"call {name}")
        elif kind < 0.85:
            self.say(f"mov ${name}, %r10d")
            self.say("call *%r10")
        else:
            table = self.label()
            self.elsewhere += [".section .rodata", f"{table}: .quad {name}", ".text"]
            self.say(f"call *{table}(%rip)")
        self.depth -= 1

    def counted(self) -> None:
        """A loop: what the end of a round leaves in the flags is read by the next one."""
        self.depth += 2
        head, out = self.label(), self.label()
        self.say(f"pushq ${self.chance.randrange(2, 5)}")
        if self.chance.random() < 0.7 and self.defined != ALL:
            self.arithmetic()
        self.lines.append(f"{head}:")
        wanted = self.defined
        self.some(self.chance.randrange(1, 6))
        kind = self.chance.randrange(4)
        if kind == 3:
            self.say("subl $1, (%rsp)")
            self.say(f"{self.pick('jg', 'jne', 'ja')} {head}")
            self.defined = ALL
        else:
            if not wanted <= self.defined:
                self.arithmetic()
            if kind == 2:
                self.say("decq (%rsp)")
                self.defined = ALL - {"C"} | self.defined & {"C"}
                self.say(f"jnz {head}")
            else:
                self.say("pop %rcx")
                self.say("lea -1(%rcx), %rcx")
                self.say("push %rcx")
                self.say(f"jrcxz {out}")
                self.say(f"jmp {head}")
        self.lines.append(f"{out}:")
        self.say(f"pop {self.register(3)}")
        self.depth -= 2

    def meeting(self) -> None:
        """Flags are set, something leads elsewhere, a few instructions keep them, and there they are read."""
        self.chance.choice(self.writers)()
        for _ in range(self.chance.randrange(3)):
            self.keeper()
        where = self.label()
        condition = self.condition()
        kind = self.chance.randrange(4)
        if condition and kind:
            # Both ways lead there, with other instructions before it.
            other = self.label()
            self.say(f"j{condition} {other}")
            defined = self.defined
            self.nothing()
            if kind == 1:
                self.say(f"jmp {where}")
            elif kind == 2:
                self.chance.choice(self.partial)()
            self.defined &= defined
            self.lines.append(f"{other}:")
        else:
            self.say(f"jmp {where}")
        self.lines.append(f"{where}:")
        for _ in range(self.chance.choice((0, 1, 1, 1, 2, 3))):
            self.keeper()
        if self.chance.random() < 0.2:
            self.chance.choice(self.partial)()
        self.chance.choice(self.readers)()
        if self.chance.random() < 0.5:
            self.arithmetic()

    def decoded(self) -> None:
        """Between what sets all of them and what reads all of them is one instruction, whose length must be known."""
        there = self.label()
        self.arithmetic()
        self.say(f"{self.pick('jmp', 'jmp', 'jz', 'jbe')} {there}")
        self.lines.append(f"{there}:")
        self.chance.choice(self.chance.choice((self.keepers, self.keepers, self.keepers, self.writers, self.partial)))()
        self.chance.choice((self.read_all, self.read_all, self.with_carry, self.set_byte))()

    def blocks(self, n: int) -> List[List[str]]:
        """Each leads on to some of the next ones only, so all ends. What may be read in one is defined on all ways to it."""
        made: List[List[str]] = []
        arriving: Dict[int, Flags] = {0: ALL}
        for i in range(n):
            self.lines = [f"block{i}:"]
            self.defined = arriving.get(i, NONE)
            if i in arriving:
                kind = self.chance.random()
                if kind < 0.3:
                    for _ in range(10):
                        self.decoded()
                elif kind < 0.6:
                    self.meeting()
                else:
                    self.some(self.chance.randrange(1, 6))
            following = [min(n, i + self.chance.choice((1, 1, 1, 2, 3))) for _ in range(2)]
            following[0] = min(n, i + 1)
            kind = self.chance.random()
            condition = self.condition()
            if kind < 0.6 and condition:
                self.say(f"j{condition} block{following[1]}")
                if self.chance.random() < 0.3 and self.condition():
                    self.say(f"j{self.condition()} block{min(n, i + 2)}")
                    following.append(min(n, i + 2))
                self.say(f"jmp block{following[0]}")
            elif kind < 0.7:
                self.say(f"jmp *table{i}(,%r14,8)")
                table = [self.chance.choice(following) for _ in range(32)]
                self.elsewhere += [".section .rodata", f"table{i}:"]
                self.elsewhere += [f"    .quad block{target}" for target in table] + [".text"]
            elif kind < 0.78:
                following = [following[1]]
                self.say(f"pushq $block{following[0]}")
                self.say("ret")
            else:
                following = [following[0]]
                self.say(f"jmp block{following[0]}")
            for target in following:
                arriving[target] = arriving.get(target, ALL) & self.defined
            made.append(self.lines)
        # Skipped ones are left to the end: nothing leads to them.
        self.lines = [f"block{n}:"]
        self.defined = arriving.get(n, NONE)
        if not self.defined >= ALL:
            self.say("add %rax, %rdx")
        self.say("lea -1(%r15), %r15")
        self.say("mov %r15, %rcx")
        self.say("jrcxz 1f")
        self.say("jmp block0")
        self.lines.append("1:  jmp finish")
        made.append(self.lines)
        return made

    def text(self, n: int) -> str:
        made = self.blocks(n)
        # A jump to what comes next anyway is left out mostly, and then code falls through.
        order = list(range(len(made)))
        for _ in range(len(made) // 5):
            i = self.chance.randrange(len(made))
            order.insert(self.chance.randrange(len(order)), order.pop(order.index(i)))
        lines: List[str] = []
        for at, i in enumerate(order):
            block = list(made[i])
            if at + 1 < len(order) and block[-1] == f"    jmp block{order[at + 1]}" and self.chance.random() < 0.9:
                block.pop()
            lines += block
        values = "\n".join(f"    mov ${self.chance.getrandbits(64)}, %{name}" for name in FREE)
        vectors = "\n".join(f"    movups scratch+{16 * i}, %xmm{i}" for i in range(16))
        code = "\n".join(lines + self.elsewhere)
        words = "\n".join(f"    .quad {self.chance.getrandbits(64)}" for _ in range(600))
        return FRAME.format(
            values=values, vectors=vectors, code=code, words=words, n_traced=(self.n_traced + 15) // 8 * 8
        )


# Registers, scratch memory and all flags that were read are folded into one number, which is printed.
FRAME = """
# SPDX-License-Identifier: GPL-2.0-or-later
.text
.globl _start
_start:
    lea scratch(%rip), %rbp
    mov %rbp, %r11
    mov %rbp, %r12
    mov %rbp, %r13
    mov $3, %r14d
    mov $4, %r15d
{vectors}
{values}
    cmp %rax, %rbx
    jmp block0
{code}
finish:
    push %r10
    push %r9
    push %r8
    push %rdi
    push %rsi
    push %rbx
    push %rdx
    push %rax
    mov $0x9e3779b97f4a7c15, %rbx
    mov $8, %ecx
    mov %rsp, %rsi
    call fold
    lea scratch-2400(%rip), %rsi
    mov $600, %ecx
    call fold
    mov $traced, %esi
    mov ${n_traced} / 8, %ecx
    call fold
    lea hex(%rip), %rsi
    mov $16, %ecx
1:  rol $4, %rbx
    mov %ebx, %eax
    and $15, %eax
    mov digits(%rax), %al
    mov %al, (%rsi)
    inc %rsi
    dec %ecx
    jnz 1b
    mov $1, %eax
    mov $1, %edi
    lea hex(%rip), %rsi
    mov $17, %edx
    syscall
    mov %ebx, %edi
    and $127, %edi
    mov $231, %eax
    syscall
fold:
    lodsq
    xor %rax, %rbx
    mov $0xff51afd7ed558ccd, %rdx
    imul %rdx, %rbx
    ror $29, %rbx
    loop fold
    ret
.section .rodata
digits: .ascii "0123456789abcdef"
.data
.balign 64
{words}
.set scratch, . - 2400
.balign 64
hex: .ascii "................\\n"
.bss
.balign 64
traced: .skip {n_traced} + 64
.section .note.GNU-stack,"",@progbits
"""


def program(seed: int, number: int, n_blocks: int) -> str:
    return Program(random.Random(f"{seed}.{number}"), processor()).text(n_blocks)


def assembled(source: str, directory: Path) -> Path:
    code, made = directory / "flags.s", directory / "flags"
    code.write_text(source)
    check_run(["gcc", "-nostdlib", "-static", "-no-pie", "-o", made, code])
    return made


def valgrinds(made: Path) -> Run:
    """What it does without a tool: VEX has faults of its own, in the rarer of the instructions."""
    return run([VALGRIND, "--tool=none", "-q", made])


def faults_of(made: Path, cache: Path) -> List[str]:
    """Where a program does under the tool what it does not do alone."""
    alone = run([made], timeout=20)
    expected = Run(alone.returncode, alone.stdout, "")
    faults: List[str] = []
    if alone.returncode < 0 or len(alone.stdout) != 17:
        return [f"the program itself: status {alone.returncode}, {alone.stdout!r}"]
    modes: Sequence[Argument] = ("no", cache, cache)
    for mode in modes:
        done = cached([made], mode)
        if done != expected and done != valgrinds(made):
            faults.append(
                f"--code-cache={'no' if mode == 'no' else 'DIR'}: {done.returncode}, {done.stdout!r} instead of "
                f"{alone.returncode}, {alone.stdout!r} {done.stderr[:500]}"
            )
    return faults


def search(seed: int, n_programs: int, n_blocks: int, first: int = 0, keep: Optional[Path] = None) -> List[str]:
    """The faults of so many programs."""
    faults: List[str] = []
    for number in range(first, first + n_programs):
        source = program(seed, number, n_blocks)
        with tempfile.TemporaryDirectory(prefix="jmassif-flags-") as made:
            found = faults_of(assembled(source, Path(made)), Path(made) / "cache")
        faults += [f"seed {seed}, program {number}: {fault}" for fault in found]
        if found and keep:
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{seed}.{number}.s").write_text(source)
    return faults


def main(arguments: Optional[Sequence[str]] = None) -> int:
    options = parser(__doc__)
    options.add_argument("--programs", type=int, default=100)
    options.add_argument("--first", type=int, default=0, help="the number of the first one")
    options.add_argument("--blocks", type=int, default=400, help="of each program")
    options.add_argument("--keep", type=Path, help="where to write the sources of those with a fault")
    chosen = options.parse_args(arguments)
    faults = search(chosen.seed, chosen.programs, chosen.blocks, chosen.first, chosen.keep)
    print(f"seed {chosen.seed}: {chosen.programs} programs, {len(faults)} faults")
    return ended(faults)


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main())
