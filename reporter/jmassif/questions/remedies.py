# SPDX-License-Identifier: GPL-2.0-or-later
"""What would have helped an allocation that failed, by the numbers."""

import re
from typing import List, Optional

from jmassif.model.profile import Profile
from jmassif.questions.facts import fact
from jmassif.questions.segments import Layout, Segment
from jmassif.questions.situation import MIB, Situation
from jmassif.questions.verdict import (
    CACHE_BOUND,
    FRAGMENTATION,
    FULL,
    LIMIT,
    OTHERS,
    REFUSED,
    TOO_LARGE,
    UNKNOWN,
    outside,
)
from jmassif.units import size

# PyTorch's expandable segments are made of pages of this size, for blocks that are not small.
_EXPANDABLE_PAGE = 20 * MIB
# What max_split_size_mb may usefully be; PyTorch refuses less than 20.
_SPLITS = [n * MIB for n in (20, 32, 64, 128, 256, 512, 1024)]


def is_pytorch(profile: Profile) -> bool:
    return "pytorch" in profile.manifest or any("libc10_cuda" in loaded.path for loaded in profile.objects)


def at_least(version: str, *least: int) -> bool:
    """Whether a version is known to be that or a later one."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[: len(least)]]
    return len(numbers) == len(least) and numbers >= list(least)


def _allocator_config(profile: Profile) -> str:
    return profile.manifest.get("env.PYTORCH_CUDA_ALLOC_CONF", "")


def can_expand_segments(profile: Profile) -> bool:
    """Whether PyTorch's expandable segments were off, in a release that may have them."""
    version = profile.manifest.get("pytorch", "")
    is_on = "expandable_segments:True" in _allocator_config(profile)
    return not is_on and (not version or at_least(version, 2, 1))


def whole_pages(layout: Layout) -> int:
    """Bytes of the holes that could be unmapped, were the segments made of pages."""
    found = 0
    for segment in layout.reserving:
        for part in segment.parts:
            if not part.account:
                begin = -(-part.offset // _EXPANDABLE_PAGE)
                found += max(0, (part.offset + part.bytes) // _EXPANDABLE_PAGE - begin) * _EXPANDABLE_PAGE
    return found


def _split_that_helps(layout: Layout, needed: int) -> Optional[int]:
    """The least max_split_size that would have left `needed` bytes in segments of which nothing is used.

    No block up to that size would have been put into a segment beyond it.
    """
    for split in _SPLITS:

        def is_kept_clean(segment: Segment, split: int = split) -> bool:
            used = [part.bytes for part in segment.parts if part.account]
            return not used or (segment.bytes > split and max(used) <= split)

        # The blocks would have been elsewhere, and taken their place there.
        gain = sum(segment.free for segment in layout.reserving if is_kept_clean(segment))
        if gain >= needed:
            return split
    return None


def _framework_helps(profile: Profile, s: Situation, layout: Layout, verdict: str, outcome: str) -> List[str]:
    helps: List[str] = []
    if s.asked is None or s.free is None:
        return helps
    version = profile.manifest.get("pytorch", "")
    needed = s.asked - s.gathered - s.free
    if verdict == FRAGMENTATION:
        pages = whole_pages(layout)
        if can_expand_segments(profile) and pages >= needed:
            since = "" if version else " (PyTorch 2.1 and later, where the driver has virtual memory management)"
            helps.append(
                f"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True{since}: {size(pages)} of the holes are whole pages, which"
                " it could have given back."
            )
        split = _split_that_helps(layout, needed) if "max_split_size_mb" not in _allocator_config(profile) else None
        if split:
            helps.append(
                f"PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:{split // MIB}: blocks up to that size would not have been put"
                " into the large segments that they keep from being given back."
            )
    if verdict == CACHE_BOUND and outcome != "retried" and s.returnable:
        helps.append(f"torch.cuda.empty_cache() before: it gives {size(s.returnable)} back.")
    return helps


def lazy_loading_is_off(profile: Profile) -> bool:
    mode = profile.manifest.get("env.CUDA_MODULE_LOADING", "").upper()
    cuda = fact(profile, "cuda")
    is_default = at_least(cuda, 12, 2)
    return at_least(cuda, 11, 7) and (mode == "EAGER" or (not mode and not is_default))


def helps_for(
    profile: Profile, incident_account: int, s: Situation, layout: Layout, verdict: str, outcome: str
) -> List[str]:
    if outcome == "retried":
        return []
    helps: List[str] = []
    needed = None if s.asked is None or s.free is None else max(0, s.asked - s.gathered - s.free)
    if is_pytorch(profile):
        helps += _framework_helps(profile, s, layout, verdict, outcome)
    if needed is None or verdict in (REFUSED, TOO_LARGE, LIMIT, UNKNOWN):
        return helps
    if verdict == CACHE_BOUND and s.pool_unused >= needed:
        helps.append(f"cudaMemPoolTrimTo, or a lower release threshold: pools hold {size(s.pool_unused)} for nothing.")
    workspace = s.by_owner.get("workspace", 0)
    if needed and workspace >= needed:
        helps.append(
            f"a smaller workspace: workspaces hold {size(workspace)} (CUBLAS_WORKSPACE_CONFIG; torch.backends.cudnn.benchmark)."
        )
    elif profile.accounts[incident_account].owner == "workspace":
        helps.append("a smaller workspace: it was one that was asked for (CUBLAS_WORKSPACE_CONFIG).")
    module = s.by_owner.get("module", 0)
    if needed and module >= needed and lazy_loading_is_off(profile):
        helps.append(f"CUDA_MODULE_LOADING=LAZY: the code of kernels holds {size(module)}, and most is seldom used.")
    missing = s.missing or 0
    if verdict in (OTHERS, FULL) and missing and s.others is not None and s.others >= missing:
        helps.append(
            f"less besides this program: {outside(profile, s)} holds {size(s.others)}, and {size(missing)} was missing."
        )
    return helps
