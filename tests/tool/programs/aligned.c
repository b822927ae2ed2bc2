// SPDX-License-Identifier: GPL-2.0-or-later
//
// memalign, posix_memalign, aligned_alloc and valloc: alignments, and what posix_memalign refuses.

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned wrong;

static void *checked(void *p, size_t alignment)
{
    wrong += !p || (uintptr_t)p % alignment != 0;
    return p;
}

int main(void)
{
    void *kept[64];
    int n = 0;
    // Beyond a page, how much is lost to alignment depends on where the allocator's region happens to lie.
    for (size_t alignment = 8; alignment <= 4096; alignment *= 2) {
        kept[n++] = checked(memalign(alignment, 100 + alignment / 2), alignment);
        kept[n++] = checked(aligned_alloc(alignment, alignment * 3), alignment);
        void *p = NULL;
        wrong += posix_memalign(&p, alignment, 777) != 0;
        kept[n++] = checked(p, alignment);
    }
    kept[n++] = checked(valloc(5000), (size_t)sysconf(_SC_PAGESIZE));
    void *untouched = &n;
    printf("alignment 3: %s\n", posix_memalign(&untouched, 3, 64) == EINVAL ? "EINVAL" : "something else");
    printf("alignment 4: %s\n", posix_memalign(&untouched, 4, 64) == EINVAL ? "EINVAL" : "something else");
    printf("alignment 0: %s\n", posix_memalign(&untouched, 0, 64) == EINVAL ? "EINVAL" : "something else");
    printf("%u wrong, the pointer is %s\n", wrong, untouched == &n ? "untouched" : "changed");
    for (int i = 0; i < n; i += 2)
        free(kept[i]);
    void *late = memalign(4096, 12345);
    free(late);
    for (int i = 1; i < n; i += 2)
        free(kept[i]);
    return 0;
}
