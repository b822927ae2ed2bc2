# SPDX-License-Identifier: GPL-2.0-or-later
"""Which test runs when: the one place that says so.

Each tier contains the one before it. smoke: before every commit; fast: before every push; full: `./bootstrap check` and CI;
long: now and then, by hand. docs/testing.md has the commands and what each tier takes.
"""

from fnmatch import fnmatchcase
from typing import List, Tuple

TIERS = ("smoke", "fast", "full", "long")

# (tier, pattern of the node id below tests/). The first pattern that matches decides; what none matches is in full.
RULES: List[Tuple[str, str]] = [
    # By hand, or at night.
    ("long", "*at_length*"),
    ("long", "reporter/test_large.py*"),
    ("long", "reporter/test_formats.py::test_go_tool_pprof_opens_it*"),
    ("long", "tool/test_threads.py::test_threads_beyond_the_first_ten_thousand_*"),
    ("long", "web/test_large_page.py*"),
    ("long", "board/test_packages_on_board.py*"),
    ("long", "packaging/test_other_valgrinds.py*[[]3.16]"),
    ("long", "packaging/test_other_valgrinds.py*[[]3.24]"),
    # Too slow for those who wait.
    ("full", "reporter/test_other_pythons.py*"),
    # A minute's worth of the core: bytes, stacks, owners, the report.
    ("smoke", "reporter/test_ledger.py*"),
    ("smoke", "reporter/test_text.py*"),
    ("smoke", "test_lint.py*[[]clang_format]"),
    ("smoke", "test_lint.py*[[]words]"),
    ("smoke", "tool/test_heap_peak.py*"),
    ("smoke", "tool/test_cuda_each.py*"),
    ("smoke", "tool/test_owners.py*"),
    # What a push waits for.
    ("fast", "lint/*"),
    ("fast", "faults/*"),
    ("fast", "reporter/*"),
    ("fast", "test_harness.py*"),
    ("fast", "test_lint.py*"),
    ("fast", "web/unit/*"),
]


def tier_of(node_id: str) -> str:
    """`node_id` as pytest prints it, from the root of the checkout: tests/tool/test_blocks.py::test_a_block[1]."""
    below = node_id[len("tests/") :] if node_id.startswith("tests/") else node_id
    for tier, pattern in RULES:
        if fnmatchcase(below, pattern):
            return tier
    return "full"


def markers_of(node_id: str) -> Tuple[str, ...]:
    """The tiers in which a test runs: its own and all that contain it."""
    return TIERS[TIERS.index(tier_of(node_id)) :]
