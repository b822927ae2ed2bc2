/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Something of everything: heap, device, managed and pinned memory, arrays, pools, cuMemCreate, cuDNN,
 * cuBLAS, a context. It prints the simulation's figures while all of it is live, and "ours BYTES BLOCKS",
 * what the program itself has on the heap besides; then it ends as told:
 *
 *   cuda_mixed exit|_exit|return|free
 *
 * Figures are written without stdio, so that printing them changes nothing. */
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "program.h"

int cudnnCreate(void **handle);
int cudnnDestroy(void *handle);
int cublasCreate_v2(void **handle);
int cublasDestroy_v2(void *handle);

enum { N_BATCHES = 8, BATCH_BYTES = 393216, N_NODES = 500, NODE_BYTES = 72 };

static void *batches[N_BATCHES], *nodes[N_NODES];
static void *weights, *activations, *shared, *staging, *scratch, *cudnn, *cublas;
static cudaArray_t texture;
static CUmemGenericAllocationHandle segment;
static size_t our_bytes, our_blocks;

static void say(const char *format, ...)
{
    char line[128];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    MUST(write(STDOUT_FILENO, line, (size_t)length) != length);
}

static NOINLINE void load_data(void)
{
    our_bytes = (size_t)N_BATCHES * BATCH_BYTES + (size_t)N_NODES * NODE_BYTES;
    our_blocks = N_BATCHES + N_NODES;
    for (int i = 0; i < N_BATCHES; i++) {
        batches[i] = malloc(BATCH_BYTES);
        memset(batches[i], i, BATCH_BYTES);
    }
    for (int i = 0; i < N_NODES; i++)
        nodes[i] = malloc(NODE_BYTES);
}

static NOINLINE void load_model(void)
{
    static const struct cudaChannelFormatDesc bytes = {8, 8, 8, 8, cudaChannelFormatKindUnsigned};
    static const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                   .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    MUST(cudaMalloc(&weights, 12345678));
    MUST(cudaMalloc(&activations, 54321));
    MUST(cudaMallocManaged(&shared, 1234567, CU_MEM_ATTACH_GLOBAL));
    MUST(cudaMallocHost(&staging, BATCH_BYTES));
    MUST(cudaMallocAsync(&scratch, 2222222, NULL));
    MUST(cudaMallocArray(&texture, &bytes, 256, 256, 0));
    MUST(cuMemCreate(&segment, MIB(2), &properties, 0));
}

static NOINLINE void load_libraries(void)
{
    MUST(cudnnCreate(&cudnn));
    MUST(cublasCreate_v2(&cublas));
}

static NOINLINE void train(void)
{
    static unsigned char back[BATCH_BYTES];
    for (int i = 0; i < N_BATCHES; i++) {
        memcpy(staging, batches[i], BATCH_BYTES);
        MUST(cudaMemcpy(weights, staging, BATCH_BYTES, cudaMemcpyHostToDevice));
        MUST(cudaMemcpy(back, weights, BATCH_BYTES, cudaMemcpyDeviceToHost));
        MUST(back[0] != i || back[BATCH_BYTES - 1] != i);
    }
}

static void print_all(void)
{
    struct jmsim_stats now;
    jmsim_stats(&now);
#define SAY_AMOUNT(kind)                                                                                               \
    say(#kind " %llu %llu\n", (unsigned long long)now.kind.bytes, (unsigned long long)now.kind.blocks)
    SAY_AMOUNT(device);
    SAY_AMOUNT(array);
    SAY_AMOUNT(managed);
    SAY_AMOUNT(pinned);
    SAY_AMOUNT(pool);
    SAY_AMOUNT(vmm);
    SAY_AMOUNT(imported);
    SAY_AMOUNT(heap);
#undef SAY_AMOUNT
    say("pool_reserved %llu\n", (unsigned long long)now.pool_reserved_bytes);
    say("ours %zu %zu\n", our_bytes, our_blocks);
}

static void free_all(void)
{
    MUST(cublasDestroy_v2(cublas));
    MUST(cudnnDestroy(cudnn));
    MUST(cuMemRelease(segment));
    MUST(cudaFreeArray(texture));
    MUST(cudaFreeAsync(scratch, NULL));
    MUST(cudaFreeHost(staging));
    MUST(cudaFree(shared));
    MUST(cudaFree(activations));
    MUST(cudaFree(weights));
    MUST(cudaDeviceSynchronize());
    for (int i = 0; i < N_NODES; i++)
        free(nodes[i]);
    for (int i = 0; i < N_BATCHES; i++)
        free(batches[i]);
    our_bytes = our_blocks = 0;
}

int main(int argc, char **argv)
{
    const char *end = argc == 2 ? argv[1] : "";
    load_data();
    load_model();
    load_libraries();
    train();
    print_all();
    if (strcmp(end, "_exit") == 0)
        _exit(7);
    if (strcmp(end, "exit") == 0)
        exit(7);
    if (strcmp(end, "return") == 0)
        return 7;
    if (strcmp(end, "free") == 0) {
        free_all();
        print_all();
        return 0;
    }
    static const char usage[] = "usage: cuda_mixed exit|_exit|return|free\n";
    return write(STDERR_FILENO, usage, sizeof usage - 1) < 0 ? 1 : 2;
}
