// SPDX-License-Identifier: GPL-2.0-or-later
//
// What the kernel tells in /proc and /sys, which may be anything: each file is read as if it were any of those.

#include "base/client_memory.h"
#include "base/options.h"
#include "base/text.h"
#include "host/host.h"
#include "pages/smaps.h"
#include "shim.h"
#include "machine/system.h"
#include "trace/trace.h"

Options jm_options = {.board_root = "", .low_memory = 5};

void jm_trace_record(Record record, const HChar *fields, const ULong *values) {}

static ULong sum;

static void use(const Vma *vma)
{
    sum += vma->end - vma->start + vma->resident + vma->shared + vma->swapped;
}

static void use_line(const HChar *line, void *context)
{
    ULong bytes;
    if (jm_text_labelled_bytes(line, "Rss", &bytes))
        sum += bytes;
    jm_text_matches("/dev/nvidia[0-9]*", line);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static ULong now = 1000;
    shim_seed(bytes, n);
    shim_file(bytes, n);
    jm_smaps_each(0, use);
    jm_text_each_line("any", use_line, NULL);
    host_free(jm_text_read_file("any", n / 2));
    jm_system_init();
    jm_system_write(now);
    jm_system_is_short(now += 1000);
    ULong counted;
    jm_pagemap_measure(jm_pagemap_open(), shim_number() % 100000, 100000 + shim_number() % 1000000,
                       (PageSort)(shim_number() % 3), &counted);
    return 0;
}
