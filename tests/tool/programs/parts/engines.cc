// SPDX-License-Identifier: GPL-2.0-or-later
//
// Builds a plan, and runs two engines: one has its activations from TensorRT, one from the program.
#include "NvInfer.h"

extern "C" int cudaMalloc(void **, std::size_t);

using namespace nvinfer1;

static IExecutionContext *first(IRuntime *runtime)
{
    ICudaEngine *engine = runtime->deserializeCudaEngine(nullptr, 8 << 20);
    return engine->createExecutionContext();
}

static IExecutionContext *second(IRuntime *runtime)
{
    ICudaEngine *engine = runtime->deserializeCudaEngine(nullptr, 4 << 20);
    IExecutionContext *context = engine->createExecutionContextWithoutDeviceMemory();
    void *memory;
    cudaMalloc(&memory, engine->getDeviceMemorySize());
    context->setDeviceMemory(memory);
    return context;
}

int main()
{
    static_cast<IBuilder *>(createInferBuilder_INTERNAL(nullptr, 1000))->buildSerializedNetwork();
    IRuntime *runtime = static_cast<IRuntime *>(createInferRuntime_INTERNAL(nullptr, 1000));
    IExecutionContext *contexts[] = {first(runtime), second(runtime)};
    for (IExecutionContext *context : contexts)
        context->enqueueV3(nullptr);
}
