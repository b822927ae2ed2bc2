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
#include <vector>

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

extern "C" void caching_say(void);

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

// ---- one segment that grows by pages, each a piece of memory that is mapped behind the one before ----

extern "C" int cuMemCreate(unsigned long long *, size_t, const void *, unsigned long long);
extern "C" int cuMemRelease(unsigned long long);
extern "C" int cuMemAddressReserve(unsigned long long *, size_t, size_t, unsigned long long, unsigned long long);
extern "C" int cuMemMap(unsigned long long, size_t, size_t, unsigned long long, unsigned long long);
extern "C" int cuMemUnmap(unsigned long long, size_t);

static constexpr size_t PAGE = 20 << 20;
static char *expandable;
static size_t expandable_bytes; // mapped up to here, with holes where pages were given back

// CUmemAllocationProp: pinned memory of device 0.
static const struct {
    int type, handle_types, location_type, location;
    void *windows;
    unsigned char flags[8];
} of_device = {1, 0, 1, 0, nullptr, {}};

static bool grow(size_t bytes)
{
    std::vector<unsigned long long> handles(bytes / PAGE);
    for (size_t i = 0; i < handles.size(); i++) {
        if (cuMemCreate(&handles[i], PAGE, &of_device, 0) == 0)
            continue;
        while (i > 0)
            cuMemRelease(handles[--i]);
        return false;
    }
    Segment &segment = segments[expandable];
    for (unsigned long long handle : handles) {
        cuMemMap((unsigned long long)expandable + expandable_bytes, PAGE, 0, handle, 0);
        cuMemRelease(handle); // the mapping keeps it
        segment[expandable + expandable_bytes] = {PAGE, false};
        expandable_bytes += PAGE;
    }
    // New pages are one hole with what was free before them.
    for (auto block = segment.begin(); std::next(block) != segment.end();) {
        auto next = std::next(block);
        if (!block->second.used && !next->second.used && block->first + block->second.bytes == next->first) {
            block->second.bytes += next->second.bytes;
            segment.erase(next);
        } else {
            block = next;
        }
    }
    reserved += bytes;
    return true;
}

static void give_pages_back()
{
    Segment &segment = segments[expandable];
    for (auto block = segment.begin(); block != segment.end();) {
        if (!block->second.used) {
            cuMemUnmap((unsigned long long)block->first, block->second.bytes);
            reserved -= block->second.bytes;
            block = segment.erase(block);
        } else {
            ++block;
        }
    }
}

// Sizes are whole pages.
extern "C" __attribute__((noinline)) char *expandable_alloc(size_t bytes)
{
    if (!expandable)
        cuMemAddressReserve((unsigned long long *)&expandable, (size_t)16 << 30, 0, 0, 0);
    char *block = expandable_bytes ? from_hole(bytes) : nullptr;
    if (block)
        return block;
    if (!grow(bytes)) {
        n_retries++;
        caching_say();
        give_pages_back();
        if (!grow(bytes)) {
            n_ooms++;
            c10::reportOutOfMemoryToProfiler((int64_t)bytes, allocated, reserved, {1, 0});
            return nullptr;
        }
    }
    return from_hole(bytes);
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
