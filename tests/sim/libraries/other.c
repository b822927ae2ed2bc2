/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The other simulated libraries: cuFFT, cuSPARSE, cuSOLVER, cuRAND, NCCL, TensorRT. Of each there is
 * what makes its handle and what ends it, at the cost that its row of the table states; nothing can
 * be computed with it. build.sh compiles this file once per library, with -DLIBRARY_<NAME>. */
#include "library.h"

enum { SUCCESS = 0, ALLOC_FAILED = 2, INVALID_HANDLE = 1 };

/* A library whose handle is a pointer: the two functions and the cost. */
#define POINTER_LIBRARY(create_function, create_parameters, destroy_function, ...)                                     \
    static const struct handle_cost COST = {__VA_ARGS__};                                                              \
    LIBRARY_API int create_function create_parameters                                                                  \
    {                                                                                                                  \
        *handle = handle_new(&COST);                                                                                   \
        return *handle ? SUCCESS : ALLOC_FAILED;                                                                       \
    }                                                                                                                  \
    LIBRARY_API int destroy_function(struct handle *handle)                                                            \
    {                                                                                                                  \
        if (!handle || handle->cost != &COST)                                                                          \
            return INVALID_HANDLE;                                                                                     \
        handle_delete(handle);                                                                                         \
        return SUCCESS;                                                                                                \
    }

#ifdef LIBRARY_CUSPARSE
POINTER_LIBRARY(cusparseCreate, (struct handle * *handle), cusparseDestroy, .device_bytes = {KIB(512), 2048},
                .n_modules = 1, .n_heap_blocks = 30)
#endif

#ifdef LIBRARY_CUSOLVER
POINTER_LIBRARY(cusolverDnCreate, (struct handle * *handle), cusolverDnDestroy, .device_bytes = {MIB(2), KIB(16)},
                .pinned_bytes = 4096, .n_events = 1, .n_modules = 1, .n_heap_blocks = 40)
#endif

#ifdef LIBRARY_CURAND
POINTER_LIBRARY(curandCreateGenerator, (struct handle * *handle, int type __attribute__((unused))),
                curandDestroyGenerator, .device_bytes = {KIB(768)}, .n_heap_blocks = 15)
#endif

#ifdef LIBRARY_NCCL

struct unique_id {
    char internal[128];
};

LIBRARY_API int ncclGetUniqueId(struct unique_id *id)
{
    *id = (struct unique_id){"jmsim"};
    return SUCCESS;
}

POINTER_LIBRARY(ncclCommInitRank,
                (struct handle * *handle, int n_ranks __attribute__((unused)),
                 struct unique_id id __attribute__((unused)), int rank __attribute__((unused))),
                ncclCommDestroy, .device_bytes = {MIB(8), KIB(128)}, .pinned_bytes = MIB(1), .n_streams = 1,
                .n_events = 1, .n_modules = 1, .n_heap_blocks = 80)

LIBRARY_API int ncclCommInitAll(struct handle **handles, int n_devices, const int *devices)
{
    (void)devices;
    for (int i = 0; i < n_devices; i++) {
        handles[i] = handle_new(&COST);
        if (!handles[i])
            return ALLOC_FAILED;
    }
    return SUCCESS;
}

#endif

#ifdef LIBRARY_NVINFER

static const struct handle_cost COST = {
    .device_bytes = {KIB(256)}, .pinned_bytes = KIB(64), .n_modules = 1, .n_heap_blocks = 120};

/* What TensorRT's inline createInferRuntime calls. The real result is a C++ object. */
LIBRARY_API void *createInferRuntime_INTERNAL(void *logger, int version)
{
    (void)logger, (void)version;
    return handle_new(&COST);
}

#endif

#ifdef LIBRARY_CUFFT

/* A plan is a number; its work area is as large as the data it transforms. */
enum { MOST_PLANS = 64, INVALID_PLAN = 1, INVALID_SIZE = 8, COMPLEX_BYTES = 8 };

static const struct handle_cost COST = {.device_bytes = {KIB(32)}, .n_modules = 1, .n_heap_blocks = 35};
static struct handle *plans[MOST_PLANS];

LIBRARY_API int cufftCreate(int *plan)
{
    for (int i = 0; i < MOST_PLANS; i++) {
        if (plans[i])
            continue;
        plans[i] = handle_new(&COST);
        *plan = i;
        return plans[i] ? SUCCESS : ALLOC_FAILED;
    }
    return ALLOC_FAILED;
}

LIBRARY_API int cufftDestroy(int plan)
{
    if (plan < 0 || plan >= MOST_PLANS || !plans[plan])
        return INVALID_PLAN;
    handle_delete(plans[plan]);
    plans[plan] = NULL;
    return SUCCESS;
}

static int plan_make(int plan, int rank, const int *sizes, int batch, size_t *work_bytes)
{
    if (plan < 0 || plan >= MOST_PLANS || !plans[plan])
        return INVALID_PLAN;
    size_t bytes = (size_t)(batch > 0 ? batch : 0) * COMPLEX_BYTES;
    for (int i = 0; i < rank; i++)
        bytes *= (size_t)(sizes[i] > 0 ? sizes[i] : 0);
    if (bytes == 0)
        return INVALID_SIZE;
    if (work_bytes)
        *work_bytes = bytes;
    return cudaMalloc(&plans[plan]->device[1], bytes) == CUDA_SUCCESS ? SUCCESS : ALLOC_FAILED;
}

static int plan_new(int *plan, int rank, const int *sizes, int batch)
{
    int status = cufftCreate(plan);
    if (status != SUCCESS)
        return status;
    status = plan_make(*plan, rank, sizes, batch, NULL);
    if (status != SUCCESS)
        cufftDestroy(*plan);
    return status;
}

LIBRARY_API int cufftPlan1d(int *plan, int nx, int type, int batch)
{
    (void)type;
    return plan_new(plan, 1, &nx, batch);
}

LIBRARY_API int cufftPlan2d(int *plan, int nx, int ny, int type)
{
    (void)type;
    return plan_new(plan, 2, (int[]){nx, ny}, 1);
}

LIBRARY_API int cufftPlan3d(int *plan, int nx, int ny, int nz, int type)
{
    (void)type;
    return plan_new(plan, 3, (int[]){nx, ny, nz}, 1);
}

LIBRARY_API int cufftPlanMany(int *plan, int rank, int *n, int *inembed, int istride, int idist, int *onembed,
                              int ostride, int odist, int type, int batch)
{
    (void)inembed, (void)istride, (void)idist, (void)onembed, (void)ostride, (void)odist;
    (void)type;
    return plan_new(plan, rank, n, batch);
}

LIBRARY_API int cufftMakePlan1d(int plan, int nx, int type, int batch, size_t *work_bytes)
{
    (void)type;
    return plan_make(plan, 1, &nx, batch, work_bytes);
}

LIBRARY_API int cufftMakePlanMany(int plan, int rank, int *n, int *inembed, int istride, int idist, int *onembed,
                                  int ostride, int odist, int type, int batch, size_t *work_bytes)
{
    (void)inembed, (void)istride, (void)idist, (void)onembed, (void)ostride, (void)odist;
    (void)type;
    return plan_make(plan, rank, n, batch, work_bytes);
}

#endif
