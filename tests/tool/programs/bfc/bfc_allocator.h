// SPDX-License-Identifier: GPL-2.0-or-later
//
// The part of TensorFlow's BFCAllocator that is seen from outside: two virtual functions of a class in either
// namespace.

#include <cstddef>

namespace NAMESPACE
{
struct AllocationAttributes {
    bool retry_on_failure;
};

class BFCAllocator
{
  public:
    BFCAllocator(char *region, size_t bytes) : next(region), end(region + bytes) {}
    virtual ~BFCAllocator() = default;
    virtual void *AllocateRaw(size_t alignment, size_t bytes, const AllocationAttributes &attributes);
    virtual void DeallocateRaw(void *block);

  private:
    char *next, *end;
};

char *device_region(size_t bytes);
char *pinned_region(size_t bytes);
void free_device_region(char *region);
} // namespace NAMESPACE
