// SPDX-License-Identifier: GPL-2.0-or-later
//
// The ways in which a framework gets and uses device memory, one a run: allocators
// workspace|pool|uncached|sets-uncached|retry|backward

#include "../../../../jmassif/jmassif.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *new_segment(size_t bytes);
char *retried_segment(char *cached, size_t cached_bytes, size_t bytes);
char *pool_block(size_t bytes);
char *uncached_block(size_t bytes);
void take_back(char *block, size_t bytes);
void workspaces(char *at);
void tensor(char *at, size_t bytes);
void backward(char *at);

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    if (strcmp(way, "pool") == 0) {
        if (!pool_block(5 << 20) || !pool_block(3 << 20))
            return 1;
    } else if (strstr(way, "uncached")) {
        // As a script does before it imports PyTorch; what it does afterwards comes too late.
        if (strcmp(way, "sets-uncached") == 0)
            setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", "1", 1);
        if (!uncached_block(5 << 20) || !uncached_block(3 << 20))
            return 1;
        unsetenv("PYTORCH_NO_CUDA_MEMORY_CACHING");
    } else if (strcmp(way, "retry") == 0) {
        char *cached = new_segment(40 << 20);
        char *segment = cached ? retried_segment(cached, 40 << 20, 60 << 20) : NULL;
        if (!segment)
            return 1;
        tensor(segment, 50 << 20);
    } else {
        char *segment = new_segment(40 << 20);
        if (!segment)
            return 1;
        if (strcmp(way, "workspace") == 0) {
            workspaces(segment);
            tensor(segment + (16 << 20), 4 << 20);
        } else {
            // Three passes; the gradients of the first two are freed where no pass is under way.
            for (int step = 0; step < 3; step++) {
                backward(segment);
                if (step < 2)
                    take_back(segment, 1 << 18);
            }
        }
    }
    JMASSIF_MARK("now");
    return 0;
}
