# SPDX-License-Identifier: GPL-2.0-or-later
"""What happens on the simulated board, told from inside: each function runs in a process of its own there.

python3 -m tests.sim.board_cases NAME
"""

import ctypes
import errno
import os
import resource
import struct
import sys
from typing import Callable, Dict, Iterable, Tuple

from tests.sim.board_client import (
    ALLOC,
    ALLOC_LAYOUT,
    FIRST_ID,
    GPU_HEAP,
    IOVMM,
    PAGE,
    RELEASES,
    STATUS,
    address_space,
    alloc,
    books,
    buffer,
    call,
    create,
    error_in,
    foreign,
    free,
    from_fd,
    get_fd,
    gpu_map,
    gpu_unmap,
    mmap,
    munmap,
    node,
    release,
    reserve,
    rm_alloc,
    rm_begin,
    rm_free,
    unified,
    uvm_call,
)

NVMAP = ("r32", "r35", "r36", "r38")
BY_NUMBER = ("r35", "r36", "r38")
NVGPU = ("r32", "r35", "r36")
RM = ("r38", "rm535", "rm580")

Case = Callable[[], None]
CASES: Dict[str, Tuple[Case, Iterable[str]]] = {}


def case(*releases: str) -> Callable[[Case], Case]:
    def add(function: Case) -> Case:
        CASES[function.__name__] = (function, releases)
        return function

    return add


def nvmap() -> int:
    return node("/dev/nvmap")


def committed() -> int:
    return books().committed


# ---- nodes -----------------------------------------------------------------------------------

NODES = {
    "/dev/nvmap": NVMAP,
    "/dev/nvhost-gpu": ("r32", "r35"),
    "/dev/nvhost-as-gpu": ("r32", "r35"),
    "/dev/nvhost-ctrl-gpu": ("r32", "r35"),
    "/dev/nvhost-tsg-gpu": ("r32", "r35"),
    "/dev/nvgpu/igpu0/ctrl": ("r35", "r36"),
    "/dev/nvgpu/igpu0/as": ("r35", "r36"),
    "/dev/nvgpu/igpu0/channel": ("r35", "r36"),
    "/dev/nvidiactl": RM,
    "/dev/nvidia0": RM,
    "/dev/nvidia-uvm": RM,
}


@case(*RELEASES)
def a_release_has_its_nodes_and_no_others() -> None:
    for path, releases in NODES.items():
        try:
            os.close(node(path))
            found = True
        except FileNotFoundError:
            found = False
        assert found == (release() in releases), path


@case(*RELEASES)
def other_files_are_none_of_its_business() -> None:
    with open("/dev/null", "w", encoding="ascii") as null, open("/proc/self/maps", encoding="utf-8") as maps:
        assert null.write("x") == 1 and maps.read()
    assert error_in(call, sys.stdin.fileno(), 0xC0084E00, "II", 1, 0) in (errno.ENOTTY, errno.EINVAL)


# ---- nvmap: memory ---------------------------------------------------------------------------


@case(*NVMAP)
def memory_is_committed_at_alloc_in_whole_pages() -> None:
    fd = nvmap()
    handle = create(fd, 5000)
    assert committed() == 0
    alloc(fd, handle)
    assert committed() == books().nvmap == books().process == 8192
    large = int(call(fd, 0xC0084E01, "Q", 3 << 30)[0]) & 0xFFFFFFFF
    alloc(fd, large)
    assert committed() == 8192 + (3 << 30)


@case(*NVMAP)
def a_buffer_is_allocated_once() -> None:
    fd = nvmap()
    handle = buffer(fd, PAGE)
    assert error_in(alloc, fd, handle) == errno.EEXIST
    assert committed() == PAGE


@case(*NVMAP)
def a_command_of_another_releases_size_is_none() -> None:
    fd = nvmap()
    handle = create(fd, PAGE)
    for other in set(ALLOC.values()) - {ALLOC[release()]}:
        size = other >> 16 & 0x3FFF
        words = struct.unpack(f"={size // 4}I", struct.pack("=II", handle, IOVMM).ljust(size, b"\0"))
        assert error_in(call, fd, other, f"{size // 4}I", *words) == errno.ENOTTY
    parameters = {"r32": 56, "r35": 64, "r36": 72, "r38": 72}[release()]
    for size in {56, 64, 72} - {parameters}:
        assert error_in(call, fd, 2 << 30 | size << 16 | 0x4E1B, f"{size}B", *[0] * size) == errno.ENOTTY
    assert error_in(call, fd, 0xC0084E02, "II", 0, 0) == errno.ENOTTY  # FROM_ID, long dead
    assert committed() == 0


