// SPDX-License-Identifier: GPL-2.0-or-later
//
// The wrapped functions, as preload/cuda_api.def has them, and a call of one, as its wrapper reports it.

#ifndef JM_CUDA_API_H
#define JM_CUDA_API_H

#include "base/compat.h"

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

// What calls do to memory; calls.c has the same rows with what each does.
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
    UChar kind;    // of the memory it allocates
    UChar p;       // which word of a call holds the pointer, or the place where it is returned
    UChar s;       // which word holds the size
} CudaFunction;

// A call that has ended.
typedef struct {
    ThreadId tid;
    const CudaFunction *function;
    UWord result;
    const UWord *words; // its arguments
    Addr address;       // of the wrapped function, to find its library by
    struct jm_queries *queries;
} CudaCall;

const CudaFunction *jm_cuda_function(UWord row);

UInt jm_cuda_function_name(const CudaFunction *function); // as a string of the trace

// cuGetProcAddress handed out `address` for the text at `symbol`: 1 + the row of the function that its calls are to be
// reported as. 0: they are reported already, because the address is a wrapped function's, or are none of ours.
UWord jm_cuda_uncovered_row(Addr symbol, Addr address, UWord flags);

#endif
