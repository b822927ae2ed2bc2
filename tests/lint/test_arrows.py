# SPDX-License-Identifier: GPL-2.0-or-later
"""tests/lint/arrows.py is quiet about a tree that keeps to its floors, and names each fault that is planted in it."""

from pathlib import Path
from typing import Dict, List, Tuple

import pytest

from tests.harness import run
from tests.lint import arrows

ARCHITECTURE = """\
# Architecture

### Not a list, `jmassif/`

    elsewhere/   is told of here

## The floors

What this is.

### The recorder, `jmassif/`

    preload/            uses nothing
    base/               Valgrind's door
    heap/ | driver/     side by side
    main.c              wires them

### The reporter, `reporter/jmassif/`

    units.py            numbers in words
    model/
    questions/          asked of a model
        *
        job/            of many
    writers/
        text/
        *
    __init__.py

### The page, `reporter/web/src/`

    dom.js | units.js   of no view
    views/              a view each
    main.js

## The recorder

    heap/               told again, which is no list
"""

# A right tree.
TREE = {
    "docs/architecture.md": ARCHITECTURE,
    "jmassif/preload/protocol.h": '#include "preload/api.def"\n',
    "jmassif/preload/api.def": "ROW(malloc)\n" * 700,
    "jmassif/base/compat.h": '#include "pub_tool_basics.h"\n#include "libvex_guest_amd64.h"\n',
    "jmassif/base/options.h": '#include "base/compat.h"\nextern int jm_options;\nvoid jm_options_init(void);\n',
    "jmassif/base/options.c": '#include "base/options.h"\n\nint jm_options;\n\nvoid jm_options_init(void)\n{\n}\n',
    "jmassif/base/owners.rules": "libc.so*\n",
    "jmassif/base/owner.c": '#include "base/owners_rules.h"\n#include <elf.h>\n// #include "heap/heap.h"\n',
    "jmassif/heap/heap.h": '/*\n#include "driver/driver.h"\n*/\nvoid jm_heap_init(void);\n',
    "jmassif/heap/heap.c": """\
#include "heap/heap.h"
#include "base/options.h"

extern int VG_(safe_fd)(int fd);
int __real_vgPlain_match(void);

static int helper(void);

__attribute__((noinline)) void jm_heap_init(void)
{
    if (helper())
        return __real_vgPlain_match();
}

static int helper(void)
{
    return jm_options;
}
""",
    "jmassif/driver/driver.h": '#include "base/compat.h"\n',
    "jmassif/main.c": '#include "heap/heap.h"\n#include "driver/driver.h"\n#include "preload/protocol.h"\n',
    "reporter/jmassif/__init__.py": "_LAZY = {'Run': 'jmassif.model.run'}\n",
    "reporter/jmassif/units.py": "import json\n",
    "reporter/jmassif/model/__init__.py": "",
    "reporter/jmassif/model/run.py": "from jmassif import units\nfrom jmassif.model.kinds import KINDS\n",
    "reporter/jmassif/model/kinds.py": "KINDS = [\n" + "    1,\n" * 500 + "]\n",
    "reporter/jmassif/questions/__init__.py": "",
    "reporter/jmassif/questions/ledger.py": "import jmassif.model.run\n",
    "reporter/jmassif/questions/job/__init__.py": "",
    "reporter/jmassif/questions/job/sum.py": "from .. import ledger\nfrom ...model import run\n",
    "reporter/jmassif/writers/__init__.py": "",
    "reporter/jmassif/writers/view.py": "from jmassif.writers.text import table\n",
    "reporter/jmassif/writers/text/__init__.py": "",
    "reporter/jmassif/writers/text/table.py": "from ...questions.job import sum\n",
    "reporter/web/src/dom.js": "import uPlot from 'uplot';\n",
    "reporter/web/src/units.js": "export const one = 1;\n",
    "reporter/web/src/page.css": "",
    "reporter/web/src/views/owners.js": "import {\n    h,\n} from '../dom.js';\nimport '../page.css';\n",
    "reporter/web/src/main.js": "export { owners } from './views/owners.js';\nimport './units.js';\n",
}


