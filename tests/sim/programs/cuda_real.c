/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program of a few runtime calls, plain declarations only, that links with any runtime: the
 * simulation's, or NVIDIA's own on a machine that has its library but no driver, where every call must
 * fail alike with and without a profiler. Prints what each call returned and nothing else. */
#include <stddef.h>
#include <stdio.h>

int cudaGetDeviceCount(int *count);
int cudaMalloc(void **pointer, size_t bytes);
int cudaMallocHost(void **pointer, size_t bytes);
int cudaMallocManaged(void **pointer, size_t bytes, unsigned int flags);
int cudaMallocAsync(void **pointer, size_t bytes, void *stream);
int cudaFree(void *pointer);
int cudaFreeHost(void *pointer);
int cudaFreeAsync(void *pointer, void *stream);
int cudaGetLastError(void);
const char *cudaGetErrorName(int error);

static int say(const char *call, int error)
{
    printf("%s: %d %s\n", call, error, cudaGetErrorName(error));
    return error;
}

int main(void)
{
    void *device = NULL, *host = NULL, *managed = NULL, *pooled = NULL;
    int count = -1;
    say("cudaGetDeviceCount", cudaGetDeviceCount(&count));
    printf("devices %d\n", count);
    say("cudaMalloc", cudaMalloc(&device, 1000003));
    say("cudaMallocHost", cudaMallocHost(&host, 300007));
    say("cudaMallocManaged", cudaMallocManaged(&managed, 200003, 1));
    say("cudaMallocAsync", cudaMallocAsync(&pooled, 700001, NULL));
    printf("pointers %d\n", !!device + !!host + !!managed + !!pooled);
    say("cudaGetLastError", cudaGetLastError());
    if (pooled)
        say("cudaFreeAsync", cudaFreeAsync(pooled, NULL));
    if (managed)
        say("cudaFree managed", cudaFree(managed));
    if (host)
        say("cudaFreeHost", cudaFreeHost(host));
    say("cudaFree", cudaFree(device));
    return 0;
}
