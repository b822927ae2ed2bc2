# SPDX-License-Identifier: GPL-2.0-or-later
"""What of a library only the recorder reads, its unwind table, is not in memory for it: the kernel tells the program so."""

from pathlib import Path
from typing import List

from tests.harness import ROOT, allocated_by_function, check_run, compile_c, record
from tests.tool.programs import library, linked_to

KIB = 1024
N_FUNCTIONS = 1000
ENTRY_BYTES = 4 * KIB

# Each has some kilobytes in the table, of instructions that do nothing.
FUNCTIONS = "#include <stdlib.h>\nvoid *volatile kept;\n" + "".join(
    f'void calls_{i}(void) {{ __asm__(".rept {ENTRY_BYTES // 4}\\n.cfi_escape 0,0,0,0\\n.endr");'
    f" kept = malloc({i + 1}); }}\n"
    for i in range(N_FUNCTIONS)
)

# Prints what the kernel has in memory of the library, in KiB. With "change" it first changes one of the instructions,
# to one that remembers what nobody asks for, and ends with status 1 if that was lost.
MAIN = r"""
#define _GNU_SOURCE
#include <jmassif.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
DECLARATIONS
static void (*const functions[])(void) = {FUNCTIONS};
static unsigned char *table, *changed;
static int find_table(struct dl_phdr_info *object, size_t bytes, void *name)
{
    for (int i = 0; strstr(object->dlpi_name, name) && i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
            table = (unsigned char *)object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
    return 0;
}
static void change(void)
{
    static const unsigned char nothing[64];
    unsigned char *at = table + (1 << 20);
    while (memcmp(at, nothing, sizeof nothing))
        at++;
    changed = at + 32;
    char *page = (char *)((size_t)at & -4096L);
    mprotect(page, 8192, PROT_READ | PROT_WRITE);
    *changed = 0x0a;
    mprotect(page, 8192, PROT_READ);
}
int main(int argc, char **argv)
{
    char line[4096];
    int is_librarys = 0;
    long kib, sum = 0;
    dl_iterate_phdr(find_table, argv[1]);
    if (!table)
        return 2;
    if (argc > 3)
        change();
    for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++)
        functions[i]();
    JMASSIF_MARK("a snapshot is taken, as one reading may map two megabytes (since Linux 6.18)");
    FILE *smaps = fopen("/proc/self/smaps", "r");
    while (fgets(line, sizeof line, smaps)) {
        if (strchr(line, '-') && strchr(line, '-') < strchr(line, ' '))
            is_librarys = strstr(line, argv[2]) != NULL;
        if (is_librarys && sscanf(line, "Rss: %ld kB", &kib) == 1)
            sum += kib;
    }
    printf("%ld\n", sum);
    return changed && *changed != 0x0a;
}
"""
NAMES = [f"calls_{i}" for i in range(N_FUNCTIONS)]
DECLARATIONS = "".join(f"void {name}(void);\n" for name in NAMES)


def command(*change: str) -> List[str]:
    tables = library(FUNCTIONS, "libtables.so.1", "-O1", "-fomit-frame-pointer")
    assert tables.stat().st_size > N_FUNCTIONS * ENTRY_BYTES
    source = MAIN.replace("DECLARATIONS", DECLARATIONS).replace("FUNCTIONS", ", ".join(NAMES))
    # The loader knows the library by the link, the kernel by its own name.
    includes = (f"-I{ROOT / 'jmassif'}", "-isystem/usr/include/valgrind")
    return [str(compile_c(source, "-O1", *includes, *linked_to(tables))), tables.name, str(tables.resolve()), *change]


def test_reading_an_unwind_table_leaves_hardly_more_of_it_in_memory_than_the_program_has() -> None:
    native = int(check_run(command()))
    done = record(command(), ["--pages=yes"])
    assert done.returncode == 0, done.stderr
    held = allocated_by_function(done.profile, Path("program"))
    assert [held[name] for name in NAMES] == [(i + 1, 1) for i in range(N_FUNCTIONS)]  # it was needed
    assert int(done.stdout) < native + N_FUNCTIONS * ENTRY_BYTES // KIB // 2


def test_what_the_program_has_changed_in_a_table_stays() -> None:
    check_run(command("change"))
    done = record(command("change"))
    assert done.returncode == 0, done.stderr
