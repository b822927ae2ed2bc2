// SPDX-License-Identifier: GPL-2.0-or-later
//
// libtorch_cuda.so in small: functions with the names that rules for roles go by, each of which asks the allocator for
// a block.

#include <cstddef>

extern "C" void hand_out(char *block, size_t bytes);
extern "C" void take_back(char *block, size_t bytes);

#define FUNCTION __attribute__((noinline, visibility("default"))) void

namespace at
{
namespace cuda
{
FUNCTION getCurrentCUDABlasHandle(char *at)
{
    hand_out(at, 8519680);
}
namespace blas
{
FUNCTION gemm_and_bias(char *at)
{
    hand_out(at, 1 << 20);
}
} // namespace blas
} // namespace cuda
namespace native
{
FUNCTION run_conv_plan(char *at)
{
    hand_out(at, 2 << 20);
}
FUNCTION empty_cuda(char *at, size_t bytes)
{
    hand_out(at, bytes);
}
} // namespace native
} // namespace at

namespace torch
{
namespace autograd
{
struct Engine {
    void evaluate(char *at);
};

// Two gradients, of which the larger is not kept. The same call makes both.
__attribute__((noinline)) void Engine::evaluate(char *at)
{
    for (int i = 0; i < 2; i++)
        at::native::empty_cuda(at + (i << 20), i == 0 ? 1 << 18 : 1 << 20);
    take_back(at + (1 << 20), 1 << 20);
}
} // namespace autograd
} // namespace torch

extern "C" {
FUNCTION workspaces(char *at)
{
    at::cuda::getCurrentCUDABlasHandle(at);
    at::cuda::blas::gemm_and_bias(at + (10 << 20));
    at::native::run_conv_plan(at + (12 << 20));
}
FUNCTION tensor(char *at, size_t bytes)
{
    at::native::empty_cuda(at, bytes);
}
FUNCTION backward(char *at)
{
    torch::autograd::Engine().evaluate(at);
}
}
