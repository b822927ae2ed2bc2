# SPDX-License-Identifier: GPL-2.0-or-later
"""The recorder's readers of what others wrote (object files and their unwind tables, what the kernel tells, an interpreter's tables), built
for this machine with sanitizers and handed changed files: no read beyond what was checked, nothing undefined, no input that takes long.

    python3 -m tests.fuzz.modules [--seed=N] [--seconds=20] [--target=NAME] [--libfuzzer=DIRECTORY]

The same seed makes the same inputs: a fault is told with the command that makes its input alone. With --libfuzzer clang's searches
instead, by what inputs reach, and keeps what it finds in the directory.
"""

import argparse
import hashlib
import re
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, List, NamedTuple

from tests import harness
from tests.harness import BUILD, ROOT

SOURCE = Path(__file__).parent / "modules"
MOST_MICROSECONDS = 1_000_000  # of an input
_MOST_BYTES = 1 << 18  # mutate.c's

# By target: what of the recorder is built in.
TARGETS: Dict[str, List[str]] = {
    "elf": ["symbols/elf.c", "base/client_memory.c", "base/text.c"]
    + [f"unwind/{name}.c" for name in ("table", "dwarf", "step")],
    "functions": ["host/native/demangle.c", "host/native/functions.c", "symbols/elf.c", "-liberty"]
    + [f"base/{name}.c" for name in ("array", "client_memory", "map", "table", "text")],
    "texts": ["base/client_memory.c", "base/text.c", "pages/smaps.c", "machine/system.c"],
    "python": ["base/client_memory.c", "python/layout.c"],
    "frames": [
        "base/checksum.c",
        "base/client_memory.c",
        "base/per_thread.c",
        "base/table.c",
        "base/text.c",
        "python/code.c",
    ],
}

# With frames of many sorts, some of them only to be unwound.
THROWER = """
#include <alloca.h>
#include <stdarg.h>
#include <string.h>
static __attribute__((noinline)) int leaf(int n) { return n * 3 + 1; }
int thrower(int n, ...)
{
    va_list list;
    va_start(list, n);
    char *room = alloca((size_t)n * 16);
    memset(room, n, (size_t)n * 16);
    int sum = leaf(n) + va_arg(list, int) + room[n];
    va_end(list);
    return sum;
}
__attribute__((optimize("no-omit-frame-pointer"))) int framed(int n) { return thrower(n, n) + leaf(n); }
double many(double a, double b, int c, int d, int e, int f, int g, int h) { return a * b + framed(c + d + e) * framed(f + g + h); }
void by_hand(void)
{
    __asm__ volatile(".cfi_remember_state\\n.cfi_escape 0x0f,3,0x77,8,0x06\\n.cfi_escape 0x10,3,2,0x77,0\\nnop\\n.cfi_restore_state");
    __asm__ volatile(".cfi_escape 0x16,6,3,0x77,16,0x23\\n.cfi_undefined 3\\n.cfi_same_value 12\\n.cfi_register 13, 14\\nnop");
}
/* An offset that times the unit of data is no number. */
void by_a_wild_hand(void)
{
    __asm__ volatile(".cfi_remember_state\\n.cfi_escape 0x05,12,0xf8,0xff,0xff,0xff,0xff,0xff,0xff,0xff,0x48\\nnop\\n.cfi_restore_state");
}
"""


def _flags() -> List[str]:
    # Fields of files lie anywhere, and the machines that the recorder is for read them there. The kernel's headers have an
    # offsetof that begins at no object.
    checks = ["-fsanitize=address,undefined", "-fno-sanitize=alignment,null,object-size", "-fno-sanitize-recover=all"]
    return [
        "-I",
        str(ROOT / "jmassif"),
        *checks,
        "-std=gnu11",
        "-O1",
        "-fno-omit-frame-pointer",
        "-w",
        "-I",
        str(SOURCE),
    ]


def program(source: harness.Argument, modules: List[str], compiler: str = "gcc", *more: str) -> Path:
    """Builds a target of modules of the recorder; without a main program where there is more to say."""
    parts = [SOURCE / "shim.c"] + ([] if more else [SOURCE / "mutate.c"])
    parts += [ROOT / "jmassif" / name for name in modules if not name.startswith("-l")]
    texts = "".join(
        path.read_text() for path in [*sorted(SOURCE.glob("*.[ch]")), *sorted((ROOT / "jmassif").glob("*/*.[ch]"))]
    )
    key = f"-DSOURCES={hashlib.sha256(texts.encode()).hexdigest()}"
    libraries = [name for name in modules if name.startswith("-l")]
    flags = [*_flags(), key, *more, *map(str, parts), *libraries]
    return harness.compile_c(source, *flags, compiler=compiler)


# ---- what is changed -------------------------------------------------------------------------


def mapped(file: bytes) -> bytes:
    """An object file as the loader maps it, without what it would write into it."""
    program_headers, n_headers = struct.unpack_from("<Q", file, 32)[0], struct.unpack_from("<H", file, 56)[0]
    image = bytearray()
    for number in range(n_headers):
        kind, _, offset, address, _, in_file, in_memory, _ = struct.unpack_from(
            "<IIQQQQQQ", file, program_headers + 56 * number
        )
        if kind == 1:
            image.extend(bytes(max(0, address + in_memory - len(image))))
            image[address : address + in_file] = file[offset : offset + in_file]
    return bytes(image)