def faults_of(tmp_path: Path, changes: Dict[str, str]) -> List[str]:
    """Of the right tree with some other files; "" takes a file away."""
    for name, text in {**TREE, **changes}.items():
        if text or name not in changes:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return [str(fault) for fault in arrows.check(tmp_path)]


def test_a_right_tree_has_no_faults(tmp_path: Path) -> None:
    assert faults_of(tmp_path, {}) == []


def added(name: str, text: str) -> Dict[str, str]:
    """The right tree's file with some lines more."""
    return {name: TREE.get(name, "") + text}


def long_function(n_lines: int) -> str:
    return "static void slow(int a,\n                 int b)\n{\n" + "    a++;\n" * (n_lines - 4) + "}\n"


Planted = Tuple[Dict[str, str], List[str]]  # changes to the right tree, and the faults

ARROWS: Dict[str, Planted] = {
    "c, against the order": (
        added("jmassif/base/owner.c", '#include "heap/heap.h"\n'),
        ["jmassif/base/owner.c:4: base/ uses heap/heap.h of heap/, which stands below it"],
    ),
    "c, by a header": (
        {"jmassif/base/clock.h": '#include "heap/heap.h"\n'},
        ["jmassif/base/clock.h:1: base/ uses heap/heap.h of heap/, which stands below it"],
    ),
    "c, side by side": (
        added("jmassif/heap/heap.c", '#include "driver/driver.h"\n'),
        ["jmassif/heap/heap.c:19: heap/ uses driver/driver.h of driver/, which stands beside it"],
    ),
    "c, to the main file": (
        {"jmassif/heap/blocks.h": '#include "main.h"\n', "jmassif/main.h": "\n"},
        ["jmassif/heap/blocks.h:1: heap/ uses main.c, which stands below it"],
    ),
    "python, against the order": (
        added("reporter/jmassif/units.py", "import jmassif.model.run\n"),
        [
            # Also a circle, as model/run.py uses units.py.
            "reporter/jmassif/units.py:2: units.py uses model/run.py of model/, which stands below it",
            "reporter/jmassif/model/run.py:1: goes round in a circle: model/run.py → units.py → model/run.py (by units.py:2)",
        ],
    ),
    "python, inside of a function": (
        {"reporter/jmassif/model/job.py": "def f():\n    from jmassif.questions import ledger\n"},
        ["reporter/jmassif/model/job.py:2: model/ uses questions/ledger.py of questions/, which stands below it"],
    ),
    "python, relative": (
        {"reporter/jmassif/model/job.py": "from ..questions.ledger import rows\n"},
        ["reporter/jmassif/model/job.py:1: model/ uses questions/ledger.py of questions/, which stands below it"],
    ),
    "python, by name": (
        {"reporter/jmassif/model/job.py": "importlib.import_module('jmassif.questions.ledger')\n"},
        ["reporter/jmassif/model/job.py:1: model/ uses questions/ledger.py of questions/, which stands below it"],
    ),
    "python, to a folder further in": (
        {"reporter/jmassif/questions/rows.py": "from jmassif.questions.job import sum\n"},
        [
            "reporter/jmassif/questions/rows.py:1: questions/rows.py uses questions/job/sum.py of questions/job/, which "
            "stands below it"
        ],
    ),
    "python, from a folder further in": (
        {
            "reporter/jmassif/writers/text/graph.py": "from jmassif.writers import view\n",
            "reporter/jmassif/writers/view.py": "\n",
        },
        ["reporter/jmassif/writers/text/graph.py:1: writers/text/ uses writers/view.py, which stands below it"],
    ),
    "javascript, against the order": (
        added("reporter/web/src/dom.js", "import { owners } from './views/owners.js';\n"),
        [
            "reporter/web/src/dom.js:2: dom.js uses views/owners.js of views/, which stands below it",
            "reporter/web/src/dom.js:2: goes round in a circle: dom.js → views/owners.js → dom.js (by views/owners.js:1)",
        ],
    ),
    "javascript, exported from": (
        added("reporter/web/src/units.js", "export * from './views/owners.js';\n"),
        ["reporter/web/src/units.js:2: units.js uses views/owners.js of views/, which stands below it"],
    ),
    "javascript, later": (
        added("reporter/web/src/units.js", "const views = () => import('./views/owners.js');\n"),
        ["reporter/web/src/units.js:2: units.js uses views/owners.js of views/, which stands below it"],
    ),
    "javascript, a type": (
        added("reporter/web/src/units.js", "/** @typedef {import('./views/owners.js').Row} Row */\n"),
        ["reporter/web/src/units.js:2: units.js uses views/owners.js of views/, which stands below it"],
    ),
    "javascript, side by side": (
        added("reporter/web/src/units.js", "import './dom.js';\n"),
        ["reporter/web/src/units.js:2: units.js uses dom.js, which stands beside it"],
    ),
    "javascript, to nothing": (
        added("reporter/web/src/main.js", "import './gone.js';\n"),
        ["reporter/web/src/main.js:3: imports ./gone.js, which is not there"],
    ),
}

