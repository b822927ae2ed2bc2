# SPDX-License-Identifier: GPL-2.0-or-later
"""Some programs that read flags set several blocks before, always the same ones, and patterns written by hand.

`python3 -m tests.fuzz.flags` makes a hundred others.
"""

import os
import shutil
from pathlib import Path
from typing import Dict, List, Sequence

import pytest

from tests.fuzz import flags
from tests.fuzz.caches import cached
from tests.fuzz.searching import seed
from tests.harness import ARCH, Argument, Run, check_run, compile_c, run

pytestmark = pytest.mark.skipif(ARCH != "amd64", reason="the condition codes of x86-64")

N_PROGRAMS = 8
N_BLOCKS = 150


def test_flags_are_what_the_processor_makes_them() -> None:
    assert flags.search(seed(), N_PROGRAMS, N_BLOCKS) == []


def test_a_result_that_differs_is_seen(tmp_path: Path, monkeypatch: "pytest.MonkeyPatch") -> None:
    """What CPUID says under Valgrind is different, as a wrong flag would make the output different."""
    source = flags.program(1, 1, 5).replace("\nfinish:\n", "\nfinish:\n mov $0x80000002, %eax\n cpuid\n", 1)
    monkeypatch.setattr(flags, "valgrinds", lambda made: None)
    assert len(flags.faults_of(flags.assembled(source, tmp_path), tmp_path / "cache")) == 3


# ---- by hand ---------------------------------------------------------------------------------

# Each has results in rax, for rdi of 0 to 15 in turn. They may use rcx, rdx, rsi, r8 to r11.
PATTERNS: Dict[str, str] = {
    "read at a loop's head": """
    mov $6, %ecx
    xor %eax, %eax
    cmp $8, %rdi
1:  setb %dl
    movzbl %dl, %edx
    lea (%rdx,%rax,2), %rax
    lea 3(%rdi), %rdi
    cmp $12, %rdi
    lea -1(%rcx), %rcx
    jrcxz 2f
    jmp 1b
2:  ret""",
    "carry around a loop": """
    mov $6, %ecx
    lea numbers(%rip), %rsi
    xor %eax, %eax
    clc
1:  mov (%rsi), %rdx
    adc %rdi, %rdx
    lea 8(%rsi), %rsi
    lea (%rax,%rdx), %rax
    dec %ecx
    jnz 1b
    adc $0, %rax
    ret""",
    "three ways": """
    mov $1, %eax
    cmp $7, %rdi
    jl 1f
    jg 2f
    je 3f
    ud2
1:  mov $10, %eax
    jb 4f
    ret
2:  mov $20, %eax
    ja 4f
    ret
3:  mov $30, %eax
    je 4f
    ret
4:  lahf
    ret""",
    "carry across a jump": """
    xor %eax, %eax
    mov $-8, %rdx
    add %rdi, %rdx
    jmp 1f
    .skip 40, 0x39
1:  adc $0, %rax
    ret""",
    "carry across two jumps and what keeps it": """
    xor %eax, %eax
    mov $-8, %rdx
    add %rdi, %rdx
    jmp 1f
2:  mov %rdx, -8(%rsp)
    endbr64
    nopw 0x39393939(%rax,%rax,1)
    inc %rdx
    rcl $1, %rax
    ret
    .skip 40, 0x31
1:  movabs $0x3939393939393939, %rcx
    jmp 2b""",
    "read in what is called": """
    cmp $5, %rdi
    call 1f
    ret
1:  movabs $0x3939393939393900, %rax
    setz %al
    ret""",
    "set in what is called": """
    call 1f
    jc 2f
    lea 1(%rdi), %rax
    ret
2:  lea 1000(%rdi), %rax
    ret
1:  cmp $9, %rdi
    ret""",
    "set before a call that keeps them": """
    cmp $9, %rdi
    call 1f
    jle 2f
    lea 1(%rdi), %rax
    ret
2:  setz %al
    movzbl %al, %eax
    ret
1:  push %rdi
    mov $77, %edi
    pop %rdi
    ret""",
    "read where a return leads": """
    lea 1f(%rip), %rdx
    push %rdx
    cmp $3, %rdi
    ret
    ud2
1:  sbb %rax, %rax
    ret""",
    "through a table": """
    mov %rdi, %rcx
    and $3, %ecx
    lea table(%rip), %rdx
    movslq (%rdx,%rcx,4), %rcx
    lea (%rdx,%rcx), %rdx
    cmp $6, %rdi
    jmp *%rdx
case0:
    setb %al
    movzbl %al, %eax
    ret
case1:
    xor %eax, %eax
    ret
case2:
    mov $55, %eax
    jg case0
    ret
case3:
    mov $1, %eax
    sbb $100, %rax
    ret""",
    "only one way reads": """
    cmp $9, %rdi
    ja 1f
    xor %eax, %eax
    test %rdi, %rdi
    ret
1:  mov $5, %eax
    adc %rdi, %rax
    ret""",
    "only the other way reads": """
    cmp $9, %rdi
    ja 1f
    mov $5, %eax
    adc %rdi, %rax
    ret
1:  xor %eax, %eax
    test %rdi, %rdi
    ret""",
    "a branch that is never taken": """
    cmp $-1, %rdi
    je 1f
    add $2, %rdi
    lea (%rdi,%rdi,8), %rax
    ret
1:  sbb %rax, %rax
    ret""",
    "dec keeps the carry": """
    mov $2, %ecx
    cmp $4, %rdi
1:  dec %ecx
    jnz 1b
    sbb %rax, %rax
    ret""",
    "a shift by nothing": """
    mov $-1, %rax
    cmp $4, %rdi
    jmp 1f
1:  shl $0, %rax
    .byte 0x48, 0xc1, 0xe0, 0x40
    .byte 0xc1, 0xe2, 0x20
    jb 2f
    setz %al
2:  ret""",
    "a shift by as many as its register says": """
    mov %rdi, %rcx
    and $3, %ecx
    mov $-1, %rax
    cmp $4, %rdi
    jmp 1f
1:  shl %cl, %rax
    setb %al
    ret""",
    "more than twenty instructions": """
    mov $6, %rax
    cmp $8, %rdi
"""
    + "    lea 3(%rax,%rdi), %rax\n" * 40
    + """
    adc $0, %rax
    ret""",
    "writers at the end of twenty instructions": """
    mov $6, %rax
"""
    + "    lea 3(%rax,%rdi), %rax\n" * 17
    + """
    cmp $8, %rdi
    mov $0x85c08539, %ecx
    adc $0, %rax
    setbe %dl
    sbb %dl, %al
    ret""",
    "rep with none": """
    xor %ecx, %ecx
    lea numbers(%rip), %rsi
    cmp $8, %rdi
    mov %rdi, %rdx
    mov %rsi, %rdi
    repe cmpsb
    setb %al
    movzbl %al, %eax
    ret""",
    "half of them": """
    cmp $8, %rdi
    jmp 1f
1:  bt $0, %edi
    jz 2f
    sbb %rax, %rax
    ret
2:  mov $77, %eax
    ret""",
}

