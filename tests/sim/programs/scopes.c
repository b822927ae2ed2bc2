/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The start-up of a large program in one: each call that a profiler shows as a scope, once, in this
 * order, printed by name with its result when all are done. Everything stays live until the end. */
#include <dlfcn.h>
#include <unistd.h>

#include "program.h"

struct unique_id {
    char internal[128];
};

int cudnnCreate(void **handle);
int cublasCreate_v2(void **handle);
int cublasLtCreate(void **handle);
int cufftPlan1d(int *plan, int nx, int type, int batch);
int cufftCreate(int *plan);
int cufftMakePlan1d(int plan, int nx, int type, int batch, size_t *work_bytes);
int cusparseCreate(void **handle);
int cusolverDnCreate(void **handle);
int curandCreateGenerator(void **generator, int type);
int ncclGetUniqueId(struct unique_id *id);
int ncclCommInitRank(void **communicator, int n_ranks, struct unique_id id, int rank);
int ncclCommInitAll(void **communicators, int n_devices, const int *devices);
void *createInferRuntime_INTERNAL(void *logger, int version);

enum { CUFFT_C2C = 0x29, CURAND_RNG_PSEUDO_DEFAULT = 100, MOST_CALLS = 32 };

static struct {
    const char *name;
    int result;
} calls[MOST_CALLS];
static int n_calls;

static void did(const char *name, int result)
{
    calls[n_calls].name = name;
    calls[n_calls++].result = result;
}

#define DO(name, ...) did(#name, name(__VA_ARGS__))

int main(void)
{
    void *handle;
    CUcontext context;
    CUmodule module;
    CUlibrary library;
    CUstream stream;
    CUevent event;
    struct unique_id id;
    int plan;
    DO(cuInit, 0);
    DO(cuCtxCreate_v2, &context, 0, 0);
    DO(cuDevicePrimaryCtxRetain, &context, 0);
    DO(cuCtxSetCurrent, context);
    DO(cuModuleLoadData, &module, "image");
    DO(cuModuleLoad, &module, "/proc/self/exe");
    DO(cuLibraryLoadData, &library, "image", NULL, NULL, 0, NULL, NULL, 0);
    DO(cuStreamCreate, &stream, 0);
    DO(cudaStreamCreateWithFlags, &stream, 1);
    DO(cuEventCreate, &event, 0);
    DO(cudaEventCreate, &event);
    DO(cudnnCreate, &handle);
    DO(cublasCreate_v2, &handle);
    DO(cublasLtCreate, &handle);
    DO(cufftPlan1d, &plan, 4096, CUFFT_C2C, 16);
    DO(cufftCreate, &plan);
    DO(cufftMakePlan1d, plan, 1024, CUFFT_C2C, 1, NULL);
    DO(cusparseCreate, &handle);
    DO(cusolverDnCreate, &handle);
    DO(curandCreateGenerator, &handle, CURAND_RNG_PSEUDO_DEFAULT);
    DO(ncclGetUniqueId, &id);
    DO(ncclCommInitRank, &handle, 1, id, 0);
    DO(ncclCommInitAll, &handle, 1, NULL);
    did("createInferRuntime_INTERNAL", createInferRuntime_INTERNAL(NULL, 8201) == NULL);
    did("dlopen", dlopen("libm.so.6", RTLD_NOW) == NULL);
    for (int i = 0; i < n_calls; i++)
        printf("%s %d\n", calls[i].name, calls[i].result);
    print_stats("end");
    return 0;
}