CIRCLES: Dict[str, Planted] = {
    "c, of a module's file and another's header": (
        {
            "jmassif/heap/blocks.h": "\n",
            "jmassif/heap/blocks.c": '#include "heap/slab.h"\n',
            "jmassif/heap/slab.h": "\n",
            "jmassif/heap/slab.c": '\n#include "heap/heap.h"\n',
            **added("jmassif/heap/heap.h", '#include "heap/blocks.h"\n'),
        },
        [
            "jmassif/heap/blocks.c:1: goes round in a circle: heap/blocks → heap/slab → heap/heap → heap/blocks "
            "(by heap/slab.c:2, heap/heap.h:5)"
        ],
    ),
    "python": (
        added("reporter/jmassif/model/kinds.py", "def f():\n    from . import run\n"),
        [
            "reporter/jmassif/model/kinds.py:504: goes round in a circle: model/kinds.py → model/run.py → model/kinds.py "
            "(by model/run.py:2)"
        ],
    ),
    "javascript": (
        {
            "reporter/web/src/views/a.js": "import { b } from './b.js';\n",
            "reporter/web/src/views/b.js": "\nimport { a } from './a.js';\n",
        },
        [
            "reporter/web/src/views/a.js:1: goes round in a circle: views/a.js → views/b.js → views/a.js (by views/b.js:2)",
        ],
    ),
}

LISTED: Dict[str, Planted] = {
    "c, a folder": (
        {"jmassif/cuda/cuda.h": "\n", "jmassif/cuda/cuda.c": "\n"},
        ["jmassif/cuda/cuda.c:1: cuda/ is not in the list of docs/architecture.md"],
    ),
    "c, a module": (
        {"jmassif/scope.h": "\n", "jmassif/scope.c": "\n"},
        ["jmassif/scope.c:1: scope.c is not in the list of docs/architecture.md"],
    ),
    "c, a folder in a folder": (
        {"jmassif/heap/slabs/slab.c": "\n"},
        ["jmassif/heap/slabs/slab.c:1: heap/slabs/ is not in the list of docs/architecture.md"],
    ),
    "python": (
        {"reporter/jmassif/output.py": "\n"},
        ["reporter/jmassif/output.py:1: output.py is not in the list of docs/architecture.md"],
    ),
    "javascript": (
        {"reporter/web/src/plot.js": "\n"},
        ["reporter/web/src/plot.js:1: plot.js is not in the list of docs/architecture.md"],
    ),
    "what is gone": (
        {
            "jmassif/main.c": "",
            "reporter/jmassif/questions/job/sum.py": "",
            "reporter/jmassif/writers/text/table.py": "\n",
            "reporter/web/src/views/owners.js": "",
            "reporter/web/src/main.js": "\n",
        },
        [
            "docs/architecture.md:16: lists jmassif/main.c, where nothing is",
            "docs/architecture.md:24: lists reporter/jmassif/questions/job/, where nothing is",
            "docs/architecture.md:33: lists reporter/web/src/views/, where nothing is",
        ],
    ),
}

