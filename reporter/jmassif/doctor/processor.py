# SPDX-License-Identifier: GPL-2.0-or-later
"""What the processor can do and Valgrind cannot. Libraries choose their code by what they find, some by asking the kernel past
Valgrind, and an instruction that it does not know ends the program."""

from typing import Dict, List, NamedTuple, Tuple

from jmassif.doctor.machine import Findings, Machine, lost, ok

Version = Tuple[int, ...]
_NEVER: Version = (99,)


class Feature(NamedTuple):
    """By the kernel's name for it in /proc/cpuinfo."""

    shown: str
    since: Version  # the release of Valgrind that knows its instructions, by Valgrind's NEWS


_ARM64 = {
    "atomics": Feature("atomics (LSE)", (3, 15)),
    "asimddp": Feature("dot products", (3, 23)),
    "asimdhp": Feature("half precision", _NEVER),
    "i8mm": Feature("8-bit matrices", _NEVER),
    "bf16": Feature("bfloat16", _NEVER),
    "sve": Feature("SVE", _NEVER),
}
_AMD64 = {
    "avx512f": Feature("AVX-512", _NEVER),
    "amx_tile": Feature("AMX", _NEVER),
}
# What keeps libraries from choosing by themselves: OpenBLAS (NumPy), PyTorch, OpenSSL.
_VARIABLES: Dict[str, str] = {"OPENBLAS_CORETYPE": "ARMV8", "ATEN_CPU_CAPABILITY": "default", "OPENSSL_armcap": "0"}


def _features(machine: Machine) -> Tuple[Dict[str, Feature], List[str]]:
    for line in machine.text("/proc/cpuinfo").splitlines():
        label, _, rest = line.partition(":")
        if label.strip() in ("Features", "flags"):
            return (_ARM64 if label.strip() == "Features" else _AMD64), rest.split()
    return _AMD64, []


def check_processor(machine: Machine, valgrind: Version) -> Findings:
    """`valgrind` is the release that runs the program."""
    table, present = _features(machine)
    lacking = [table[name].shown for name in table if name in present and valgrind < table[name].since]
    if not lacking:
        return ok("processor", "has nothing that libraries ask for and Valgrind lacks")
    what = ", ".join(lacking)
    if table is _AMD64:
        # Valgrind answers cpuid itself, so libraries do not choose these.
        text = f"{what}: hidden from programs; one that was compiled for it (-march=native) ends with an illegal instruction"
        return ok("processor", text)
    missing = {name: value for name, value in _VARIABLES.items() if machine.environment.get(name) != value}
    text = f"Valgrind {'.'.join(map(str, valgrind))} lacks what it can do: {what}; a library that uses it ends with an illegal instruction"
    if not missing:
        return ok("processor", text + "; the variables that keep libraries from it are set")
    mend = "if so: export " + " ".join(f"{name}={value}" for name, value in missing.items())
    if "dot products" in lacking:
        mend += "; Valgrind 3.23 or later has them"
    return lost("processor", text, mend)
