// SPDX-License-Identifier: GPL-2.0-or-later
//
// Reads smaps: text with some twenty lines per mapping, which costs milliseconds.

#include "pages/smaps.h"
#include "base/libc.h"
#include "base/options.h"
#include "base/text.h"

static inline Int digit(HChar c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static Addr hexadecimal(const HChar **at)
{
    Addr value = 0;
    for (; digit(**at) >= 0; (*at)++)
        value = value * 16 + digit(**at);
    return value;
}

// Lines that count, by what they add to.
static void read_line(const HChar *line, Vma *vma)
{
    static const struct {
        const HChar *label;
        Bool resident, shared, swapped, anonymous;
    } labels[] = {{"Rss", True, False, False, False},           {"Pss", False, True, False, False},
                  {"SwapPss", False, False, True, False},       {"Anonymous", False, False, False, True},
                  {"Shared_Hugetlb", True, True, False, False}, {"Private_Hugetlb", True, True, False, False}};
    ULong bytes;
    for (UInt i = 0; i < sizeof labels / sizeof *labels; i++)
        if (jm_text_labelled_bytes(line, labels[i].label, &bytes)) {
            vma->resident += labels[i].resident ? bytes : 0;
            vma->shared += labels[i].shared ? bytes : 0;
            vma->swapped += labels[i].swapped ? bytes : 0;
            vma->anonymous += labels[i].anonymous ? bytes : 0;
        }
}

typedef struct {
    void (*use)(const Vma *vma);
    Vma vma; // the mapping being read; end is 0 before the first
} Smaps;

static void smaps_line(const HChar *line, void *context)
{
    Smaps *smaps = context;
    Vma *vma = &smaps->vma;
    if (digit(line[0]) < 0) {
        read_line(line, vma);
        return;
    }
    if (vma->end)
        smaps->use(vma);
    memset(vma, 0, sizeof *vma);
    vma->start = hexadecimal(&line);
    line++;
    vma->end = hexadecimal(&line);
    const HChar *path = strchr(line, '/');
    jm_text_cut(vma->path, path ? path : "", sizeof vma->path);
}

Bool jm_smaps_each(Int pid, void (*use)(const Vma *vma))
{
    HChar name[32] = "/proc/self/smaps";
    Smaps smaps = {.use = use};
    if (pid)
        jm_format(name, sizeof name, "/proc/%d/smaps", pid);
    if (!jm_text_each_line(name, smaps_line, &smaps))
        return False;
    if (smaps.vma.end)
        use(&smaps.vma);
    return True;
}

static ULong probe_resident;

static void probe(const Vma *vma)
{
    if (vma->start <= (Addr)&jm_options && (Addr)&jm_options < vma->end)
        probe_resident = vma->resident;
}

// The options must be listed, and resident. Under an emulator it may not be, or the file may not exist.
Bool jm_smaps_works(void)
{
    return jm_smaps_each(0, probe) && probe_resident;
}
