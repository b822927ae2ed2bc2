/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Regions: stretches of device memory taken from the board whole and cut into extents. The driver
 * keeps small blocks in slabs of a context, and a pool's blocks in chunks of the pool. An extent in
 * use is the block's own object; free neighbours are merged. The search goes on where the last one
 * ended, so that filling a region is linear. */
#include "driver.h"

struct object *region_new(struct object *owner, size_t bytes)
{
    struct object *region = object_new(REGION);
    struct object *extent = region ? object_new(FREE_EXTENT) : NULL;
    if (!extent || !board_back(region, bytes, bytes, DEVICE_PAGES)) {
        if (extent)
            object_delete(extent);
        if (region)
            object_delete(region);
        return NULL;
    }
    extent->region = region;
    extent->address = region->address;
    extent->span_bytes = bytes;
    region->u.in_region.rover = extent;
    region->u.in_region.free_bytes = bytes;
    region->after = owner->regions;
    if (owner->regions)
        owner->regions->before = region;
    owner->regions = region;
    return region;
}

static struct object *first_of(struct object *extent)
{
    while (extent->before)
        extent = extent->before;
    return extent;
}

static struct object *cut(struct object *extent, size_t bytes)
{
    struct object *region = extent->region;
    if (extent->span_bytes > bytes) {
        struct object *rest = object_new(FREE_EXTENT);
        if (!rest)
            return NULL;
        rest->region = region;
        rest->address = extent->address + bytes;
        rest->span_bytes = extent->span_bytes - bytes;
        rest->before = extent;
        rest->after = extent->after;
        if (rest->after)
            rest->after->before = rest;
        extent->after = rest;
        extent->span_bytes = bytes;
    }
    region->u.in_region.free_bytes -= bytes;
    region->u.in_region.rover = extent->after ? extent->after : extent;
    return extent;
}

static struct object *search(struct object *region, size_t bytes)
{
    struct object *start = region->u.in_region.rover;
    struct object *extent = start;
    do {
        if (extent->kind == FREE_EXTENT && extent->span_bytes >= bytes)
            return cut(extent, bytes);
        extent = extent->after ? extent->after : first_of(start);
    } while (extent != start);
    return NULL;
}

struct object *region_take(struct object *owner, size_t bytes)
{
    for (struct object *region = owner->regions; region; region = region->after) {
        if (region->u.in_region.free_bytes < bytes)
            continue;
        struct object *extent = search(region, bytes);
        if (extent)
            return extent;
    }
    return NULL;
}

/* Joins two neighbours, both free; the lower one stays. */
static void join(struct object *low, struct object *high)
{
    struct object *region = low->region;
    low->span_bytes += high->span_bytes;
    low->after = high->after;
    if (low->after)
        low->after->before = low;
    if (region->u.in_region.rover == high)
        region->u.in_region.rover = low;
    object_delete(high);
}

struct object *region_give(struct object *extent)
{
    struct object *region = extent->region;
    extent->kind = FREE_EXTENT;
    extent->context = NULL;
    region->u.in_region.free_bytes += extent->span_bytes;
    if (extent->after && extent->after->kind == FREE_EXTENT)
        join(extent, extent->after);
    if (extent->before && extent->before->kind == FREE_EXTENT)
        join(extent->before, extent);
    return region;
}

bool region_idle(const struct object *region)
{
    return region->u.in_region.free_bytes == region->span_bytes;
}

void region_end(struct object *owner, struct object *region)
{
    if (region->before)
        region->before->after = region->after;
    else
        owner->regions = region->after;
    if (region->after)
        region->after->before = region->before;
    board_unback(region);
    object_delete(region->u.in_region.rover); /* idle: one free extent is all there is */
    object_delete(region);
}