DRIVER = r"""
#include <stdio.h>
PROTOTYPES
static long (*const patterns[])(long) = { NAMES };
int main(void)
{
    for (unsigned p = 0; p < sizeof patterns / sizeof *patterns; p++) {
        printf("%u:", p);
        for (long n = 0; n < 16; n++)
            printf(" %lx", patterns[p](n));
        printf("\n");
    }
    return 3;
}
"""

TABLES = """
.section .rodata
numbers: .quad -1, 1, -9, 0x7fffffffffffffff, -3, 5
table: .long case0 - table, case1 - table, case2 - table, case3 - table
.section .note.GNU-stack,"",@progbits
"""


def differing(program: Sequence[Argument], cache: Path, modes: Sequence[Argument] = ()) -> List[str]:
    """What it says under the tool that is not what it says alone, with and without translations of before."""
    alone = run(program)
    assert alone.returncode >= 0, alone
    found = []
    for mode in modes or ("no", cache, cache):
        done = cached(program, mode)
        if done != Run(alone.returncode, alone.stdout, ""):
            found.append(f"{mode}: {done} instead of {alone}")
    return found


def built(directory: Path, code: str, assembler: str, *options: Argument) -> Path:
    (directory / "code.c").write_text(code)
    (directory / "more.s").write_text(assembler)
    made = directory / "made"
    check_run(["gcc", "-O1", "-o", made, directory / "code.c", directory / "more.s", *options])
    return made


def test_patterns(tmp_path: Path) -> None:
    names = [f"pattern{i}" for i in range(len(PATTERNS))]
    assembler = ".text\n" + "\n".join(
        f".globl {name}\n.p2align 6\n{name}: # {what}\n{code}" for name, (what, code) in zip(names, PATTERNS.items())
    )
    code = DRIVER.replace("PROTOTYPES", "".join(f"long {name}(long);\n" for name in names))
    program = built(tmp_path, code.replace("NAMES", ", ".join(names)), assembler + TABLES)
    assert differing([program], tmp_path / "cache") == []


