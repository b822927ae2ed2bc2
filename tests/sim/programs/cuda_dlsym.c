/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program that is linked to nothing of CUDA and reaches all of it at run time, as PyTorch's driver
 * bindings and plug-ins do:
 *
 *   cuda_dlsym runtime       the runtime, by dlsym
 *   cuda_dlsym driver        the driver, by dlsym
 *   cuda_dlsym proc          the driver, by cuGetProcAddress
 *   cuda_dlsym proc_v2       the driver, by cuGetProcAddress_v2
 *
 * It prints "expect KIND BYTES" for what is live when it ends. */
#include <dlfcn.h>
#include <string.h>

#include "program.h"

enum { DEVICE_BYTES = 1000003, HOST_BYTES = 300007, POOL_BYTES = 700001 };

static void *library;
static const char *way;

static void *find(const char *name, const char *base)
{
    void *function = NULL;
    if (strcmp(way, "proc") == 0) {
        __typeof__(&cuGetProcAddress) get;
        *(void **)&get = dlsym(library, "cuGetProcAddress");
        MUST(get(base, &function, 12000, CU_GET_PROC_ADDRESS_DEFAULT));
    } else if (strcmp(way, "proc_v2") == 0) {
        __typeof__(&cuGetProcAddress_v2) get;
        int status;
        *(void **)&get = dlsym(library, "cuGetProcAddress_v2");
        MUST(get(base, &function, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
        MUST(status != CU_GET_PROC_ADDRESS_SUCCESS);
    } else {
        function = dlsym(library, name);
    }
    if (!function) {
        fprintf(stderr, "cuda_dlsym: no %s\n", name);
        exit(1);
    }
    return function;
}

#define FIND(name, base)                                                                                               \
    __typeof__(&name) p_##name;                                                                                        \
    *(void **)&p_##name = find(#name, base)

static NOINLINE void use_runtime(void)
{
    FIND(cudaMalloc, "");
    FIND(cudaMallocHost, "");
    FIND(cudaMallocAsync, "");
    FIND(cudaFree, "");
    void *pointer;
    MUST(p_cudaMalloc(&pointer, 4096));
    MUST(p_cudaFree(pointer));
    MUST(p_cudaMalloc(&pointer, DEVICE_BYTES));
    MUST(p_cudaMallocHost(&pointer, HOST_BYTES));
    MUST(p_cudaMallocAsync(&pointer, POOL_BYTES, NULL));
}

static NOINLINE void use_driver(void)
{
    FIND(cuInit, "cuInit");
    FIND(cuCtxCreate_v2, "cuCtxCreate");
    FIND(cuMemAlloc_v2, "cuMemAlloc");
    FIND(cuMemHostAlloc, "cuMemHostAlloc");
    FIND(cuMemAllocAsync, "cuMemAllocAsync");
    FIND(cuMemFree_v2, "cuMemFree");
    CUcontext context;
    CUdeviceptr address;
    void *pointer;
    MUST(p_cuInit(0));
    /* From CUDA 11.4 to 12.4 the base name means _v3, which takes two more arguments. */
    if (strncmp(way, "proc", 4) == 0) {
        __typeof__(&cuCtxCreate_v3) create;
        *(void **)&create = (void *)p_cuCtxCreate_v2;
        MUST(create(&context, NULL, 0, 0, 0));
    } else {
        MUST(p_cuCtxCreate_v2(&context, 0, 0));
    }
    MUST(p_cuMemAlloc_v2(&address, 4096));
    MUST(p_cuMemFree_v2(address));
    MUST(p_cuMemAlloc_v2(&address, DEVICE_BYTES));
    MUST(p_cuMemHostAlloc(&pointer, HOST_BYTES, 0));
    MUST(p_cuMemAllocAsync(&address, POOL_BYTES, NULL));
}

int main(int argc, char **argv)
{
    static const char *const ways[] = {"runtime", "driver", "proc", "proc_v2"};
    int chosen = -1;
    for (int i = 0; argc == 2 && i < 4; i++)
        if (strcmp(argv[1], ways[i]) == 0)
            chosen = i;
    if (chosen < 0) {
        fprintf(stderr, "usage: cuda_dlsym runtime|driver|proc|proc_v2\n");
        return 2;
    }
    way = ways[chosen];
    library = dlopen(chosen == 0 ? "libcudart.so.10.2" : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "cuda_dlsym: %s\n", dlerror());
        return 1;
    }
    if (chosen == 0)
        use_runtime();
    else
        use_driver();
    printf("expect device %d\nexpect pinned %d\nexpect pool %d\n", DEVICE_BYTES, HOST_BYTES, POOL_BYTES);
    return 0;
}
