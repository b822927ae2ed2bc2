/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The functions of CUDA's libraries that must do more than succeed for PyTorch to go on. build compiles
 * this file once per library, with -DLIBRARY_<NAME>; handles are those of tests/sim. */
#include <stddef.h>
#include <string.h>

#define LIBRARY_API __attribute__((visibility("default")))

#ifdef LIBRARY_CUBLASLT

struct heuristic { /* cublasLtMatmulHeuristicResult_t */
    unsigned char algorithm[64];
    size_t workspace_bytes;
    int status;
    float waves;
    int reserved[4];
};

/* PyTorch gives up when no algorithm is offered. */
LIBRARY_API int cublasLtMatmulAlgoGetHeuristic(void *handle, void *operation, void *a, void *b, void *c, void *d,
                                               void *preference, int n_wanted, struct heuristic *results, int *n_found)
{
    (void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d, (void)preference;
    *n_found = n_wanted > 0;
    if (n_wanted > 0)
        memset(results, 0, sizeof *results);
    return 0;
}

#endif

#ifdef LIBRARY_CUDNN

/* PyTorch refuses a cuDNN that is older than the one that it was built with. */
enum { MAJOR = 9, MINOR = 9, PATCH = 0 };

LIBRARY_API size_t cudnnGetVersion(void)
{
    return MAJOR * 10000 + MINOR * 100 + PATCH;
}

LIBRARY_API int cudnnGetProperty(int property, int *value)
{
    static const int version[] = {MAJOR, MINOR, PATCH};
    *value = version[property];
    return 0;
}

LIBRARY_API const char *cudnnGetErrorString(int status)
{
    (void)status;
    return "simulated";
}

#endif

#ifdef LIBRARY_NCCL

LIBRARY_API int ncclGetVersion(int *version)
{
    *version = 22203;
    return 0;
}

#endif