# Flags that a handler must not spoil live all the time, and it sets all itself.
INTERRUPTED = r"""
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>
long counted(long n);
volatile sig_atomic_t n_handled;
static void handle(int number)
{
    (void)number;
    n_handled++;
    __asm__ volatile("xor %%eax, %%eax; cmp $1, %%eax; sahf" ::: "rax", "cc");
}
int main(void)
{
    struct itimerval often = { { 0, 2000 }, { 0, 2000 } };
    long sum = 0;
    signal(SIGALRM, handle);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 20 || n_handled < 20; i++) {
        long one = counted(20000);
        if (i == 0)
            sum = one;
        if (one != sum)
            printf("round %d: %lx instead of %lx\n", i, one, sum);
    }
    printf("%lx\n", sum);
    return 0;
}
"""

COUNTED = """
.globl counted
.text
counted:
    xor %eax, %eax
    mov %rdi, %rcx
    mov $0x9e3779b97f4a7c15, %rdx
    cmp %rdx, %rax
1:  rcl $1, %rax
    jmp 2f
2:  lea (%rax,%rdx), %rax
    jc 3f
    add %rdx, %rax
    jmp 4f
3:  sub %rdx, %rax
4:  mov %rax, %rsi
    jo 5f
    call 6f
5:  lea -1(%rcx), %rcx
    jrcxz 7f
    jmp 1b
6:  mov %rsi, -8(%rsp)
    ret
7:  setc %dl
    xor %dl, %al
    ret
.section .note.GNU-stack,"",@progbits
"""


def test_signals_between(tmp_path: Path) -> None:
    program = built(tmp_path, INTERRUPTED, COUNTED)
    assert differing([program], tmp_path / "cache") == []


