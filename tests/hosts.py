# SPDX-License-Identifier: GPL-2.0-or-later
"""Which tests run natively: with the preloaded recorder instead of Valgrind's, where JMASSIF_TEST_HOST=native says so.

    JMASSIF_TEST_HOST=native python3 -m pytest tests/tool tests/python

"make check" does so after the tests with Valgrind. A recording takes a twentieth of the time.
"""

from fnmatch import fnmatchcase
from typing import List, Tuple

# Below tests/: whose tests record. Others are not run natively.
DIRECTORIES = ("tool/", "python/")

# (reason, patterns of node ids below tests/): not run natively.
SKIPPED: List[Tuple[str, List[str]]] = [
    (
        "is about Valgrind: its core, its translation, its options",
        [
            "tool/test_scopes.py::test_a_loader_that_looks_who_calls_it_is_not_called_by_a_wrapper*",
            "python/test_python_on_arm64.py*",
            "tool/test_both_hosts.py*",
            "tool/test_call_stacks.py::test_a_library_that_comes_and_goes_is_kept_once*",
            "tool/test_call_stacks.py::test_inlined_calls_of_the_c_library_are_frames_if_asked_for*",
            "tool/test_code_cache.py*",
            "tool/test_core_unwinder.py*",
            "tool/test_cuda_wrappers.py::test_functions_of_other_libraries_with_these_names_are_left_alone*",
            "tool/test_driver_limit.py::test_where_the_limit_cannot_be_raised_the_mend_is_said*",
            "tool/test_fma.py*",
            "tool/test_heap_peak.py::test_an_allocator_of_ones_own_is_seen_by_its_synonym*",
            "tool/test_indirect.py*",
            "tool/test_manifest.py::test_the_versions*",
            "tool/test_options.py::test_a_bad_option_ends_the_run_before_it_begins*",
            "tool/test_options.py::test_options_that_massif_has_too_do_what_they_do_there*",
            "tool/test_reconciliation.py::test_valgrinds_part_is_what_lies_where_valgrind_puts_its_own*",
            "tool/test_stats.py*",
            "tool/test_translation.py*",
            "tool/test_tutorial.py*",
            "tool/test_unwinding.py::test_a_function_that_calls_none_is_found*",
            "tool/test_unwinding.py::test_frames_of_all_shapes_are_found_on_the_other_machine_too*",
            "tool/test_unwinding.py::test_stacks_are_those_that_the_core_finds*",
        ],
    ),
    (
        "the start-up of a run of milliseconds grows to its end, in both releases",
        ["tool/test_jetpacks.py::test_a_budget_notices_the_newer_release*"],
    ),
    (
        "counts instructions",
        [
            "tool/test_leaks.py*",
            "tool/test_time.py*",
        ],
    ),
    (
        "vgdb or a request of valgrind.h",
        [
            "tool/test_heap_misuse.py::*a_custom_block_that_is_announced_again_counts_once*",
            "tool/test_heap_misuse.py::*announcements_about_unknown_blocks_are_counted]",
            "tool/test_heap_misuse.py::*free_of_a_custom_block_is_counted]",
            "tool/test_heap_peak.py::*[[]custom_allocator.c]",
            "tool/test_pages.py::test_a_custom_allocators_blocks_are_taken_from_the_mapping_that_they_lie_in*",
            "tool/test_requests.py::test_commands_may_be_shortened_and_unknown_ones_are_refused*",
            "tool/test_requests.py::test_help_lists_the_commands*",
            "tool/test_requests.py::test_requests_with_wild_arguments_are_refused_and_counted*",
            "tool/test_requests.py::test_snapshot_brings_the_trace_up_to_date*",
        ],
    ),
    (
        "no static program, 32-bit program or C library of another kind",
        [
            "tool/test_end.py::test_a_32_bit_program_is_refused_in_a_line*",
            "tool/test_end.py::test_a_program_whose_heap_cannot_be_seen_is_told_so*",
            "tool/test_heap_misuse.py::test_a_program_of_musls_has_its_heap_in_the_ledger*",
        ],
    ),
    (
        "the C library's heap lies in the program's own mappings, and no reader of /proc can tell them apart",
        ["tool/test_pages.py::test_the_sum_is_what_an_independent_reader_finds*"],
    ),
    (
        "the C library's threads end where clone3 is refused with EPERM, as without a recorder",
        ["tool/test_old_kernels.py::test_a_newer_call_that_is_refused_is_not_missed[[]clone3-1]"],
    ),
    (
        "functions of CUDA's in the program itself, a runtime linked statically say, have no entry to replace",
        [
            "tool/test_cuda_failures.py::*_fail_as_they_do_without_us[[]static]",
            "tool/test_exhaustion.py::test_the_driver_is_not_asked_while_a_stream_is_captured*",
        ],
    ),
    (
        "overhead is what the C library's malloc rounds up, and when it gives memory back is its choice",
        [
            "tool/test_headlines.py::test_the_headline_of_a_program_in_c[[]small]",
            "tool/test_jetpacks.py::test_what_stands_around_the_blocks_follows_from_them*",
            "tool/test_heap_misuse.py::test_realloc_without_any_header*",
            "tool/test_heap_peak.py::test_memory_that_was_freed_goes_back_to_the_kernel*",
            "tool/test_heap_peak.py::test_realloc_in_all_ways*",
            "tool/test_heap_peak.py::test_the_peak_is_massifs[[]aligned.c]",
            "tool/test_heap_peak.py::test_the_peak_is_massifs[[]malloc_sizes.c]",
            "tool/test_heap_peak.py::test_the_peak_is_massifs[[]never_frees.c]",
            "tool/test_pages.py::test_massifs_figures_do_not_change[[]never_frees.c]",
            "tool/test_realloc.py::test_a_shrunk_block_gives_the_rest_back*",
        ],
    ),
    (
        "the C library's malloc ends a program that frees what is no block",
        [
            "tool/test_heap_misuse.py::*frees_of_what_was_never_allocated_are_counted]",
            "tool/test_heap_misuse.py::*reallocs_of_what_was_never_allocated_give_nothing]",
            "tool/test_heap_misuse.py::*what_is_written_beyond_a_small_block_breaks_nothing_of_the_recorders]",
            "tool/test_heap_misuse.py::test_a_weak_malloc_is_replaced_as_the_rest_is*",
            "tool/test_heap_misuse.py::test_the_first_wild_free_is_told*",
        ],
    ),
    (
        "a thread's vector of thread-local storage is larger, and like some more the C library keeps it to the end",
        [
            "tool/test_cuda_mixed.py::*however_the_program_ends[[]exit]",
            "tool/test_cuda_mixed.py::*however_the_program_ends[[]return]",
            "tool/test_fork_and_exec.py::test_threads_and_fork*",
            "tool/test_heap_peak.py::test_the_peak_is_massifs[[]threads.c]",
        ],
    ),
    (
        "Linux refuses an impossible mremap for another reason than Valgrind",
        ["tool/test_exhaustion.py::*cannot_be_had_is_told*"],
    ),
    (
        "source lines of native code are found when the trace is read",
        [
            "tool/test_call_stacks.py::test_frames_without_symbols_have_the_objects_name_and_a_stable_address*",
            "tool/test_manifest.py::test_anonymize_leaves_nobodys_name_in_the_trace*",
        ],
    ),
    (
        "nothing in the program sees SIGKILL",
        ["tool/test_machine.py::test_a_program_that_the_kernel_kills_leaves_what_it_held*"],
    ),
    (
        "the kernel calls it like the program in any case",
        ["tool/test_threads.py::test_a_hundred_named_threads_have_what_they_have_counted*"],
    ),
]


def _below(node_id: str) -> str:
    return node_id[len("tests/") :] if node_id.startswith("tests/") else node_id


def records(node_id: str) -> bool:
    """Whether the test may run natively at all."""
    return _below(node_id).startswith(DIRECTORIES)


def reason_to_skip(node_id: str) -> str:
    """Why a test does not run natively; "" if it does."""
    for reason, patterns in SKIPPED:
        if any(fnmatchcase(_below(node_id), pattern) for pattern in patterns):
            return reason
    return ""
