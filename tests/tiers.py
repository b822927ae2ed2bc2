# SPDX-License-Identifier: GPL-2.0-or-later
"""Which test runs when: the one place that says so.

Each tier contains the one before it. smoke: before every commit; fast: before every push; full: `./bootstrap check` and CI;
long: now and then, by hand. docs/contributing.md has the commands.
"""

import os
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
    ("long", "packaging/test_other_valgrinds.py*"),  # the release's core is the newest of them
    # A cheaper test in full checks the same with another database, page, screen, machine or way.
    ("long", "fleet/test_document.py::test_on_postgresql*"),
    ("long", "fleet/test_load.py::test_so_does_one_into_postgresql_*"),
    *(
        ("long", f"tool/test_leaks.py::test_a_leak_is_named_with_its_slope[[]{leak}]")
        for leak in ("pool-none", "pool-region", "sawtooth-mark", "sawtooth-none", "trickle-mark", "trickle-region")
    ),
    *(
        ("long", f"tool/test_leaks.py::test_what_only_looks_like_a_leak_is_not_named[[]{leak}]")
        for leak in ("arena-none", "cache-mark", "once-none", "random-cache-mark", "warm-up-mark")
    ),
    ("long", "sim/test_board.py::test_the_books_are_those_of_brute_force[[]*-[45]]"),
    ("long", "torch/test_leak.py*"),  # tool/test_leaks.py has lists that grow, below Valgrind too
    ("long", "tool/test_unwinding.py::test_frames_of_all_shapes_are_found_on_the_other_machine_too[[]machine[123]-*"),
    ("long", "web/test_interactions.py::test_a_frame_tells_its_figures_and_is_enlarged_by_a_click[[]pytorch]"),
    ("long", "web/test_interactions.py::test_a_print_has_the_first_screen_*[[]pytorch]"),
    ("full", "web/test_interactions.py::test_real_pages_fit_the_screen_*[[]1280-900-light-training]"),
    ("full", "web/test_interactions.py::test_real_pages_fit_the_screen_*[[]390-844-dark-pytorch]"),
    ("full", "web/test_interactions.py::test_real_pages_fit_the_screen_*[[]3840-2160-dark-forking]"),
    ("long", "web/test_interactions.py::test_real_pages_fit_the_screen_*"),
    ("long", "web/test_page.py::test_a_click_in_the_timeline_chooses_a_moment_*[[]pytorch]"),
    ("long", "web/test_page.py::test_a_drag_zooms_in_and_a_double_click_out[[]pytorch]"),
    ("long", "web/test_page.py::test_the_call_tree_compares_two_moments[[]pytorch]"),
    ("long", "web/test_page.py::test_the_timeline_is_used_with_the_keyboard[[]pytorch]"),
    ("long", "web/test_views.py::test_forgotten_*_would_be_counted"),
    # Below Valgrind PyTorch and Python on arm64 take minutes; natively the same tests are in full.
    ("long", "python/test_python_on_arm64.py*-valgrind]"),
    ("long", "torch/test_loading.py*[[]run-*-native]"),
    ("long", "torch/test_loading.py*-valgrind]"),
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

# Tests that record with either host: full runs them natively only; long runs them with Valgrind.
NATIVELY = [
    *(
        # test_both_hosts.py has that with Valgrind the ledger of these is the same to the byte.
        f"python/test_python_stacks.py::test_recorded_frames_are_those_that_the_interpreter_shows[[]{script}]"
        for script in "calls classes comprehensions executed generators lines modules recursion".split()
    ),
    # PyTorch, which torch/ records with Valgrind.
    "tool/test_fit.py::test_two_batches_on_the_cpu_predict_the_heap_of_a_third*",
    "tool/test_pages.py::test_a_dlopen_tells_what_its_libraries_made_resident*",
    "tool/test_pages.py::test_a_library_is_one_sum_of_file_and_heap*",
    "tool/test_pages.py::test_every_large_library_is_named_with_its_bytes*",
    "tool/test_pages.py::test_libraries_belong_to_the_owners_of_their_frames*",
    "tool/test_pages.py::test_pythons_arenas_are_pages_of_python*",
    "tool/test_pages.py::test_the_sum_is_what_an_independent_reader_finds[[]torch]",
    "tool/test_python_programs.py::test_training_a_network_goes_as_without_us*",
    "tool/test_reconciliation.py::test_of_a_training_hardly_anything_is_unaccounted*",
    # Owners are found by the same code; that of numpy's arrays, of a forked child and of -c is tested with both.
    "tool/test_whose.py::test_code_without_a_file_is_its_own[[][as]*",
    "tool/test_whose.py::test_what_an_i*",
    *(
        f"tool/test_whose.py::test_what_a_scripts_lines_make_is_its_own[[]{script}.py]"
        for script in "image integers modules parsed raw slots table tensors threads words".split()
    ),
]


def tier_of(node_id: str) -> str:
    """`node_id` as pytest prints it, from the root of the checkout: tests/tool/test_blocks.py::test_a_block[1]."""
    below = node_id[len("tests/") :] if node_id.startswith("tests/") else node_id
    if os.environ.get("JMASSIF_TEST_HOST") != "native" and any(fnmatchcase(below, pattern) for pattern in NATIVELY):
        return "long"
    for tier, pattern in RULES:
        if fnmatchcase(below, pattern):
            return tier
    return "full"


def markers_of(node_id: str) -> Tuple[str, ...]:
    """The tiers in which a test runs: its own and all that contain it."""
    return TIERS[TIERS.index(tier_of(node_id)) :]
