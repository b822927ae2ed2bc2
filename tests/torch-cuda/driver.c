/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Driver functions that PyTorch looks up, all at once and insisting on each, before it uses any:
 * linked with the driver of tests/sim, they say that they are not supported. */
#include "../sim/cuda_abi.h"

#define NOT_SUPPORTED(name)                                                                                            \
    __attribute__((visibility("default"))) CUresult name(void)                                                         \
    {                                                                                                                  \
        return CUDA_ERROR_NOT_SUPPORTED;                                                                               \
    }

NOT_SUPPORTED(cuMulticastAddDevice)
NOT_SUPPORTED(cuMulticastBindMem)
NOT_SUPPORTED(cuMulticastCreate)
NOT_SUPPORTED(cuStreamWriteValue32)
