// SPDX-License-Identifier: GPL-2.0-or-later
//
// A caching allocator in small, part of libc10_cuda.so: blocks are cut out of segments, the smallest hole that fits
// first; when there is none a segment is asked for; when that fails, segments that hold nothing are given back and it
// is asked for again; when that fails too, it is out of memory. It says what it knows, for a test to compare with.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>

extern "C" int cudaMalloc(void **, size_t);
extern "C" int cudaFree(void *);
extern "C" int cudaMemGetInfo(size_t *, size_t *);

#if FORM == 20
namespace c10
{
struct Device {
    int8_t type;
    int8_t index;
};
void reportMemoryUsageToProfiler(void *, int64_t, size_t, size_t, Device);
void reportOutOfMemoryToProfiler(int64_t, size_t, size_t, Device);
} // namespace c10

struct Block {
    size_t bytes;
    bool used;
};
using Segment = std::map<char *, Block>;

static std::map<char *, Segment> segments;
static size_t allocated, reserved;
static unsigned n_retries, n_ooms;

static char *cut(Segment &segment, char *at, size_t bytes)
{
    Block &block = segment[at];
    if (block.bytes > bytes)
        segment[at + bytes] = {block.bytes - bytes, false};
    block = {bytes, true};
    allocated += bytes;
    c10::reportMemoryUsageToProfiler(at, (int64_t)bytes, allocated, reserved, {1, 0});
    return at;
}

static char *from_hole(size_t bytes)
{
    Segment *best = nullptr;
    char *at = nullptr;
    size_t least = SIZE_MAX;
    for (auto &segment : segments)
        for (auto &block : segment.second)
            if (!block.second.used && block.second.bytes >= bytes && block.second.bytes < least) {
                best = &segment.second;
                at = block.first;
                least = block.second.bytes;
            }
    return best ? cut(*best, at, bytes) : nullptr;
}

static bool new_segment_of(size_t bytes)
{
    void *p = nullptr;
    if (cudaMalloc(&p, bytes) != 0)
        return false;
    segments[(char *)p][(char *)p] = {bytes, false};
    reserved += bytes;
    return true;
}

extern "C" void caching_empty(void)
{
    for (auto segment = segments.begin(); segment != segments.end();) {
        const Block &first = segment->second.begin()->second;
        if (segment->second.size() == 1 && !first.used) {
            cudaFree(segment->first);
            reserved -= first.bytes;
            segment = segments.erase(segment);
        } else {
            ++segment;
        }
    }
}

extern "C" __attribute__((noinline)) char *caching_alloc(size_t bytes, size_t segment_bytes)
{
    char *block = from_hole(bytes);
    if (block)
        return block;
    bool is_there = new_segment_of(segment_bytes);
    if (!is_there) {
        caching_empty();
        n_retries++;
        is_there = new_segment_of(segment_bytes);
    }
    if (is_there)
        return from_hole(bytes);
    n_ooms++;
    c10::reportOutOfMemoryToProfiler((int64_t)bytes, allocated, reserved, {1, 0});
    return nullptr;
}

extern "C" void caching_free(char *at)
{
    for (auto &segment : segments) {
        auto block = segment.second.find(at);
        if (block == segment.second.end())
            continue;
        allocated -= block->second.bytes;
        c10::reportMemoryUsageToProfiler(at, -(int64_t)block->second.bytes, allocated, reserved, {1, 0});
        block->second.used = false;
        auto next = std::next(block);
        if (next != segment.second.end() && !next->second.used) {
            block->second.bytes += next->second.bytes;
            segment.second.erase(next);
        }
        if (block != segment.second.begin() && !std::prev(block)->second.used) {
            std::prev(block)->second.bytes += block->second.bytes;
            segment.second.erase(block);
        }
        return;
    }
}

// As it is now; and each segment as a line of its blocks: + used, - free, and bytes.
extern "C" void caching_say(void)
{
    size_t free = 0, largest = 0, holes = 0, returnable = 0, on_device = 0, total = 0;
    for (auto &segment : segments)
        for (auto &block : segment.second)
            if (!block.second.used) {
                holes++;
                free += block.second.bytes;
                largest = std::max(largest, block.second.bytes);
                if (segment.second.size() == 1)
                    returnable += block.second.bytes;
            }
    cudaMemGetInfo(&on_device, &total);
    printf("reserved %zu\nallocated %zu\nfree %zu\nholes %zu\nlargest %zu\nreturnable %zu\n", reserved, allocated, free,
           holes, largest, returnable);
    printf("device_free %zu\ndevice_total %zu\nretries %u\nooms %u\n", on_device, total, n_retries, n_ooms);
    for (auto &segment : segments) {
        printf("segment");
        for (auto &block : segment.second)
            printf(" %c%zu", block.second.used ? '+' : '-', block.second.bytes);
        printf("\n");
    }
}
#endif
