# SPDX-License-Identifier: GPL-2.0-or-later
"""What the built-in owners are, in a line each, and what their groups are, for whoever reads a report for the first time.

An owner of the user's own rules has no line here.
"""

from typing import Dict


GROUPS: Dict[str, str] = {
    "yours": "what your own code has asked for",
    "cached": "reserved by an allocator, and not in use",
    "libraries": "what libraries keep for themselves",
    "runtime": "what it takes to run at all: the CUDA context, kernels' code, the loader",
}

OWNERS: Dict[str, str] = {
    "tensor": "tensors of PyTorch or TensorFlow",
    "model": "weights that were mapped or loaded from a file of a model",
    "data": "what lines of your Python code made while they ran: arrays, bytes, lists, strings, images",
    "app": "what your program asked for itself: its C and C++ code, CUDA memory by ctypes, the main stack",
    "cache": "segments that a framework's allocator or a pool keeps for later",
    "workspace": "what cuBLAS and cuDNN compute in, taken from the framework's allocator",
    "python": "the interpreter, and what imports left in it: modules, classes, code",
    "framework": "PyTorch, ONNX Runtime, llama.cpp, OpenCV, XGBoost itself: code, buffers, caches",
    "cudnn": "cuDNN: its libraries and what they allocate",
    "cublas": "cuBLAS: its libraries and what they allocate",
    "cufft": "cuFFT: its libraries and what they allocate",
    "cusparse": "cuSPARSE: its libraries and what they allocate",
    "cusolver": "cuSOLVER: its libraries and what they allocate",
    "curand": "cuRAND: its libraries and what they allocate",
    "nccl": "NCCL: its library and buffers",
    "nvrtc": "the compilers of kernels at run time",
    "tensorrt": "TensorRT: its libraries, engines and contexts",
    "package": "extension modules of Python packages, and the libraries that come with their import",
    "lib": "all other libraries: their files' pages, and what they keep for themselves",
    "cudart": "the CUDA runtime and the driver's library, on the host",
    "context": "CUDA contexts, streams and events",
    "module": "kernels' code that was loaded onto the device",
    "slack": "what the driver took in one piece and has not given out",
    "loader": "the dynamic linker, and what it keeps of each library",
    "unknown": "memory whose stack could not be read",
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
