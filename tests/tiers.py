# SPDX-License-Identifier: GPL-2.0-or-later
"""Which test runs when: the one place that says so.

Each tier contains the one before it. smoke: before every commit; fast: before every push; full: `./bootstrap check` and CI;
long: now and then, by hand. docs/contributing.md has the commands.
"""

from fnmatch import fnmatchcase
from typing import List, Tuple

TIERS = ("smoke", "fast", "full", "long")

# (tier, pattern of the node id below tests/). The first pattern that matches decides; what none matches is in full.
RULES: List[Tuple[str, str]] = [
    # Run by hand, or at night.
    ("long", "*at_length*"),
    ("long", "field/*"),
    ("long", "torch-cuda/*"),
    ("long", "reporter/test_large.py*"),
    ("long", "reporter/test_formats.py::test_go_tool_pprof_opens_it*"),
    ("long", "tool/test_threads.py::test_threads_beyond_the_first_ten_thousand_*"),
    ("long", "web/test_large_page.py*"),
    ("long", "board/test_packages_on_board.py*"),
    ("long", "packaging/test_core_patches.py::test_code_that_is_called_in_many_places_*"),
    ("long", "packaging/test_other_valgrinds.py*[[]3.16]"),
    ("long", "packaging/test_other_valgrinds.py*[[]3.24]"),
    # Below Valgrind PyTorch takes minutes; natively the same tests are in full.
    ("long", "torch/test_loading.py*[[]train-*-valgrind]"),
    ("long", "torch/test_ranks.py*[[]valgrind]"),
    # Too slow to wait for: seconds a test, or PyTorch.
    ("full", "reporter/test_other_pythons.py*"),
    ("full", "live/test_cost.py*"),
    ("full", "tool/test_code_cache.py*"),
    ("full", "tool/test_core_unwinder.py*"),
    ("full", "tool/test_fma.py*"),
    ("full", "tool/test_heap_peak.py::test_blocks_of_all_sizes_keep_to_themselves*"),
    ("fast", "tool/test_job_memory.py*[[]cow]"),
    ("full", "tool/test_job_memory.py*"),
    ("full", "tool/test_killed.py*"),
    ("full", "tool/test_leaks.py*"),
    ("full", "tool/test_python_programs.py*"),
    ("full", "tool/test_translation.py*"),
    ("full", "tool/test_tutorial.py::test_the_commands_*"),
    ("full", "tool/test_unwinding*"),
    ("full", "tool/test_whose.py*"),
    ("fast", "tool/test_pages.py::test_of_a_mapping_that_the_kernel_has_in_parts_all_parts_count*"),
    ("full", "tool/test_pages.py*"),
    # Before every commit: bytes, stacks and owners of the heap and of CUDA, a fork, the report, the page's functions.
    ("smoke", "reporter/test_check.py*"),
    ("smoke", "reporter/test_diff.py*"),
    ("smoke", "reporter/test_ladder.py*"),
    ("smoke", "reporter/test_ledger.py*"),
    ("smoke", "reporter/test_massif.py*"),
    ("smoke", "reporter/test_text.py*"),
    ("smoke", "reporter/test_tree.py*"),
    ("smoke", "test_lint.py*[[]clang_format]"),
    ("smoke", "test_lint.py*[[]spdx]"),
    ("smoke", "test_lint.py*[[]words]"),
    ("smoke", "tool/test_blocks.py*"),
    ("smoke", "tool/test_cuda_each.py*"),
    ("smoke", "tool/test_cuda_lifetimes.py*"),
    ("smoke", "tool/test_fork_and_exec.py*"),
    ("smoke", "tool/test_heap_peak.py*"),
    ("smoke", "tool/test_owners.py*"),
    ("smoke", "web/unit/*"),
    # Before every push.
    ("fast", "faults/*"),
    ("fast", "fleet/test_diff.py*"),
    ("fast", "fleet/test_statistics.py*"),
    ("fast", "lint/*"),
    ("fast", "live/*"),
    ("fast", "serve/*"),
    ("fast", "packaging/test_bootstrap.py*"),
    ("fast", "packaging/test_bundle_build.py*"),
    ("fast", "packaging/test_core_build.py*"),
    ("fast", "packaging/test_installer.py*"),
    ("fast", "python/test_python_layout.py*"),
    ("fast", "reporter/*"),
    ("fast", "sim/test_sim.py*"),
    ("fast", "test_harness.py*"),
    ("fast", "test_lint.py*"),
    ("fast", "tool/*"),
    ("fast", "web/test_first_screen.py*"),
    ("fast", "web/test_page.py::test_a_line_that_leaks_is_named_with_its_slope*"),
    ("fast", "web/test_range_page.py*"),
    ("fast", "web/test_sift.py*"),
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
