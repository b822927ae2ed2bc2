#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""usage: register.py MODULE
Lets llama.cpp, as a Node.js module has it, register 8 MiB of host memory, and copies them to the device."""

import ctypes
import mmap
import os
import sys

BYTES = 8 << 20
os.environ["GGML_CUDA_REGISTER_HOST"] = "1"
runtime = ctypes.CDLL("libcudart.so.12")
# It needs functions of Node.js, which are never called: they are bound when they are.
llama = ctypes.CDLL(sys.argv[1], mode=os.RTLD_LAZY)
llama.ggml_backend_cuda_register_host_buffer.restype = ctypes.c_bool

memory = mmap.mmap(-1, BYTES)
memory[:] = b"m" * BYTES
host = (ctypes.c_char * BYTES).from_buffer(memory)
assert llama.ggml_backend_cuda_register_host_buffer(host, ctypes.c_size_t(BYTES))
device = ctypes.c_void_p()
assert runtime.cudaMalloc(ctypes.byref(device), ctypes.c_size_t(BYTES)) == 0
assert runtime.cudaMemcpy(device, host, ctypes.c_size_t(BYTES), 1) == 0
print("registered")
