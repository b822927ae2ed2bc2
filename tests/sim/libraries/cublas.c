/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The simulated cuBLAS and cuBLASLt handles, one library each (-DLIBRARY_CUBLAS, -DLIBRARY_CUBLASLT).
 * A cuBLAS handle owns a workspace on the device until the caller sets another. */
#include "library.h"

enum { SUCCESS = 0, NOT_INITIALIZED = 1, ALLOC_FAILED = 3, INVALID_VALUE = 7 };

#ifdef LIBRARY_CUBLAS

static const struct handle_cost CUBLAS_COST = {CUBLAS_HANDLE};

LIBRARY_API int cublasCreate_v2(struct handle **handle)
{
    if (!handle)
        return INVALID_VALUE;
    *handle = handle_new(&CUBLAS_COST);
    return *handle ? SUCCESS : ALLOC_FAILED;
}

LIBRARY_API int cublasDestroy_v2(struct handle *handle)
{
    if (!handle || handle->cost != &CUBLAS_COST)
        return NOT_INITIALIZED;
    handle_delete(handle);
    return SUCCESS;
}

LIBRARY_API int cublasSetStream_v2(struct handle *handle, cudaStream_t stream)
{
    if (!handle)
        return NOT_INITIALIZED;
    handle->stream = stream;
    return SUCCESS;
}

LIBRARY_API int cublasSetWorkspace_v2(struct handle *handle, void *workspace, size_t bytes)
{
    if (!handle)
        return NOT_INITIALIZED;
    if ((!workspace && bytes) || (uintptr_t)workspace % 256 != 0)
        return INVALID_VALUE;
    if (handle->device[0])
        cudaFree(handle->device[0]);
    handle->device[0] = NULL;
    return SUCCESS;
}

#endif

#ifdef LIBRARY_CUBLASLT

static const struct handle_cost CUBLASLT_COST = {
    .device_bytes = {KIB(64)},
    .n_heap_blocks = 25,
};

LIBRARY_API int cublasLtCreate(struct handle **handle)
{
    if (!handle)
        return INVALID_VALUE;
    *handle = handle_new(&CUBLASLT_COST);
    return *handle ? SUCCESS : ALLOC_FAILED;
}

LIBRARY_API int cublasLtDestroy(struct handle *handle)
{
    if (!handle || handle->cost != &CUBLASLT_COST)
        return NOT_INITIALIZED;
    handle_delete(handle);
    return SUCCESS;
}

#endif
