// SPDX-License-Identifier: GPL-2.0-or-later
//
// Functions that mumax3 and hashcat call and the memory simulation lacks. Compiling, linking, transforms and random
// numbers do nothing; each program compiles, to a text that the simulation takes for a module. Device memory is memory
// of the process. Built as a library that is linked to the simulation's driver, to be preloaded, or to be found as
// libcuda.so.
//
// It also counts what the program gets from cuMemAlloc: the bytes in use, and the most of them, in the file that
// FIELD_COUNTS names, however the program ends.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NOTHING(name)                                                                                                  \
    int name(void);                                                                                                    \
    int name(void)                                                                                                     \
    {                                                                                                                  \
        return 0;                                                                                                      \
    }
NOTHING(cufftDestroy)
NOTHING(cufftExecC2C)
NOTHING(cufftExecC2R)
NOTHING(cufftExecD2Z)
NOTHING(cufftExecR2C)
NOTHING(cufftExecZ2D)
NOTHING(cufftExecZ2Z)
NOTHING(cufftPlan1d)
NOTHING(cufftPlan2d)
NOTHING(cufftPlan3d)
NOTHING(cufftPlanMany)
NOTHING(cufftSetStream)
NOTHING(curandCreateGenerator)
NOTHING(curandGenerateNormal)
NOTHING(curandSetPseudoRandomGeneratorSeed)
NOTHING(nvrtcAddNameExpression)
NOTHING(nvrtcCompileProgram)
NOTHING(nvrtcCreateProgram)
NOTHING(nvrtcDestroyProgram)
NOTHING(nvrtcGetErrorString)
NOTHING(nvrtcGetLoweredName)
NOTHING(nvrtcGetProgramLog)
NOTHING(cuFuncSetAttribute)
NOTHING(cuFuncSetSharedMemConfig)

static const char module[] = ".version 7.0\n.target sm_70\n.address_size 64\n";

int nvrtcVersion(int *major, int *minor);
int nvrtcVersion(int *major, int *minor)
{
    *major = 12;
    *minor = 4;
    return 0;
}

int nvrtcGetPTXSize(void *program, size_t *n);
int nvrtcGetPTXSize(void *program, size_t *n)
{
    (void)program;
    *n = sizeof module;
    return 0;
}

int nvrtcGetPTX(void *program, char *text);
int nvrtcGetPTX(void *program, char *text)
{
    (void)program;
    memcpy(text, module, sizeof module);
    return 0;
}

int nvrtcGetProgramLogSize(void *program, size_t *n);
int nvrtcGetProgramLogSize(void *program, size_t *n)
{
    (void)program;
    *n = 1;
    return 0;
}

int cuMemcpy(void *to, const void *from, size_t n);
int cuMemcpy(void *to, const void *from, size_t n)
{
    memmove(to, from, n);
    return 0;
}

int cuMemcpyAsync(void *to, const void *from, size_t n, void *stream);
int cuMemcpyAsync(void *to, const void *from, size_t n, void *stream)
{
    (void)stream;
    return cuMemcpy(to, from, n);
}

int cuMemcpyDtoDAsync_v2(void *to, const void *from, size_t n, void *stream);
int cuMemcpyDtoDAsync_v2(void *to, const void *from, size_t n, void *stream)
{
    return cuMemcpyAsync(to, from, n, stream);
}

int cuModuleGetGlobal_v2(void **at, size_t *n, void *module_, const char *name);
int cuModuleGetGlobal_v2(void **at, size_t *n, void *module_, const char *name)
{
    static char global[1 << 20];
    (void)module_, (void)name;
    *at = global;
    *n = sizeof global;
    return 0;
}
// Attributes of the device by which hashcat refuses it: shared memory of a block, constant memory.
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    int (*next)(int *, int, int) = (int (*)(int *, int, int))dlsym(RTLD_NEXT, "cuDeviceGetAttribute");
    if (attribute != 97 && attribute != 9)
        return next(value, attribute, device);
    *value = attribute == 97 ? 48 << 10 : 64 << 10;
    return 0;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    size_t now, most;
} * counts;
static struct {
    void *at;
    size_t n;
} blocks[100000];

__attribute__((constructor)) static void open_counts(void)
{
    const char *name = getenv("FIELD_COUNTS");
    const int file = name ? open(name, O_RDWR | O_CREAT, 0644) : -1;
    if (file >= 0 && ftruncate(file, sizeof *counts) == 0)
        counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}

static void count(void *old, void *new, size_t n)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; counts && i < sizeof blocks / sizeof blocks[0]; i++)
        if (blocks[i].at == old) {
            counts->now += n - blocks[i].n;
            blocks[i].at = new;
            blocks[i].n = n;
            break;
        }
    if (counts && counts->most < counts->now)
        counts->most = counts->now;
    pthread_mutex_unlock(&lock);
}

int cuMemAlloc_v2(void **at, size_t n);
int cuMemAlloc_v2(void **at, size_t n)
{
    int (*next)(void **, size_t) = (int (*)(void **, size_t))dlsym(RTLD_NEXT, "cuMemAlloc_v2");
    const int status = next(at, n);
    if (status == 0)
        count(NULL, *at, n);
    return status;
}

int cuMemFree_v2(void *at);
int cuMemFree_v2(void *at)
{
    int (*next)(void *) = (int (*)(void *))dlsym(RTLD_NEXT, "cuMemFree_v2");
    const int status = next(at);
    if (status == 0 && at)
        count(at, NULL, 0);
    return status;
}
