/* SPDX-License-Identifier: GPL-2.0-or-later */
/* usage: allocator SEED STEPS
 * Calls PyTorch's allocator in C++ at random, without a tensor: allocations of all its size classes, frees, and
 * emptied caches. After every tenth step it sets a mark, and prints the counters of the allocator as JSON. */
#include <c10/cuda/CUDACachingAllocator.h>
#include <cstdio>
#include <cstdlib>
#include <jmassif/jmassif.h>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace allocator = c10::cuda::CUDACachingAllocator;

static void mark(int step)
{
    const auto stats = allocator::getDeviceStats(0);
    const std::string text = std::to_string(step);
    JMASSIF_MARK(text.c_str());
    std::printf("{\"mark\": \"%s\", \"allocated\": %lld, \"reserved\": %lld, \"segments\": %lld, \"blocks\": %lld}\n",
                text.c_str(), static_cast<long long>(stats.allocated_bytes[0].current),
                static_cast<long long>(stats.reserved_bytes[0].current),
                static_cast<long long>(stats.segment[0].current), static_cast<long long>(stats.allocation[0].current));
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    std::mt19937 random(std::strtoul(argv[1], nullptr, 10));
    const int steps = std::atoi(argv[2]);
    const size_t limits[] = {512, 1 << 20, 10 << 20, 60 << 20};
    std::vector<void *> blocks;
    allocator::init(1);
    for (int step = 1; step <= steps; step++) {
        const auto chosen = random() % 16;
        if (chosen == 0)
            allocator::emptyCache();
        else if (chosen < 7 && !blocks.empty()) {
            std::swap(blocks[random() % blocks.size()], blocks.back());
            allocator::raw_delete(blocks.back());
            blocks.pop_back();
        } else
            blocks.push_back(allocator::raw_alloc(1 + random() % limits[random() % 4]));
        if (step % 10 == 0)
            mark(step);
    }
    for (void *block : blocks)
        allocator::raw_delete(block);
    allocator::emptyCache();
    mark(steps + 1);
    return 0;
}