IN_C: Dict[str, Planted] = {
    "no folder": (
        added("jmassif/heap/heap.c", '#include "options.h"\n'),
        ['jmassif/heap/heap.c:19: includes "options.h" without its folder: "base/options.h"'],
    ),
    "no folder, beside it": (
        {"jmassif/heap/blocks.c": '#include "heap.h"\n'},
        ['jmassif/heap/blocks.c:1: includes "heap.h" without its folder: "heap/heap.h"'],
    ),
    "the folder by a way around": (
        {"jmassif/heap/blocks.c": '#include "../base/options.h"\n'},
        ['jmassif/heap/blocks.c:1: includes "../base/options.h" without its folder: "base/options.h"'],
    ),
    "nothing": (
        {"jmassif/heap/blocks.c": '#include "heap/gone.h"\n'},
        ['jmassif/heap/blocks.c:1: includes "heap/gone.h", which is not in jmassif/'],
    ),
    "a macro": (
        {"jmassif/heap/blocks.c": "#include HEADER\n"},
        ["jmassif/heap/blocks.c:1: includes HEADER, which is no name of a file"],
    ),
    "valgrind's": (
        {"jmassif/heap/blocks.c": '#include "pub_tool_hashtable.h"\n#include <valgrind/libvex_ir.h>\n'},
        [
            "jmassif/heap/blocks.c:1: includes pub_tool_hashtable.h: only base/compat.h includes Valgrind's headers for tools",
            "jmassif/heap/blocks.c:2: includes valgrind/libvex_ir.h: only base/compat.h includes Valgrind's headers for tools",
        ],
    ),
    "extern function": (
        added("jmassif/base/owner.c", "extern void jm_heap_init(void);\n"),
        ["jmassif/base/owner.c:4: declares jm_heap_init: include the header of the module that it is of"],
    ),
    "extern variable": (
        added("jmassif/heap/heap.c", "extern int jm_options;\n"),
        ["jmassif/heap/heap.c:19: declares jm_options: include the header of the module that it is of"],
    ),
    "a function without extern": (
        added("jmassif/base/owner.c", "void *jm_heap_init(int a,\n                   int b);\n"),
        ["jmassif/base/owner.c:4: declares jm_heap_init: include the header of the module that it is of"],
    ),
    "inside of a function": (
        added(
            "jmassif/base/owner.c",
            "void f(void)\n{\n    extern int jm_x;\n    void jm_heap_init(void);\n    return jm_heap_init();\n}\n",
        ),
        [
            "jmassif/base/owner.c:6: declares jm_x: include the header of the module that it is of",
            "jmassif/base/owner.c:7: declares jm_heap_init: include the header of the module that it is of",
        ],
    ),
    "another's in a header": (
        added("jmassif/base/options.h", "void jm_heap_init(void);\n"),
        ["jmassif/base/options.h:4: declares jm_heap_init of heap/heap.c: that is for heap/heap.h"],
    ),
    "another's variable in a header": (
        added("jmassif/heap/heap.h", "extern int jm_options;\n"),
        ["jmassif/heap/heap.h:5: declares jm_options of base/options.c: that is for base/options.h"],
    ),
}

