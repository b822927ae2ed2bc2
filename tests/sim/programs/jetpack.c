/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program that is the same on every JetPack, and costs what the JetPack makes of it: data and
 * weights, a module of its own, cuBLAS, cuDNN, convolutions, and buffers that are gone at the end. It
 * prints the simulation's figures at its peak and when it is done. */
#include <unistd.h>

#include "program.h"

int cublasCreate_v2(void **handle);
int cudnnCreate(void **handle);
int cudnnCreateTensorDescriptor(void **descriptor);
int cudnnSetTensor4dDescriptor(void *descriptor, int format, int type, int n, int c, int h, int w);
int cudnnCreateFilterDescriptor(void **descriptor);
int cudnnSetFilter4dDescriptor(void *descriptor, int type, int format, int k, int c, int h, int w);
int cudnnCreateConvolutionDescriptor(void **descriptor);
int cudnnGetConvolutionForwardWorkspaceSize(void *handle, void *input, void *filter, void *convolution, void *output,
                                            int algorithm, size_t *bytes);
int cudnnConvolutionForward(void *handle, const void *alpha, void *input, const void *x, void *filter,
                            const void *weights, void *convolution, int algorithm, void *workspace, size_t bytes,
                            const void *beta, void *output, void *y);

enum { N_BATCHES = 4, BATCH_BYTES = 786432, WEIGHT_BYTES = 5000000, ACTIVATION_BYTES = 3000000 };

static void *batches[N_BATCHES];
static void *weights, *activations, *workspace, *cublas, *cudnn;
static void *input, *filter, *convolution, *output;

static NOINLINE void load_data(void)
{
    for (int i = 0; i < N_BATCHES; i++)
        batches[i] = malloc(BATCH_BYTES);
}

static NOINLINE void load_model(void)
{
    CUmodule module;
    MUST(cudaMalloc(&weights, WEIGHT_BYTES));
    MUST(cuModuleLoadData(&module, "the program's kernels"));
}

static NOINLINE void load_libraries(void)
{
    MUST(cublasCreate_v2(&cublas));
    MUST(cudnnCreate(&cudnn));
}

static NOINLINE void convolve(void)
{
    static const float one = 1;
    size_t bytes;
    MUST(cudnnCreateTensorDescriptor(&input));
    MUST(cudnnSetTensor4dDescriptor(input, 0, 0, 64, 3, 32, 32));
    MUST(cudnnCreateFilterDescriptor(&filter));
    MUST(cudnnSetFilter4dDescriptor(filter, 0, 0, 32, 3, 3, 3));
    MUST(cudnnCreateConvolutionDescriptor(&convolution));
    MUST(cudnnCreateTensorDescriptor(&output));
    MUST(cudnnSetTensor4dDescriptor(output, 0, 0, 64, 32, 32, 32));
    MUST(cudaMalloc(&activations, ACTIVATION_BYTES));
    MUST(cudnnGetConvolutionForwardWorkspaceSize(cudnn, input, filter, convolution, output, 1, &bytes));
    MUST(cudaMalloc(&workspace, bytes));
    MUST(cudnnConvolutionForward(cudnn, &one, input, activations, filter, weights, convolution, 1, workspace, bytes,
                                 &one, output, activations));
}

int main(void)
{
    load_data();
    load_model();
    load_libraries();
    convolve();
    print_stats("convolved");
    MUST(cudaFree(workspace));
    MUST(cudaFree(activations));
    print_stats("done");
    fflush(stdout);
    _exit(0); /* nothing is freed: not by the program, nor by its libraries */
}