# Code at the very end of what is mapped of a file: what would be read behind it is not there.
AT_THE_END = r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#define CODE(name) extern const char name[], name##_end[]
CODE(code0); CODE(code1); CODE(code2); CODE(code3); CODE(code4);
int main(int n, char **arguments)
{
    const struct { const char *begin, *end; } codes[] = {
        { code0, code0_end }, { code1, code1_end }, { code2, code2_end }, { code3, code3_end }, { code4, code4_end },
    };
    const long page = sysconf(_SC_PAGESIZE);
    for (unsigned i = 0; i < sizeof codes / sizeof *codes; i++) {
        const long size = codes[i].end - codes[i].begin;
        int file = open(arguments[n - 1], O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (ftruncate(file, page) || pwrite(file, codes[i].begin, (size_t)size, page - size) != size)
            return 1;
        char *at = mmap(NULL, 3 * (size_t)page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        munmap(at, 3 * (size_t)page);
        at = mmap(at, (size_t)page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0);
        if (at == MAP_FAILED)
            return 2;
        long (*function)(long) = (long (*)(long))(at + page - size);
        for (long k = 0; k < 10; k++)
            printf(" %lx", function(k));
        printf("\n");
        munmap(at, (size_t)page);
        close(file);
        unlink(arguments[n - 1]);
    }
    return 0;
}
"""

# VEX itself looks at a few bytes behind some instructions, so a few nops follow.
ENDS = (
    "cmp $5, %rdi\n mov $0, %eax\n jmp 1f\n1: setb %al\n ret",
    "cmp $5, %rdi\n mov $1, %eax\n jb 1f\n2: sbb $3, %rax\n ret\n1: adc $9, %rax\n ret",
    "cmp $5, %rdi\n jmp 1f\n 2: sbb %rax, %rax\n ret\n1: mov $3, %eax\n jmp 2b",
    "jmp 1f\n2: pop %rax\n sbb %rax, %rax\n ret\n1: cmp $5, %rdi\n call 2b",
    "jmp 1f\n2: sbb %rax, %rax\n ret\n1: cmp $50, %rdi\n jb 2b",
)


def test_code_at_the_end_of_a_mapping(tmp_path: Path) -> None:
    codes = "\n".join(
        f".globl code{i}, code{i}_end\ncode{i}: {code}\n .skip 8, 0x90\ncode{i}_end:" for i, code in enumerate(ENDS)
    )
    program = built(tmp_path, AT_THE_END, f'.section .rodata\n{codes}\n.section .note.GNU-stack,"",@progbits\n')
    assert differing([program, tmp_path / "code"], tmp_path / "cache") == []


# The carry is set in one page; what the next one does with it changes.
SET = """
.globl uses
.type uses, @function
.text
.p2align 12
uses:
    mov $-5, %rax
    add %rdi, %rax
    jmp following
    .p2align 12, 0x90
following:
    mov $7, %eax
    {successor}
    ret
    .p2align 12, 0x90
.section .note.GNU-stack,"",@progbits
"""
OVERWRITES = "add $1, %rax"
READS = "adc $1, %rax"

USER = r"""
#include <stdio.h>
long uses(long n);
int main(void)
{
    for (long n = 0; n < 12; n++)
        printf(" %ld", uses(n));
    printf("\n");
    return 0;
}
"""


def shared(directory: Path, name: str, successor: str) -> Path:
    code, made = directory / f"{name}.s", directory / f"{name}.so"
    code.write_text(SET.format(successor=successor))
    check_run(["gcc", "-shared", "-Wl,--build-id=none", "-o", made, code])
    return made


@pytest.mark.parametrize("first", [OVERWRITES, READS])
def test_libraries_that_differ_in_what_follows_only(first: str, tmp_path: Path) -> None:
    """At the same path, of the same size and time, with the translations of the other kept."""
    second = READS if first == OVERWRITES else OVERWRITES
    library = tmp_path / "libuses.so"
    builds = [shared(tmp_path, f"build{i}", successor) for i, successor in enumerate((first, second))]
    (tmp_path / "user.c").write_text(USER)
    program = tmp_path / "user"
    said = []
    for build in (*builds, builds[0]):
        shutil.copyfile(str(build), str(tmp_path / "next"))
        os.utime(str(tmp_path / "next"), (1700000000, 1700000000))
        (tmp_path / "next").rename(library)
        if not program.exists():
            check_run(["gcc", "-O1", "-o", program, tmp_path / "user.c", library, f"-Wl,-rpath,{tmp_path}"])
        assert differing([program], tmp_path / "cache", modes=(tmp_path / "cache",) * 2) == []
        said.append(check_run([program]))
    assert said[0] == said[2] != said[1]
    assert len({os.stat(str(build)).st_size for build in builds}) == 1


def test_programs_that_differ_in_what_follows_only(tmp_path: Path) -> None:
    """At the same addresses, so that what is kept of one is looked at for the other."""
    builds = []
    for name, successor in (("overwrites", OVERWRITES), ("reads", READS)):
        (tmp_path / name).mkdir()
        builds.append(built(tmp_path / name, USER, SET.format(successor=successor), "-no-pie"))
    assert check_run([builds[0]]) != check_run([builds[1]])
    for build in (*builds, *builds):
        assert differing([build], tmp_path / "cache", modes=(tmp_path / "cache",)) == []


# The program changes what follows while it runs, and makes it executable again.
PATCHES = r"""
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
long uses(long n);
static void say(void)
{
    for (long n = 0; n < 12; n++)
        printf(" %ld", uses(n));
    printf("\n");
}
int main(void)
{
    const long page = sysconf(_SC_PAGESIZE);
    unsigned char *following = (unsigned char *)uses + page;
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < 3; j++)
            say();
        if (mprotect(following, (size_t)page, PROT_READ | PROT_WRITE))
            return 1;
        following[7] ^= 0x10; /* add is 48 83 c0, adc 48 83 d0 */
        if (mprotect(following, (size_t)page, PROT_READ | PROT_EXEC))
            return 2;
    }
    return 0;
}
"""


def test_code_that_is_changed_while_it_runs(tmp_path: Path) -> None:
    """What follows, in a page of its own, so what sets the flags is left as it is."""
    program = built(tmp_path, PATCHES, SET.format(successor=OVERWRITES))
    assert len(set(check_run([program]).splitlines())) == 2
    assert differing([program], tmp_path / "cache") == []


# Another library in the place of the one that was closed.
REOPENS = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int n, char **names)
{
    for (int i = 0; i < 6; i++) {
        void *library = dlopen(names[1 + i % (n - 1)], RTLD_NOW);
        long (*uses)(long) = library ? (long (*)(long))dlsym(library, "uses") : NULL;
        if (!uses)
            return 1;
        for (long k = 0; k < 12; k++)
            printf(" %ld", uses(k));
        printf("\n");
        dlclose(library);
    }
    return 0;
}
"""


def test_libraries_in_the_same_place_one_after_the_other(tmp_path: Path) -> None:
    program = compile_c(REOPENS, "-O1", "-ldl")
    libraries = [shared(tmp_path, f"build{i}", successor) for i, successor in enumerate((OVERWRITES, READS))]
    assert differing([program, *libraries], tmp_path / "cache") == []
