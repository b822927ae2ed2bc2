# SPDX-License-Identifier: GPL-2.0-or-later
"""What instructions do to condition codes, and how long they are: all that are in large libraries, as objdump reads them."""

import platform
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Dict, List, NamedTuple, Set

import pytest

from tests.fuzz import modules
from tests.tool.programs import DIRECTORY

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions of x86-64")

READS, KEEPS, SETS = range(3)

SETTING = set("add or and sub xor cmp test neg shl shr sar imul mul ucomiss ucomisd comiss comisd".split())
KEEPING = set(
    """mov movabs movzb movzw movsb movsw movslq movsxd lea push pop nop nopw nopl endbr64 cltq cqto cltd cwtl leave not pause
    cwtd cbtw call jmp xchg
    movaps movups movapd movupd movss movsd movdqa movdqu movq movd movhps movlps movhpd movlpd movlhps movhlps movddup movshdup movsldup
    unpcklps unpckhps unpcklpd unpckhpd movmskps movmskpd pmovmskb movdq2q movq2dq movntps movntpd movntdq movnti
    cvtsi2ss cvtsi2sd cvttss2si cvttsd2si cvtss2si cvtsd2si cvtss2sd cvtsd2ss cvtps2pd cvtpd2ps cvtdq2ps cvtps2dq cvttps2dq cvtpi2ps
    cvtpi2pd cvttps2pi cvttpd2pi cvtps2pi cvtpd2pi
    sqrtss sqrtsd sqrtps sqrtpd rsqrtss rsqrtps rcpss rcpps andps andpd andnps andnpd orps orpd xorps xorpd
    addss addsd addps addpd mulss mulsd mulps mulpd subss subsd subps subpd divss divsd divps divpd minss minsd minps minpd maxss maxsd
    maxps maxpd pand pandn por pxor pcmpeqb pcmpeqw pcmpeqd pcmpgtb pcmpgtw pcmpgtd packsswb packssdw packuswb punpcklbw punpcklwd
    punpckldq punpcklqdq punpckhbw punpckhwd punpckhdq punpckhqdq pshufw pshufd pshufhw pshuflw shufps shufpd paddb paddw paddd paddq
    psubb psubw psubd psubq""".split()
)


class Instruction(NamedTuple):
    code: bytes
    name: str


def disassembled(library: Path) -> Set[Instruction]:
    told = subprocess.run(
        ["objdump", "-d", "--no-addresses", "-w", "--insn-width=16", str(library)], check=True, capture_output=True
    ).stdout.decode(errors="replace")
    found = re.findall(r"^\t((?:[0-9a-f]{2} )+)\s*\t(.*)$", told, re.MULTILINE)
    return {Instruction(bytes.fromhex(code), text) for code, text in found}


def libraries() -> List[Path]:
    patterns = ["libc.so.6", "libm.so.6", "libstdc++.so.6", "libcrypto.so.*"]
    return [path for pattern in patterns for path in sorted(Path("/usr/lib/x86_64-linux-gnu").glob(pattern))[:1]]


def mnemonic(text: str) -> str:
    """Without prefixes and the suffix of the operands' size."""
    words = [word for word in text.split() if not re.fullmatch(r"(rex\S*|data16|cs|bnd|notrack|lock|fs|\{\w+\})", word)]
    return words[0] if words else "nop"


def is_one_of(name: str, known: Set[str]) -> bool:
    return name in known or (name[-1] in "bwlq" and name[:-1] in known)


class Answer(NamedTuple):
    effect: int
    length: int
    distance: int  # to where a jump or call leads


def answers(codes: List[bytes]) -> List[Answer]:
    """What the recorder says of each instruction."""
    build = modules.program(DIRECTORY / "x86_flags.c", ["valgrind/x86_flags.c"], "gcc", "-DALONE")
    given = b"".join(code.ljust(16, b"\xf4") for code in codes)
    told = subprocess.run([str(build)], input=given, check=True, capture_output=True).stdout.splitlines()
    assert len(told) == len(codes)
    return [Answer(*map(int, line.split())) for line in told]


def test_instructions_are_what_a_disassembler_says() -> None:
    instructions: Set[Instruction] = set().union(*map(disassembled, libraries()))
    instructions = {i for i in instructions if not re.search(r"\(bad\)|\.byte", i.name) and len(i.code) <= 15}
    assert len(instructions) > 100000
    ordered = sorted(instructions)
    wrong: List[str] = []
    seen: Dict[int, Counter[str]] = {effect: Counter() for effect in (READS, KEEPS, SETS)}
    for instruction, (effect, length, _) in zip(ordered, answers([i.code for i in ordered])):
        name = mnemonic(instruction.name)
        seen[effect][name] += 1
        known = {SETS: SETTING, KEEPS: KEEPING}.get(effect)
        if known and (length != len(instruction.code) or not is_one_of(name, known)):
            wrong.append(f"{instruction.code.hex()} {instruction.name}: {length} bytes, {effect}")
    assert not wrong, f"{len(wrong)}: {wrong[:20]}"
    # Most of what these names stand for is understood, not taken for a reader.
    for name in ("mov", "lea", "push", "cmp", "test", "sub", "xor", "movaps"):
        right = seen[SETS if name in SETTING else KEEPS][name]
        assert right > 0.9 * (right + seen[READS][name]), (name, seen)


def test_jumps_and_calls_lead_where_a_disassembler_says(tmp_path: Path) -> None:
    source = ["near: call far", "jmp near", "jmp far", "call near", ".skip 300, 0x90", "far: jmp near", "call *%rax"]
    (tmp_path / "jumps.s").write_text("\n".join(source) + "\n")
    subprocess.run(["as", "-o", tmp_path / "jumps.o", tmp_path / "jumps.s"], check=True)
    told = subprocess.run(
        ["objdump", "-d", "-w", "--insn-width=16", tmp_path / "jumps.o"], check=True, capture_output=True, text=True
    )
    rows = re.findall(
        r"^\s*([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*\t(?:jmp|call)\s+([0-9a-f]+) ", told.stdout, re.MULTILINE
    )
    assert len(rows) == 5
    codes = [bytes.fromhex(code) for _, code, _ in rows]
    assert answers(codes) == [
        Answer(KEEPS, len(code), int(to, 16) - int(at, 16)) for (at, _, to), code in zip(rows, codes)
    ]
