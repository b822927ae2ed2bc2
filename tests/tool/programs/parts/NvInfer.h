// SPDX-License-Identifier: GPL-2.0-or-later
//
// A stand-in for TensorRT's header: names and forms of what an application calls. As in the real one, a method is
// inline and calls a virtual method of an implementation, whose names the library does not export.
#pragma once

#include <cstddef>

namespace nvinfer1
{
namespace apiv
{
class VExecutionContext
{
  public:
    virtual bool enqueueV3(void *stream) noexcept = 0;
    virtual void setDeviceMemory(void *memory) noexcept = 0;
};
class VCudaEngine;
class VRuntime;
class VBuilder;
} // namespace apiv

class IExecutionContext
{
  public:
    bool enqueueV3(void *stream) noexcept { return mImpl->enqueueV3(stream); }
    void setDeviceMemory(void *memory) noexcept { mImpl->setDeviceMemory(memory); }
    apiv::VExecutionContext *mImpl;
};

class ICudaEngine;
class IHostMemory;

namespace apiv
{
class VCudaEngine
{
  public:
    virtual IExecutionContext *createExecutionContext() noexcept = 0;
    virtual IExecutionContext *createExecutionContextWithoutDeviceMemory() noexcept = 0;
    virtual std::size_t getDeviceMemorySize() const noexcept = 0;
};
class VRuntime
{
  public:
    virtual ICudaEngine *deserializeCudaEngine(const void *blob, std::size_t size) noexcept = 0;
};
class VBuilder
{
  public:
    virtual IHostMemory *buildSerializedNetwork() noexcept = 0;
};
} // namespace apiv

class ICudaEngine
{
  public:
    IExecutionContext *createExecutionContext() noexcept { return mImpl->createExecutionContext(); }
    IExecutionContext *createExecutionContextWithoutDeviceMemory() noexcept
    {
        return mImpl->createExecutionContextWithoutDeviceMemory();
    }
    std::size_t getDeviceMemorySize() const noexcept { return mImpl->getDeviceMemorySize(); }
    apiv::VCudaEngine *mImpl;
};

class IRuntime
{
  public:
    ICudaEngine *deserializeCudaEngine(const void *blob, std::size_t size) noexcept
    {
        return mImpl->deserializeCudaEngine(blob, size);
    }
    apiv::VRuntime *mImpl;
};

class IBuilder
{
  public:
    IHostMemory *buildSerializedNetwork() noexcept { return mImpl->buildSerializedNetwork(); }
    apiv::VBuilder *mImpl;
};
} // namespace nvinfer1

extern "C" void *createInferRuntime_INTERNAL(void *logger, int version) noexcept;
extern "C" void *createInferBuilder_INTERNAL(void *logger, int version) noexcept;
