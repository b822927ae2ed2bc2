/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The simulated cuDNN 8: the handle, descriptors, and a forward convolution that computes nothing,
 * checks its workspace, and loads its kernels on the first call, as the real one does lazily. */
#include "library.h"

enum { SUCCESS = 0, ALLOC_FAILED = 2, BAD_PARAM = 3, CUDNN_VERSION = 8201 };

/* Enough for an accumulator of each output channel and a tile of the input. */
#define WORKSPACE_TILE 8

static const struct handle_cost HANDLE_COST = {CUDNN_HANDLE};

struct descriptor {
    int n, c, h, w;
};

static CUmodule kernels; /* loaded by the first convolution, for good */

LIBRARY_API size_t cudnnGetVersion(void)
{
    return CUDNN_VERSION;
}

LIBRARY_API const char *cudnnGetErrorString(int status)
{
    static const char *const names[] = {"CUDNN_STATUS_SUCCESS", "CUDNN_STATUS_NOT_INITIALIZED",
                                        "CUDNN_STATUS_ALLOC_FAILED", "CUDNN_STATUS_BAD_PARAM"};
    return status >= 0 && status <= BAD_PARAM ? names[status] : "CUDNN_UNKNOWN_STATUS";
}

LIBRARY_API int cudnnCreate(struct handle **handle)
{
    if (!handle)
        return BAD_PARAM;
    *handle = handle_new(&HANDLE_COST);
    return *handle ? SUCCESS : ALLOC_FAILED;
}

LIBRARY_API int cudnnDestroy(struct handle *handle)
{
    if (!handle || handle->cost != &HANDLE_COST)
        return BAD_PARAM;
    handle_delete(handle);
    return SUCCESS;
}

LIBRARY_API int cudnnSetStream(struct handle *handle, cudaStream_t stream)
{
    if (!handle)
        return BAD_PARAM;
    handle->stream = stream;
    return SUCCESS;
}

/* Descriptors. */

static int descriptor_new(struct descriptor **descriptor)
{
    if (!descriptor)
        return BAD_PARAM;
    *descriptor = calloc(1, sizeof **descriptor);
    if (!*descriptor)
        return ALLOC_FAILED;
    jmsim_count_heap((int64_t)sizeof **descriptor, 1);
    return SUCCESS;
}

static int descriptor_delete(struct descriptor *descriptor)
{
    if (descriptor)
        jmsim_count_heap(-(int64_t)sizeof *descriptor, -1);
    free(descriptor);
    return SUCCESS;
}

static int descriptor_set(struct descriptor *descriptor, int n, int c, int h, int w)
{
    if (!descriptor || n <= 0 || c <= 0 || h <= 0 || w <= 0)
        return BAD_PARAM;
    *descriptor = (struct descriptor){n, c, h, w};
    return SUCCESS;
}

LIBRARY_API int cudnnCreateTensorDescriptor(struct descriptor **descriptor)
{
    return descriptor_new(descriptor);
}

LIBRARY_API int cudnnDestroyTensorDescriptor(struct descriptor *descriptor)
{
    return descriptor_delete(descriptor);
}

LIBRARY_API int cudnnSetTensor4dDescriptor(struct descriptor *descriptor, int format, int type, int n, int c, int h,
                                           int w)
{
    (void)format, (void)type;
    return descriptor_set(descriptor, n, c, h, w);
}

LIBRARY_API int cudnnCreateFilterDescriptor(struct descriptor **descriptor)
{
    return descriptor_new(descriptor);
}

LIBRARY_API int cudnnDestroyFilterDescriptor(struct descriptor *descriptor)
{
    return descriptor_delete(descriptor);
}

LIBRARY_API int cudnnSetFilter4dDescriptor(struct descriptor *descriptor, int type, int format, int k, int c, int h,
                                           int w)
{
    (void)format, (void)type;
    return descriptor_set(descriptor, k, c, h, w);
}

LIBRARY_API int cudnnCreateConvolutionDescriptor(struct descriptor **descriptor)
{
    return descriptor_new(descriptor);
}

LIBRARY_API int cudnnDestroyConvolutionDescriptor(struct descriptor *descriptor)
{
    return descriptor_delete(descriptor);
}

LIBRARY_API int cudnnSetConvolution2dDescriptor(struct descriptor *descriptor, int pad_h, int pad_w, int stride_h,
                                                int stride_w, int dilation_h, int dilation_w, int mode, int type)
{
    (void)pad_h, (void)pad_w, (void)mode, (void)type;
    return descriptor_set(descriptor, stride_h, stride_w, dilation_h, dilation_w);
}

/* Convolution. */

static size_t workspace_bytes(const struct descriptor *input, const struct descriptor *filter)
{
    size_t tile = (size_t)filter->c * (size_t)filter->h * (size_t)filter->w * WORKSPACE_TILE;
    return ((size_t)input->n * (size_t)filter->n + tile) * sizeof(float);
}

LIBRARY_API int cudnnGetConvolutionForwardWorkspaceSize(struct handle *handle, const struct descriptor *input,
                                                        const struct descriptor *filter,
                                                        const struct descriptor *convolution,
                                                        const struct descriptor *output, int algorithm, size_t *bytes)
{
    (void)algorithm;
    if (!handle || !input || !filter || !convolution || !output || !bytes)
        return BAD_PARAM;
    *bytes = workspace_bytes(input, filter);
    return SUCCESS;
}

LIBRARY_API int cudnnConvolutionForward(struct handle *handle, const void *alpha, const struct descriptor *input,
                                        const void *x, const struct descriptor *filter, const void *weights,
                                        const struct descriptor *convolution, int algorithm, void *workspace,
                                        size_t bytes, const void *beta, const struct descriptor *output, void *y)
{
    static const char image[] = "convolution kernels";
    (void)alpha, (void)algorithm, (void)beta;
    if (!handle || !input || !x || !filter || !weights || !convolution || !output || !y || !workspace ||
        bytes < workspace_bytes(input, filter))
        return BAD_PARAM;
    if (!kernels && cuModuleLoadData(&kernels, image) != CUDA_SUCCESS)
        return ALLOC_FAILED;
    return SUCCESS;
}
