# SPDX-License-Identifier: GPL-2.0-or-later
"""A program on the simulated board: its device nodes, as a client of them writes its calls, in a few lines each."""

import ctypes
import fcntl
import os
import struct
from typing import Any, Callable, NamedTuple, Optional, Tuple

PAGE = 4096
STATUS = -1  # the error of a status that is not 0
IOVMM = 1 << 30
GPU_HEAP = 1 << 3
FIRST_ID = 0x7FFFFFFF
RELEASES = ("r32", "r35", "r36", "r38", "rm535", "rm580")

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.shmat.restype = ctypes.c_void_p
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_MAP_FAILED = ctypes.c_void_p(-1).value


class Books(NamedTuple):
    """The board's own: struct jmsim_books."""

    committed: int
    nvmap: int
    vidmem: int
    sysmem: int
    semaphore: int
    process: int
    managed: int
    wrapped: int
    n_buffers: int
    n_handles: int
    n_mappings: int
    n_objects: int
    n_files: int
    release: int


def node(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CLOEXEC)


def call(fd: int, command: int, layout: str, *values: int) -> Tuple[Any, ...]:
    """ioctl with a structure; what is in it afterwards."""
    data = bytearray(struct.pack("=" + layout, *values))
    fcntl.ioctl(fd, command, data, True)
    return struct.unpack("=" + layout, data)


def error_in(function: Callable[..., object], *arguments: Any) -> int:
    """The error that the call must fail with."""
    try:
        function(*arguments)
    except OSError as error:
        return error.errno or 0
    raise AssertionError(f"{function.__name__}{arguments} was taken")


_board: Optional[int] = None


def books() -> Books:
    global _board
    if _board is None:
        _board = node("/dev/jmsim-board")
    layout = "8Q6I"
    return Books(*call(_board, 2 << 30 | struct.calcsize("=" + layout) << 16 | ord("J") << 8 | 0xB0, layout, *[0] * 14))


def release() -> str:
    return RELEASES[books().release]


def foreign(n_bytes: int) -> int:
    """A dmabuf that another driver made."""
    books()
    assert _board is not None
    return int(call(_board, 3 << 30 | 16 << 16 | ord("J") << 8 | 0xB1, "QiI", n_bytes, -1, 0)[1])


def mmap(fd: int, n_bytes: int, address: int = 0, offset: int = 0) -> int:
    """Shared, to read and to write; at the address if there is one. OSError if it fails."""
    at = _libc.mmap(address, n_bytes, 3, 0x11 if address else 1, fd, offset)
    if at == _MAP_FAILED:
        raise OSError(ctypes.get_errno(), "mmap")
    return int(at)


def munmap(address: int, n_bytes: int) -> None:
    assert _libc.munmap(address, n_bytes) == 0


def reserve(n_bytes: int) -> int:
    return int(_libc.mmap(0, n_bytes, 0, 0x4022, -1, 0))


def system_v(n_bytes: int) -> int:
    """Shared memory without a name, attached; it goes with the process."""
    identifier = _libc.shmget(0, n_bytes, 0o600)
    at = _libc.shmat(identifier, None, 0)
    assert identifier >= 0 and at != _MAP_FAILED and _libc.shmctl(identifier, 0, None) == 0
    return int(at)


# ---- nvmap and nvgpu -------------------------------------------------------------------------

ALLOC = {"r32": 0x40104E03, "r35": 0x40104E03, "r36": 0x40144E03, "r38": 0x40204E03}
ALLOC_LAYOUT = {"r32": "IIII", "r35": "IIII", "r36": "IIIIi", "r38": "IIIIiIQ"}


def create(fd: int, n_bytes: int) -> int:
    return int(call(fd, 0xC0084E00, "II", n_bytes, 0)[1])


def alloc(fd: int, handle: int, heap: int = IOVMM, va: int = 0) -> None:
    rest = {"r36": [0], "r38": [0, 0, va]}.get(release(), [])
    call(fd, ALLOC[release()], ALLOC_LAYOUT[release()], handle, heap, 3, PAGE, *rest)


def buffer(fd: int, n_bytes: int) -> int:
    """The handle of memory."""
    handle = create(fd, n_bytes)
    alloc(fd, handle)
    return handle


def free(fd: int, handle: int) -> None:
    fcntl.ioctl(fd, 0x4E04, handle - (1 << 32) if handle >> 31 else handle)


def get_fd(fd: int, handle: int) -> int:
    return int(call(fd, 0xC0084E0F, "II", 0, handle)[0])


def from_fd(fd: int, dmabuf: int) -> int:
    return int(call(fd, 0xC0084E10, "II", dmabuf, 0)[1])


def address_space() -> int:
    """A new one, by its descriptor."""
    if release() == "r32":
        return int(call(node("/dev/nvhost-ctrl-gpu"), 0xC0104708, "IIII", 1 << 16, 0, 0, 0)[1])
    ctrl = node("/dev/nvgpu/igpu0/ctrl")
    return int(call(ctrl, 0xC0404708, "IIII6Q", 1 << 16, 0, 0, 0, *[0] * 6)[1])


def gpu_map(space: int, dmabuf: int, va: int = 0) -> int:
    """The address in the space: the one wanted, if any."""
    return int(call(space, 0xC0284107, "IHHIIQQQ", 1 if va else 0, 0, 0, dmabuf, 0, 0, 0, va)[-1])


def gpu_unmap(space: int, va: int) -> None:
    call(space, 0xC0084105, "Q", va)


# ---- the resource manager and unified memory -------------------------------------------------


def _checked(status: int) -> None:
    if status:
        raise OSError(STATUS, f"status {status:x}")


def rm_alloc(fd: int, client: int, parent: int, rm_class: int, n_bytes: int = 0, handle: int = 0, attr: int = 0) -> int:
    """The handle of a new object; of memory, if it has bytes."""
    parameters = ctypes.create_string_buffer(128)
    struct.pack_into("=I", parameters, 24, attr)
    struct.pack_into("=Q", parameters, 64, n_bytes)
    done = call(
        fd, 0xC030462B, "IIIIQQIIII", client, parent, handle, rm_class, ctypes.addressof(parameters), 0, 0, 0, 1, 0
    )
    _checked(done[8])
    assert struct.unpack_from("=Q", parameters, 64)[0] >= n_bytes
    return int(done[2])


def rm_free(fd: int, client: int, handle: int) -> None:
    _checked(call(fd, 0xC0104629, "IIII", client, client, handle, 1)[3])


def rm_begin(fd: int) -> Tuple[int, int]:
    """A client and a device of it."""
    client = rm_alloc(fd, 0, 0, 0x41)
    return client, rm_alloc(fd, client, client, 0x80)


def uvm_call(fd: int, command: int, n_bytes: int, status_at: int, *fields: Tuple[int, str, int]) -> None:
    """With fields (offset, format, value)."""
    data = bytearray(n_bytes)
    for offset, layout, value in fields:
        struct.pack_into("=" + layout, data, offset, value)
    pointer = (ctypes.c_char * n_bytes).from_buffer(data)
    if _libc.ioctl(fd, ctypes.c_ulong(command), pointer) != 0:
        raise OSError(ctypes.get_errno(), "ioctl")
    _checked(struct.unpack_from("=I", data, status_at)[0])


def unified() -> int:
    fd = node("/dev/nvidia-uvm")
    uvm_call(fd, 0x30000001, 16, 8)
    return fd