@case(*NVMAP)
def parameters_tell_the_size() -> None:
    fd = nvmap()
    handle = buffer(fd, 5000)
    size = {"r32": 56, "r35": 64, "r36": 72, "r38": 72}[release()]
    words = [0] * (size // 4)
    words[2] = handle
    told = call(fd, 2 << 30 | size << 16 | 0x4E1B, f"{size // 4}I", *words)
    assert told[12] == 8192 and told[6] == IOVMM
    if size == 72:
        other = buffer(fd, 5000)
        words[2] = other
        assert call(fd, 0x80484E1B, f"{size // 4}I", *words)[16] != told[16]


@case(*NVMAP)
def what_does_not_fit_the_board_fails_and_costs_nothing() -> None:
    """Of 16 MiB."""
    fd = nvmap()
    held = buffer(fd, 10 << 20)
    handle = create(fd, 10 << 20)
    assert error_in(alloc, fd, handle) == errno.ENOMEM
    assert committed() == 10 << 20
    free(fd, held)
    alloc(fd, handle)
    assert committed() == 10 << 20


@case(*NVMAP)
def wrapped_pages_are_no_new_memory() -> None:
    fd = nvmap()
    va = mmap(foreign(4 * PAGE), 4 * PAGE)
    handle = int(call(fd, 0xC0184E16, "QIIIi", va, 2 * PAGE, 0, 0, 0)[3])
    assert committed() == 0 and books().wrapped == 2 * PAGE
    free(fd, handle)
    assert books().wrapped == 0


@case("r36")
def the_gpus_heap_rounds_to_its_granule() -> None:
    fd = nvmap()
    granule = call(fd, 0x80304E69, "12I", GPU_HEAP, *[0] * 11)[10]
    assert granule > PAGE
    alloc(fd, create(fd, granule + 1), GPU_HEAP)
    assert committed() == 2 * granule


@case("r38")
def huge_pages_of_the_program_are_no_new_memory() -> None:
    fd = nvmap()
    alloc(fd, create(fd, PAGE), GPU_HEAP, va=0x10000)
    assert committed() == 0 and books().wrapped == 2 << 20


# ---- nvmap: who holds it ---------------------------------------------------------------------


@case("r35")
def the_lowest_free_number_is_used_again_and_each_open_counts_for_itself() -> None:
    one, other = nvmap(), nvmap()
    handles = [create(one, PAGE) for _ in range(3)]
    assert handles == [FIRST_ID, FIRST_ID + 1, FIRST_ID + 2]
    assert create(other, PAGE) == FIRST_ID
    free(one, handles[1])
    assert create(one, PAGE) == handles[1]


@case("r36", "r38")
def numbers_go_round_and_a_process_is_one_client() -> None:
    one, other = nvmap(), nvmap()
    handle = buffer(one, PAGE)
    free(one, handle)
    assert buffer(one, PAGE) == handle + 1
    assert buffer(other, PAGE) == handle + 2
    os.close(one)
    assert committed() == 2 * PAGE
    free(other, handle + 1)
    assert committed() == PAGE
    os.close(other)
    assert committed() == 0


@case("r32", "r35")
def closing_the_device_drops_its_references() -> None:
    one, other = nvmap(), nvmap()
    buffer(one, PAGE)
    kept = buffer(other, 2 * PAGE)
    copy = os.dup(one)
    os.close(one)
    assert committed() == 3 * PAGE
    os.close(copy)
    if release() == "r32":  # the handle is a descriptor as well
        assert committed() == 3 * PAGE
        os.close(1024)
    assert committed() == 2 * PAGE
    free(other, kept)
    assert committed() == 0


@case("r32")
def a_handle_is_a_descriptor_from_1024_whatever_the_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    fd = nvmap()
    assert [buffer(fd, PAGE) for _ in range(3)] == [1024, 1025, 1026]
    assert get_fd(fd, 1025) == 1027
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (256, hard)
    os.close(1026)
    assert create(fd, PAGE) == 1026


@case("r32")
def free_closes_the_descriptor() -> None:
    fd = nvmap()
    handle = buffer(fd, PAGE)
    free(fd, handle)
    assert committed() == 0
    for gone in (os.close, os.dup, lambda n: mmap(n, PAGE)):
        assert error_in(gone, handle) == errno.EBADF
    assert create(fd, PAGE) == handle
    free(fd, 0)
    assert error_in(free, fd, 5000) == errno.EBADF


@case(*BY_NUMBER)
def freeing_what_is_not_there_succeeds() -> None:
    fd = nvmap()
    free(fd, 0)
    free(fd, 0xFFFFFFF0)


@case(*BY_NUMBER)
def each_number_needs_its_own_free() -> None:
    fd = nvmap()
    first = buffer(fd, PAGE)
    second = int(call(fd, 0xC00C4E6A, "III", first, 3, 0)[2])
    dmabuf = get_fd(fd, first)
    third = from_fd(fd, dmabuf)
    os.close(dmabuf)
    assert len({first, second, third}) == 3 and committed() == PAGE
    for handle in (second, first):
        free(fd, handle)
        assert committed() == PAGE
    free(fd, third)
    assert committed() == 0


def kept_by_descriptor(fd: int) -> int:
    """The only thing that keeps a buffer of a page."""
    handle = buffer(fd, PAGE)
    dmabuf = get_fd(fd, handle)
    free(fd, handle)
    return dmabuf


@case(*NVMAP)
def a_descriptor_holds_it() -> None:
    fd = nvmap()
    dmabuf = kept_by_descriptor(fd)
    copies = [os.dup(dmabuf) for _ in range(3)]
    os.close(dmabuf)
    for copy in copies:
        assert committed() == PAGE
        os.close(copy)
    assert committed() == 0


@case(*NVMAP)
def a_mapping_holds_it_to_its_last_page() -> None:
    fd = nvmap()
    handle = buffer(fd, 3 * PAGE)
    dmabuf = get_fd(fd, handle)
    at = mmap(dmabuf, 3 * PAGE)
    os.close(dmabuf)
    free(fd, handle)
    munmap(at + PAGE, PAGE)
    munmap(at, PAGE)
    assert committed() == 3 * PAGE
    munmap(at + 2 * PAGE, PAGE)
    assert committed() == 0


@case(*NVMAP)
def the_device_itself_is_not_mapped_and_a_buffer_only_where_it_is() -> None:
    fd = nvmap()
    dmabuf = get_fd(fd, buffer(fd, PAGE))
    assert error_in(mmap, fd, PAGE) == errno.EPERM
    assert error_in(mmap, dmabuf, 2 * PAGE) == errno.EINVAL


@case(*NVMAP)
def only_what_is_allocated_is_imported() -> None:
    fd = nvmap()
    handle = create(fd, PAGE)
    dmabuf = get_fd(fd, handle)
    assert error_in(call, fd, 0xC0084E10, "II", dmabuf, 0) == errno.EINVAL
    alloc(fd, handle)
    from_fd(fd, dmabuf)
    assert committed() == PAGE


@case(*NVMAP)
def a_buffer_of_another_driver_comes_back_as_a_descriptor() -> None:
    fd = nvmap()
    theirs = foreign(PAGE)
    handle = from_fd(fd, theirs)
    assert handle < FIRST_ID and handle != theirs and os.fstat(handle).st_ino == os.fstat(theirs).st_ino
    assert committed() == 0


@case(*NVGPU)
def an_address_space_holds_it() -> None:
    fd, space = nvmap(), address_space()
    handle = buffer(fd, PAGE)
    dmabuf = get_fd(fd, handle)
    wanted = 1 << 40
    assert gpu_map(space, dmabuf, wanted) == wanted
    somewhere = gpu_map(space, dmabuf)
    assert somewhere not in (0, wanted)
    os.close(dmabuf)
    free(fd, handle)
    assert committed() == PAGE
    gpu_unmap(space, wanted)
    assert committed() == PAGE
    assert error_in(call, space, 0xC0084105, "Q", wanted) == errno.EINVAL
    os.close(space)
    assert committed() == 0


@case(*NVMAP)
def a_child_holds_it_while_it_lives() -> None:
    fd = nvmap()
    handle = buffer(fd, PAGE)
    go, wait = os.pipe()
    child = os.fork()
    if child == 0:
        buffer(nvmap(), PAGE)
        os.write(wait, b"x")
        os.read(go, 0)
        while os.getppid() != 1 and committed() != PAGE:
            pass
        os._exit(0)
    os.read(go, 1)
    assert committed() == 2 * PAGE and books().process == PAGE
    free(fd, handle)
    if release() == "r32":
        assert committed() == 2 * PAGE  # the child has the descriptor
        os.kill(child, 9)
    os.waitpid(child, 0)
    assert committed() == 0


@case(*NVMAP)
def a_new_program_has_nothing() -> None:
    fd = nvmap()
    mmap(get_fd(fd, buffer(fd, PAGE)), PAGE)
    code = "from tests.sim.board_client import books; assert books().committed == 0, books()"
    os.execv(sys.executable, [sys.executable, "-c", code])


# ---- the resource manager --------------------------------------------------------------------

VIDMEM, SYSMEM = 0x40, 0x3E


@case(*RM)
def memory_is_charged_by_its_class() -> None:
    fd = node("/dev/nvidiactl")
    client, device = rm_begin(fd)
    rm_alloc(fd, client, device, VIDMEM, 5000)
    rm_alloc(fd, client, device, SYSMEM, 3 * PAGE)
    rm_alloc(fd, client, device, 0x50A0, 1 << 30)
    assert (books().vidmem, books().sysmem, committed()) == (8192, 3 * PAGE, 5 * PAGE)
    rm_alloc(fd, client, device, VIDMEM, PAGE, attr=3 << 23)
    rm_alloc(fd, client, device, VIDMEM, 3 << 20)
    assert books().vidmem == 8192 + (2 << 20) + (4 << 20)


@case(*RM)
def failing_shows_in_the_structure_alone() -> None:
    fd = node("/dev/nvidiactl")
    client, device = rm_begin(fd)
    memory = rm_alloc(fd, client, device, VIDMEM, PAGE)
    for arguments in (
        (0xDEAD, device, VIDMEM, PAGE),
        (client, 0xDEAD, VIDMEM, PAGE),
        (client, device, VIDMEM, PAGE, memory),
    ):
        assert error_in(rm_alloc, fd, *arguments) == STATUS
    assert committed() == PAGE


@case(*RM)
def freeing_frees_what_is_below() -> None:
    fd = node("/dev/nvidiactl")
    client, device = rm_begin(fd)
    other = rm_alloc(fd, client, client, 0x80)
    for parent in (device, device, other):
        rm_alloc(fd, client, parent, VIDMEM, PAGE)
    rm_free(fd, client, device)
    assert committed() == PAGE
    rm_free(fd, client, client)
    assert committed() == 0 and books().n_objects == 0


@case(*RM)
def a_client_goes_with_its_descriptor() -> None:
    one, other = node("/dev/nvidiactl"), node("/dev/nvidiactl")
    client, device = rm_begin(one)
    rm_alloc(other, client, device, VIDMEM, PAGE)
    os.close(other)
    assert committed() == PAGE
    os.close(one)
    assert committed() == 0


@case(*RM)
def what_was_duplicated_stays() -> None:
    fd = node("/dev/nvidiactl")
    client, device = rm_begin(fd)
    other, its_device = rm_begin(fd)
    memory = rm_alloc(fd, client, device, VIDMEM, PAGE)
    done = call(fd, 0xC01C4634, "7I", other, its_device, 0, client, memory, 0, 1)
    assert done[6] == 0 and done[2] and committed() == PAGE
    rm_free(fd, client, client)
    assert committed() == PAGE
    rm_free(fd, other, done[2])
    assert committed() == 0


@case(*RM)
def the_other_ways_to_allocate() -> None:
    ctl, gpu = node("/dev/nvidiactl"), node("/dev/nvidia0")
    client, device = rm_begin(ctl)
    words = [0] * 46
    words[0], words[1], words[2], words[14], words[22] = client, device, 2, 1 << 25, 5000
    heap = call(ctl, 0xC0B8464A, "46I", *words)
    assert heap[5] == 0 and heap[11] and heap[22] == 8192 and books().sysmem == 8192
    at_once = ("IIIIIIQQIIiI", client, device, 0, SYSMEM, 0, 0, 0, 3 * PAGE - 1, 1, 0, -1, 0)
    assert call(gpu, 0xC0384627, *at_once)[8] == 0 and committed() == 5 * PAGE
    assert error_in(call, ctl, 0xC0384627, *at_once) == errno.EINVAL
    own = mmap(foreign(PAGE), PAGE)
    wrapped = call(gpu, 0xC0384627, "IIIIIIQQIIiI", client, device, 0, 0x71, 0, 0, own, PAGE - 1, 1, 0, -1, 0)
    assert wrapped[8] == 0 and committed() == 5 * PAGE and books().wrapped == PAGE
    words = [0] * 46
    words[0], words[1], words[2], words[11] = client, device, 3, heap[11]
    assert call(ctl, 0xC0B8464A, "46I", *words)[5] == 0 and committed() == 3 * PAGE


@case(*RM)
def a_command_may_come_wrapped_and_its_size_is_looked_at() -> None:
    fd = node("/dev/nvidiactl")
    root = ctypes.create_string_buffer(struct.pack("=IIIIQQIIII", 0, 0, 0, 0x41, 0, 0, 0, 0, 1, 0))
    call(fd, 0xC01046D3, "IIQ", 0x2B, 48, ctypes.addressof(root))
    assert struct.unpack_from("=I", root, 40)[0] == 0 and books().n_objects == 1
    short = call(fd, 0xC020462B, "IIIIQII", 0, 0, 0, 0x41, 0, 0, 1)
    assert short[6] == 0 and books().n_objects == 2
    assert error_in(call, fd, 0xC028462B, "10I", *[0] * 10) == errno.EINVAL  # of drivers before 535


@case(*RM)
def a_mapping_is_of_a_descriptor_that_was_attached() -> None:
    fd, fresh = node("/dev/nvidiactl"), node("/dev/nvidia0")
    client, device = rm_begin(fd)
    memory = rm_alloc(fd, client, device, VIDMEM, 2 * PAGE)
    assert error_in(mmap, fresh, PAGE) == errno.EINVAL
    done = call(fd, 0xC038464E, "IIIIQQQIIiI", client, device, memory, 0, 0, 2 * PAGE, 0, 1, 0, fresh, 0)
    assert done[7] == 0
    at = mmap(fresh, 2 * PAGE)
    os.close(fresh)
    assert committed() == 2 * PAGE
    munmap(at, 2 * PAGE)
    assert committed() == 2 * PAGE


@case("rm535", "rm580")
def the_driver_says_its_version() -> None:
    told = call(node("/dev/nvidiactl"), 0xC04846D2, "II64s", 0, 0, b"")  # type: ignore[arg-type]
    assert told[2].startswith({"rm535": b"535.", "rm580": b"580."}[release()])


# ---- unified memory --------------------------------------------------------------------------


@case(*RM)
def managed_memory_is_mapped_at_its_offset_and_only_addresses() -> None:
    fd, at = unified(), reserve(4 * PAGE)
    assert error_in(mmap, fd, PAGE, at, at + PAGE) == errno.EINVAL
    mmap(fd, 4 * PAGE, at, at)
    assert (books().managed, committed()) == (4 * PAGE, 0)
    munmap(at, PAGE)
    assert books().managed == 3 * PAGE


@case(*RM)
def a_semaphore_pool_is_memory_until_it_is_freed_or_nothing_holds_the_device() -> None:
    fd, at = unified(), reserve(4 * PAGE)
    size = 1184 if release() == "rm535" else 9248
    uvm_call(fd, 68, size, size - 8, (0, "Q", at), (8, "Q", 2 * PAGE))
    uvm_call(fd, 68, size, size - 8, (0, "Q", at + 2 * PAGE), (8, "Q", PAGE))
    assert committed() == books().semaphore == 3 * PAGE
    mmap(fd, 2 * PAGE, at, at)
    assert books().managed == 0
    uvm_call(fd, 34, 24, 16, (0, "Q", at + 2 * PAGE), (8, "Q", PAGE))
    os.close(fd)
    assert committed() == 2 * PAGE
    munmap(at, 2 * PAGE)
    assert committed() == 0


@case(*RM)
def a_range_binds_addresses_to_memory_that_there_is() -> None:
    ctl, fd, at = node("/dev/nvidiactl"), unified(), reserve(4 * PAGE)
    client, device = rm_begin(ctl)
    memory = rm_alloc(ctl, client, device, VIDMEM, 2 * PAGE)
    size = 1200 if release() == "rm535" else 9264

    def bind(handle: int) -> None:
        where = ((0, "Q", at), (8, "Q", 2 * PAGE), (size - 12, "I", client), (size - 8, "I", handle))
        uvm_call(fd, 33, size, size - 4, *where)

    assert error_in(bind, memory) == STATUS
    uvm_call(fd, 73, 24, 16, (0, "Q", at), (8, "Q", 2 * PAGE))
    assert error_in(bind, memory + 1) == STATUS
    bind(memory)
    assert committed() == 2 * PAGE


@case(*RM)
def unified_memory_wants_to_be_initialized() -> None:
    fields = ((0, "Q", PAGE), (8, "Q", PAGE))
    assert error_in(uvm_call, node("/dev/nvidia-uvm"), 73, 24, 16, *fields) == STATUS


if __name__ == "__main__":
    CASES[sys.argv[1]][0]()
