/* SPDX-License-Identifier: GPL-2.0-or-later */
/* usage: onnx MODEL
 * Runs a model (onnx.py) by ONNX Runtime's CUDA provider, and prints what the provider's arena says of itself after the
 * session was made and after the runs, where it sets marks. */
#include <jmassif/jmassif.h>
#include <onnxruntime_c_api.h>
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 256, RUNS = 4 };

static const OrtApi *api;

static void check(OrtStatus *status)
{
    if (!status)
        return;
    fprintf(stderr, "onnx: %s\n", api->GetErrorMessage(status));
    exit(1);
}

static void print_arena(const char *when, const OrtAllocator *arena)
{
    static const char *const FIGURES[] = {"InUse", "TotalAllocated", "NumArenaExtensions"};
    OrtKeyValuePairs *stats;
    check(api->AllocatorGetStats(arena, &stats));
    JMASSIF_MARK(when);
    printf("%s: {", when);
    for (size_t i = 0; i < sizeof FIGURES / sizeof *FIGURES; i++)
        printf("%s\"%s\": %s", i ? ", " : "", FIGURES[i], api->GetKeyValue(stats, FIGURES[i]));
    puts("}");
    api->ReleaseKeyValuePairs(stats);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    OrtEnv *env;
    OrtSessionOptions *options;
    OrtCUDAProviderOptionsV2 *cuda;
    OrtSession *session;
    api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
    check(api->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "field", &env));
    check(api->CreateSessionOptions(&options));
    check(api->SetIntraOpNumThreads(options, 1));
    check(api->CreateCUDAProviderOptions(&cuda));
    const char *const keys[] = {"arena_extend_strategy"}, *const values[] = {"kSameAsRequested"};
    check(api->UpdateCUDAProviderOptions(cuda, keys, values, 1));
    check(api->SessionOptionsAppendExecutionProvider_CUDA_V2(options, cuda));
    check(api->CreateSession(env, argv[1], options, &session));

    OrtMemoryInfo *on_device, *on_host;
    OrtAllocator *arena;
    check(api->CreateMemoryInfo("Cuda", OrtDeviceAllocator, 0, OrtMemTypeDefault, &on_device));
    check(api->CreateAllocator(session, on_device, &arena));
    print_arena("session", arena);

    static float input[WIDTH];
    const int64_t shape[] = {1, WIDTH};
    OrtValue *given;
    check(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &on_host));
    check(api->CreateTensorWithDataAsOrtValue(on_host, input, sizeof input, shape, 2,
                                              ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &given));
    const char *const inputs[] = {"x0"}, *const outputs[] = {"x3"};
    for (int run = 0; run < RUNS; run++) {
        OrtValue *result = NULL;
        float *numbers;
        input[run] = 1;
        check(api->Run(session, NULL, inputs, (const OrtValue *const *)&given, 1, outputs, 1, &result));
        check(api->GetTensorMutableData(result, (void **)&numbers));
        printf("result: %g %g\n", (double)numbers[0], (double)numbers[WIDTH - 1]);
        api->ReleaseValue(result);
    }
    print_arena("runs", arena);
    api->ReleaseAllocator(arena);
    api->ReleaseValue(given);
    api->ReleaseSession(session);
    api->ReleaseCUDAProviderOptions(cuda);
    api->ReleaseSessionOptions(options);
    api->ReleaseEnv(env);
    return 0;
}
