# SPDX-License-Identifier: GPL-2.0-or-later
"""tests/lint/arrows.py is quiet about a tree that keeps to its floors, and names each fault that is planted in it."""

from pathlib import Path

import pytest

from tests.lint import arrows

TREE = {
    "docs/architecture.md": """\n## The floors\n
### C, `jmassif/`\n\n    base/   tables\n    heap/ | cuda/\n    host/valgrind/\n
### Python, `reporter/jmassif/`\n\n    model/\n    analysis/\n        *\n        job/\n    render/\n
### JavaScript, `reporter/web/src/`\n\n    dom.js\n    views.js\n""",
    "jmassif/base/compat.h": "",
    "jmassif/host/valgrind/host.c": "VG_(free)(p);\n",
    "jmassif/heap/heap.h": "extern int jm_heap;\n",
    "jmassif/heap/heap.c": '#include "heap/heap.h"\n#include "base/compat.h"\n',
    "jmassif/cuda/cuda.h": "",
    "reporter/jmassif/model/run.py": "",
    "reporter/jmassif/analysis/aggregate.py": "from jmassif.model import (\n    run,\n)\n",
    "reporter/jmassif/analysis/job/sum.py": "import jmassif.analysis.aggregate\n",
    "reporter/jmassif/render/words.py": "",
    "reporter/web/src/dom.js": "",
    "reporter/web/src/views.js": "import {\n    h,\n} from './dom.js';\n",
}


@pytest.mark.parametrize(
    "file, text, fault",
    [
        ("jmassif/base/compat.h", '#include "heap/heap.h"', "1: base/ uses heap/heap.h, which does not stand above it"),
        ("jmassif/heap/heap.c", '\n#include "cuda/cuda.h"', "2: heap/ uses cuda/cuda.h, which does not stand above it"),
        ("jmassif/heap/heap.c", '#include "heap.h"', "1: heap.h is not in jmassif/"),
        ("jmassif/heap/heap.c", "extern int jm_cuda;", "1: not allowed here: extern int jm_cuda"),
        ("jmassif/heap/heap.c", "#include <pub_tool_vki.h>", "1: not allowed here: pub_tool_"),
        ("jmassif/pages/pages.c", "", "1: is not in the list of docs/architecture.md"),
        (
            "reporter/jmassif/model/run.py",
            "A = 'jmassif.analysis.aggregate'",
            "1: model/ uses analysis/aggregate.py, which",
        ),
        (
            "reporter/jmassif/analysis/aggregate.py",
            "from jmassif.analysis.job import sum",
            "1: analysis/ uses analysis/job",
        ),
        (
            "reporter/jmassif/analysis/aggregate.py",
            "import jmassif.analysis.job.sum",
            "1: is in a circle of files that use",
        ),
        ("reporter/jmassif/render/words.py", "import jmassif.analysis.leaks", "1: calls analysis.leaks, not through"),
        (
            "reporter/jmassif/render/words.py",
            "from jmassif.analysis.leaks import (\n    Leak,\n    find,\n)",
            "1: calls leaks.find, not through",
        ),
        ("reporter/jmassif/model/run.py", "from . import replay", "1: not allowed here: from ."),
        ("reporter/web/src/dom.js", "import('./views.js');", "1: dom.js uses views.js, which does not stand above it"),
    ],
)
def test_a_fault_is_named(
    tmp_path: Path, capsys: "pytest.CaptureFixture[str]", file: str, text: str, fault: str
) -> None:
    for content in (TREE, {file: text}):
        for name in content:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content[name])
        status, printed = arrows.main(tmp_path), capsys.readouterr().out
        assert (status, printed) == (0, "") if content is TREE else status == 1 and f"{file}:{fault}" in printed
