/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls of start-up functions far more often than anyone wants to read one by one: 300 events by the driver, 200
 * streams by the runtime, which each contain a call of the driver; then one call that fails. */
#include <stdio.h>
#include <stdlib.h>

int cuInit(unsigned int flags);
int cuCtxCreate_v2(void **context, unsigned int flags, int device);
int cuEventCreate(void **event, unsigned int flags);
int cuModuleLoad(void **module, const char *path);
int cudaStreamCreateWithFlags(void **stream, unsigned int flags);

int main(void)
{
    void *handle;
    int failed = 0;
    failed += cuInit(0) != 0;
    failed += cuCtxCreate_v2(&handle, 0, 0) != 0;
    for (int i = 0; i < 300; i++)
        failed += cuEventCreate(&handle, 0) != 0;
    for (int i = 0; i < 200; i++)
        failed += cudaStreamCreateWithFlags(&handle, 1) != 0;
    printf("failed %d, no module: %d\n", failed, cuModuleLoad(&handle, "/nonexistent"));
    return 0;
}
