# SPDX-License-Identifier: GPL-2.0-or-later
"""The glossary: one name and one description for each group and owner, in reports and pages.

An owner of the user's own rules has no line here.
"""

from typing import Dict


GROUPS: Dict[str, str] = {
    "yours": "allocated by your own code",
    "cached": "reserved by an allocator, unused",
    "libraries": "kept by libraries for themselves",
    "runtime": "needed to run at all: the CUDA context, kernel code, the loader",
}

OWNERS: Dict[str, str] = {
    "tensor": "tensors of PyTorch or TensorFlow",
    "model": "weights mapped or loaded from a model's file",
    "kv-cache": "keys and values that llama.cpp keeps of a model's context",
    "data": "objects your Python code created: arrays, bytes, lists, strings, images",
    "app": "native code: your program's C and C++ code, CUDA memory by ctypes, the main stack",
    "cache": "allocator memory kept for reuse",
    "workspace": "scratch memory of cuBLAS and cuDNN, from the framework's allocator",
    "compute": "buffers and pools of ggml's graphs",
    "python": "the Python interpreter, and modules, classes and code that imports left",
    "framework": "PyTorch, ONNX Runtime, llama.cpp, OpenCV, XGBoost, Node.js: code, buffers, caches",
    "cudnn": "cuDNN: its libraries and their allocations",
    "cublas": "cuBLAS: its libraries and their allocations",
    "cufft": "cuFFT: its libraries and their allocations",
    "cusparse": "cuSPARSE: its libraries and their allocations",
    "cusolver": "cuSOLVER: its libraries and their allocations",
    "curand": "cuRAND: its libraries and their allocations",
    "nccl": "NCCL: its library and buffers",
    "nvrtc": "compilers of kernels at run time",
    "tensorrt": "TensorRT: its libraries, engines and contexts",
    "cutensor": "cuTENSOR: its libraries and their allocations",
    "cudss": "cuDSS: its libraries and their allocations",
    "npp": "NPP: its libraries and their allocations",
    "nvjpeg": "nvJPEG: its library and buffers",
    "vpi": "VPI: its library and buffers",
    "multimedia": "GStreamer; buffers of cameras and codecs (NvBufSurface, Argus, V4L2)",
    "triton": "Triton: its compiler and launchers of its kernels",
    "package": "extension modules of Python packages, and libraries that come with their import",
    "lib": "other libraries: pages of their files, and memory they keep for themselves",
    "cudart": "the CUDA runtime and the driver's library, in host memory",
    "context": "CUDA contexts, streams and events",
    "module": "kernel code loaded onto the device",
    "slack": "driver overhead: allocated in one piece and not handed out",
    "loader": "dynamic linker",
    "unknown": "memory with an unreadable stack",
}

# Names of groups in reports and pages; other owners go by their own.
GROUP_NAMES: Dict[str, str] = {
    "yours": "your code",
    "cached": "allocator cache",
    "libraries": "libraries",
    "runtime": "runtime",
    "other": "owners without a group",
}


# Memory that is no leak, by the reason that a report's `leaks` gives.
NOT_COUNTED: Dict[str, str] = {
    "inherited": "inherited from the parent process",
    "suppressed": "suppressed",
    "imports": "left by imports",
    "interpreter": "the Python interpreter",
    "cached": "allocator cache",
    "runtime": "the CUDA runtime",
}


def pool_owner(key: str, is_board: bool) -> str:
    """The holder of a pool, in the genitive: "the board's"."""
    if key == "machine":
        return "the board's" if is_board else "the machine's"
    return {"gpu": "the GPU's", "cgroup": "the control group's limit of"}[key]