LENGTHS: Dict[str, Planted] = {
    "c, a file": (
        {"jmassif/heap/blocks.c": "int a;\n" * 601},
        ["jmassif/heap/blocks.c:1: 601 lines without tables, more than 600"],
    ),
    "c, a file that is long enough": ({"jmassif/heap/blocks.c": "int a;\n" * 600}, []),
    "c, a table": (
        {"jmassif/heap/blocks.c": "int a;\n" * 590 + "static const int b[] = {\n" + "    1,\n" * 99 + "};\n"},
        [],
    ),
    "c, a function": (
        {"jmassif/heap/blocks.c": "int a;\n\n// Of two lines.\n" + long_function(61)},
        ["jmassif/heap/blocks.c:4: slow() has 61 lines, more than 60"],
    ),
    "c, a function that is long enough": ({"jmassif/heap/blocks.c": long_function(60)}, []),
    "c, a function with a table": (
        {"jmassif/heap/blocks.c": long_function(50)[:-2] + "    int b[] = {\n" + "        1,\n" * 50 + "    };\n}\n"},
        [],
    ),
    "python, a file": (
        {"reporter/jmassif/model/kinds.py": "a = 1\n" * 401},
        ["reporter/jmassif/model/kinds.py:1: 401 lines without tables, more than 400"],
    ),
    "python, a function": (
        added("reporter/jmassif/model/kinds.py", "class C:\n    def f(self):\n" + "        a = 1\n" * 60),
        ["reporter/jmassif/model/kinds.py:504: f() has 61 lines, more than 60"],
    ),
    "python, a function that is long enough": (
        added(
            "reporter/jmassif/model/kinds.py",
            "async def f(self):\n" + "    a = 1\n" * 58 + "    b = (\n    )\n"[:0] + "    b = 1\n",
        ),
        [],
    ),
}

ALL = {
    "arrow": ARROWS,
    "circle": CIRCLES,
    "list": LISTED,
    "c": IN_C,
    "length": LENGTHS,
}
PLANTED = {f"{what}: {case}": planted for what, cases in ALL.items() for case, planted in cases.items()}


@pytest.mark.parametrize("case", sorted(PLANTED))
def test_a_planted_fault_is_named(tmp_path: Path, case: str) -> None:
    changes, expected = PLANTED[case]
    assert faults_of(tmp_path, changes) == sorted(expected)


@pytest.mark.parametrize(
    "text, message",
    [
        ("# Nothing\n", "docs/architecture.md: no list of folders below the heading '## The floors'"),
        (
            "## The floors\n\n### The page, `web/`\n\n    a.js\n",
            "docs/architecture.md: web/ is none of jmassif/, reporter/jmassif/, reporter/web/src/",
        ),
        (
            "## The floors\n\n### C, `jmassif/`\n\n    a/\n    a/\n",
            "docs/architecture.md:6: 'a/' is listed twice, or is no name",
        ),
        (
            "## The floors\n\n### C, `jmassif/`\n\n    a.c\n        b/\n",
            "docs/architecture.md:6: what is further in belongs to one folder, in the line above",
        ),
    ],
)
def test_a_list_that_cannot_be_read_is_no_list(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(arrows.ListError) as error:
        faults_of(tmp_path, {"docs/architecture.md": text})
    assert str(error.value) == message


def test_each_half_has_a_list(tmp_path: Path) -> None:
    text = ARCHITECTURE.replace("### The page, `reporter/web/src/`", "### The page")
    assert faults_of(tmp_path, {"docs/architecture.md": text}) == [
        "docs/architecture.md:1: reporter/web/src/ has no list"
    ]


def test_the_exit_status_tells(tmp_path: Path) -> None:
    script = str(Path(arrows.__file__))
    assert faults_of(tmp_path, {}) == []
    right = run([script, str(tmp_path)])
    (tmp_path / "jmassif" / "base" / "owner.c").write_text('#include "heap/heap.h"\n')
    wrong = run([script, str(tmp_path)])
    (tmp_path / "docs" / "architecture.md").unlink()
    without = run([script, str(tmp_path)])
    assert (right.returncode, right.stdout) == (0, "")
    assert (wrong.returncode, wrong.stdout) == (
        1,
        "jmassif/base/owner.c:1: base/ uses heap/heap.h of heap/, which stands below it\n",
    )
    assert (without.returncode, without.stderr) == (2, "docs/architecture.md is not there\n")
