/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernels whose code the driver loads late (CUDA_MODULE_LOADING=LAZY): each way to need it, in use_kernel, with a point
 * before and after.
 *
 *   cuda_lazy WAY [N]    launch (N times), launch-ex, function, module, graph, or graph-launch (without an upload)
 *
 * Functions are those that cuGetProcAddress gives. The last line has the nanoseconds of a launch. */
#include <string.h>
#include <time.h>

#include "program.h"

static void *find(const char *name)
{
    void *function = NULL;
    int status;
    MUST(cuGetProcAddress_v2(name, &function, 12040, CU_GET_PROC_ADDRESS_DEFAULT, &status));
    MUST(!function);
    return function;
}

#define FIND(name) ((__typeof__(&name))find(#name))

static CUlibrary library;
static CUmodule module;
static CUfunction function;
static CUkernel kernel;
static CUgraph graph;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static NOINLINE void use_kernel(const char *way, long n)
{
    CUgraphExec executable;
    if (strcmp(way, "launch") == 0) {
        __typeof__(&cuLaunchKernel) launch = FIND(cuLaunchKernel);
        double begin = now();
        for (long i = 0; i < n; i++)
            MUST(launch(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
        if (n > 1)
            printf("nanoseconds %.0f\n", (now() - begin) / (double)n);
    } else if (strcmp(way, "launch-ex") == 0) {
        MUST(FIND(cuLaunchKernelEx)(&graph, function, NULL, NULL));
    } else if (strcmp(way, "function") == 0) {
        MUST(FIND(cuKernelGetFunction)(&function, kernel));
    } else if (strcmp(way, "module") == 0) {
        MUST(FIND(cuLibraryGetModule)(&module, library));
    } else {
        MUST(FIND(cuGraphInstantiateWithFlags)(&executable, graph, 0));
        if (strcmp(way, "graph") == 0)
            MUST(FIND(cuGraphUpload)(executable, NULL));
        MUST(FIND(cuGraphLaunch)(executable, NULL));
    }
}

int main(int argc, char **argv)
{
    CUcontext context;
    void *node;
    if (argc < 2)
        return 2;
    MUST(cuInit(0));
    MUST(cuCtxCreate_v2(&context, 0, 0));
    MUST(cuModuleLoadData(&module, "kernels"));
    MUST(cuModuleGetFunction(&function, module, "kernel"));
    MUST(cuLibraryLoadData(&library, "kernels", NULL, NULL, 0, NULL, NULL, 0));
    MUST(cuLibraryGetKernel(&kernel, library, "kernel"));
    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &function));
    print_stats("loaded");
    use_kernel(argv[1], argc > 2 ? atol(argv[2]) : 1);
    print_stats("used");
    fflush(stdout);
    _exit(0);
}