def _made() -> List[Path]:
    kinds = (["-g0"], ["-fno-omit-frame-pointer"], ["-s", "-Wl,--hash-style=sysv"])
    return [harness.compile_c(THROWER, "-shared", "-fPIC", "-O1", "-fexceptions", "-w", *kind) for kind in kinds]


def _files() -> List[bytes]:
    return [path.read_bytes() for path in _made()] + _objects()


def _objects() -> List[bytes]:
    made = _made()
    loader = sorted(Path("/").glob("lib*/ld-linux-*.so.*"))
    images = [mapped(path.read_bytes()) for path in [*made, *loader[:1]]]
    return [image for image in images if len(image) <= _MOST_BYTES]


def _texts() -> List[bytes]:
    names = (
        "self/smaps",
        "self/maps",
        "meminfo",
        "self/status",
        "buddyinfo",
        "zoneinfo",
        "self/cgroup",
        "self/pagemap",
    )
    texts = [
        b"0::/a/b\n",
        b"4:memory:/x\n9:cpu:/\n",
        b"max\n",
        b"123456\n",
        b"total 123K\n",
        b"x" * 20000,
        b"\n" * 9000,
    ]
    for name in names:
        path = Path("/proc") / name
        if path.exists():
            with path.open("rb") as stream:
                texts.append(stream.read(60000) if name != "self/pagemap" else bytes(range(256)) * 16)
    return texts


def _interpreters() -> List[bytes]:
    tables = [function.__code__.co_lnotab for function in (_objects, mapped, argparse.ArgumentParser.parse_known_args)]
    new = [getattr(_texts.__code__, "co_linetable", b"\x80\x01" * 40)]
    published = [
        b"xdebugpy"
        + struct.pack("<QQ", version << 16, 0)
        + b"".join(struct.pack("<Q", 8 * n % 700) for n in range(120))
        for version in (0x30D, 0x30E, 0x30F, 0x310)
    ]
    return [table * 3 for table in tables + new] + published


def _damages() -> List[bytes]:
    """For each release, none and some."""
    return [bytes([release]) + bytes(range(release, release + 4 * n)) for release in range(10) for n in (0, 5, 20)]


_SEEDS = {"frames": _damages, "elf": _objects, "functions": _files, "texts": _texts, "python": _interpreters}


def seeds(target: str, directory: Path) -> List[Path]:
    """Writes what is changed, and returns the files."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, data in enumerate(_SEEDS[target]()):
        paths.append(directory / f"{target}-{number}")
        paths[-1].write_bytes(data)
    return paths


# ---- runs ------------------------------------------------------------------------------------


class Tally(NamedTuple):
    inputs: int
    longest: int  # microseconds of the processor
    faults: List[str]


def attempt(built: Path, seed: int, seconds: int, paths: List[Path], progress: Path) -> Tally:
    """Looks for faults for so long; the first ends it."""
    progress.write_bytes(bytes(8))
    done = harness.run([built, str(seed), str(seconds), progress, *paths], timeout=seconds + 600)
    at = struct.unpack("<Q", progress.read_bytes())[0]
    again = " ".join(str(word) for word in (built, seed, 0, progress, f"--only={at}", *paths))
    if done.returncode:
        said = re.findall(r"(?:runtime error|ERROR|Assertion|jmassif/).*|^    #[0-3] .*", done.stderr, re.MULTILINE)[:6]
        return Tally(at, 0, [f"{' | '.join(said) or done.stderr[-500:]}: {again}"])
    found = re.search(r"(\d+) inputs, longest (\d+) us", done.stdout)
    assert found, done.stdout
    longest = int(found.group(2))
    faults = [f"an input took {longest} us: {done.stdout}: {again}"] if longest > MOST_MICROSECONDS else []
    return Tally(int(found.group(1)), longest, faults)


def search(target: str, seed: int, seconds: int, directory: Path) -> Tally:
    """The same of one of the targets."""
    built = program(SOURCE / f"{target}.c", TARGETS[target])
    return attempt(built, seed, seconds, seeds(target, directory), directory / f"{target}.at")


def _libfuzzer(target: str, seconds: int, seed: int, directory: Path) -> int:
    built = program(SOURCE / f"{target}.c", TARGETS[target], "clang", "-fsanitize=fuzzer")
    corpus = directory / target
    seeds(target, corpus)
    words = [f"-max_total_time={seconds}", f"-seed={seed}", "-timeout=5", "-print_final_stats=1", "-max_len=300000"]
    return subprocess.call([str(built), *words, f"-artifact_prefix={directory}/", str(corpus)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--target", choices=sorted(TARGETS))
    parser.add_argument("--libfuzzer", type=Path)
    arguments = parser.parse_args()
    status = 0
    for target in [arguments.target] if arguments.target else sorted(TARGETS):
        if arguments.libfuzzer:
            status |= _libfuzzer(target, arguments.seconds, arguments.seed, arguments.libfuzzer)
            continue
        tally = search(target, arguments.seed, arguments.seconds, BUILD / "fuzz" / "modules")
        print(f"seed {arguments.seed}: {target}: {tally.inputs} inputs, longest {tally.longest} us")
        print("".join(f"{fault}\n" for fault in tally.faults), end="")
        status |= bool(tally.faults)
    return status


if __name__ == "__main__":
    sys.exit(main())
