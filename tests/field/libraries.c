/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions of CUDA's libraries that succeed and compute nothing, as kernels of the simulation do. build-libraries
 * compiles this file once per library, with -DLIBRARY_<NAME>; handles are those of ../sim/libraries. */

#define SUCCEEDS(name)                                                                                                 \
    __attribute__((visibility("default"))) int name(void);                                                             \
    int name(void)                                                                                                     \
    {                                                                                                                  \
        return 0;                                                                                                      \
    }

#ifdef LIBRARY_CUBLAS

SUCCEEDS(cublasSetMathMode)
SUCCEEDS(cublasSgemm_v2)
SUCCEEDS(cublasDgemm_v2)
SUCCEEDS(cublasGemmEx)
SUCCEEDS(cublasGemmBatchedEx)
SUCCEEDS(cublasGemmStridedBatchedEx)
SUCCEEDS(cublasSgemmBatched)
SUCCEEDS(cublasSgemmStridedBatched)
SUCCEEDS(cublasStrsmBatched)

__attribute__((visibility("default"))) const char *cublasGetStatusString(int status);
const char *cublasGetStatusString(int status)
{
    return status ? "simulated failure" : "CUBLAS_STATUS_SUCCESS";
}

#endif

#ifdef LIBRARY_CUBLASLT

SUCCEEDS(cublasLtCreate)
SUCCEEDS(cublasLtDestroy)

#endif

#ifdef LIBRARY_NVML

SUCCEEDS(nvmlInit_v2)
SUCCEEDS(nvmlShutdown)
SUCCEEDS(nvmlDeviceGetHandleByUUID)
SUCCEEDS(nvmlDeviceSetCpuAffinity)

__attribute__((visibility("default"))) int nvmlSystemGetDriverVersion(char *version, unsigned int length);
int nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    static const char VERSION[] = "580.65.06";
    if (length < sizeof VERSION)
        return 7; /* NVML_ERROR_INSUFFICIENT_SIZE */
    __builtin_memcpy(version, VERSION, sizeof VERSION);
    return 0;
}

__attribute__((visibility("default"))) const char *nvmlErrorString(int status);
const char *nvmlErrorString(int status)
{
    return status ? "simulated failure" : "Success";
}

#endif
