// SPDX-License-Identifier: GPL-2.0-or-later
//
// The wrapped functions of preload/cuda_api.def, and a call of one, as its wrapper reports it.

#pragma once

#include "host/types.h"

#include "preload/protocol.h"

typedef enum {
    LIBRARY_RUNTIME,
    LIBRARY_DRIVER,
    LIBRARY_CUDNN,
    LIBRARY_CUBLAS,
    LIBRARY_CUFFT,
    LIBRARY_CUSPARSE,
    LIBRARY_CUSOLVER,
    LIBRARY_CURAND,
    LIBRARY_NCCL,
    LIBRARY_NVINFER,
    LIBRARY_C10,
    LIBRARY_TENSORFLOW,
    LIBRARY_LOADER,
    LIBRARY_PYTHON
} Library;

// Effects of calls on memory; calls.c has the handlers.
#define ACTION(name, handler, request, flags) ACTION_##name,
typedef enum {
#include "cuda/actions.def"
    N_ACTIONS
} CudaAction;
#undef ACTION

typedef struct {
    const HChar *name;
    UChar library; // Library
    UChar action;  // CudaAction
    UChar kind;    // Kind, of the memory that it allocates
    UChar p;       // index of the word with the pointer, or with the address where it is returned
    UChar s;       // index of the word with the size
} CudaFunction;

// A call that has ended. Its pointers hold only while its report is handled.
typedef struct {
    ThreadId tid;
    const CudaFunction *function;
    UWord result;
    const UWord *words; // its arguments
    Addr address;       // of the wrapped function, to find its library
    struct jm_queries *queries;
} CudaCall;
