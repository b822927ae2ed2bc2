// SPDX-License-Identifier: GPL-2.0-or-later
//
// The library behind NvInfer.h; built hidden and stripped, so that it exports what the real one does. An engine's
// weights take as many bytes as its plan, activations half of that, a run's workspace a quarter, a build twice 1 MiB.
#include "NvInfer.h"

#include <cstdlib>

extern "C" int cudaMalloc(void **, std::size_t);

namespace
{
void take(std::size_t n)
{
    void *device;
    cudaMalloc(&device, n);
}

class Context : public nvinfer1::apiv::VExecutionContext
{
  public:
    explicit Context(std::size_t n) : n_(n) {}
    bool enqueueV3(void *) noexcept override
    {
        take(n_ / 4);
        return true;
    }
    void setDeviceMemory(void *) noexcept override {}

  private:
    std::size_t n_;
};

class Engine : public nvinfer1::apiv::VCudaEngine
{
  public:
    explicit Engine(std::size_t n) : n_(n) { take(n); }
    nvinfer1::IExecutionContext *createExecutionContext() noexcept override
    {
        take(getDeviceMemorySize());
        return createExecutionContextWithoutDeviceMemory();
    }
    nvinfer1::IExecutionContext *createExecutionContextWithoutDeviceMemory() noexcept override
    {
        return new nvinfer1::IExecutionContext{new Context(n_)};
    }
    std::size_t getDeviceMemorySize() const noexcept override { return n_ / 2; }

  private:
    std::size_t n_;
};

class Runtime : public nvinfer1::apiv::VRuntime
{
  public:
    nvinfer1::ICudaEngine *deserializeCudaEngine(const void *, std::size_t size) noexcept override
    {
        return new nvinfer1::ICudaEngine{new Engine(size)};
    }
};

class Builder : public nvinfer1::apiv::VBuilder
{
  public:
    nvinfer1::IHostMemory *buildSerializedNetwork() noexcept override
    {
        take(2 << 20);
        return nullptr;
    }
};
} // namespace

#define EXPORTED __attribute__((visibility("default")))

extern "C" EXPORTED void *createInferRuntime_INTERNAL(void *, int) noexcept
{
    return new nvinfer1::IRuntime{new Runtime};
}

extern "C" EXPORTED void *createInferBuilder_INTERNAL(void *, int) noexcept
{
    return new nvinfer1::IBuilder{new Builder};
}
