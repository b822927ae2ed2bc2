// SPDX-License-Identifier: GPL-2.0-or-later
//
// The tool's file stands for all that is compiled in: VEX, the core, the addresses of helpers that translated code
// calls, the code that instrumentation adds. Runs of one tool differ in the processor and in options. All options count
// except those known to be harmless, so an option of a later release makes a new key, never a wrong hit.

#include "base/checksum.h"
#include "base/kernel.h"
#include "base/libc.h"
#include "base/options.h"
#include "base/text.h"
#include "host/host.h"
#include "host/valgrind/code_cache.h"

#include <fcntl.h>

#define FORMAT "jmassif-code 3"

// Globs of the core's options that leave superblocks unchanged.
static const HChar harmless[] = "--tool=*|-q|--quiet|-v|--verbose|--stats=*|--log-f*|--trace-children*|"
                                "--child-silent-after-fork=*|--time-stamp=*|--profile-heap=*|"
                                "--num-transtab-sectors=*|--avg-transtab-entry-size=*|--command-line-only=*";

static ULong sums[2]; // two checksums of all that was added

static void add(const void *bytes, SizeT n_bytes)
{
    for (UInt i = 0; i < 2; i++)
        sums[i] = jm_checksum(bytes, n_bytes, sums[i]);
}

static void add_options(void)
{
    for (Word i = 0; i < VG_(sizeXA)(VG_(args_for_valgrind)); i++) {
        const HChar *option = *(HChar **)VG_(indexXA)(VG_(args_for_valgrind), i);
        if (!jm_text_fits_any(harmless, option) && !jm_options_is_own(option))
            add(option, strlen(option) + 1);
    }
    const Bool counts = jm_options.time_unit == TIME_INSTRUCTIONS; // no other option adds code
    add(&counts, sizeof counts);
    add(&VG_(clo_vex_control), sizeof VG_(clo_vex_control));
}

static Bool add_tool(void)
{
    static UChar piece[64 * 1024];
    Int fd = jm_open("/proc/self/exe", O_RDONLY, 0);
    Long n = fd;
    while (fd >= 0 && (n = jm_read(fd, piece, sizeof piece)) > 0)
        add(piece, n);
    jm_close(fd);
    return n == 0;
}

// Leave out the description of the caches: it is a separate array that VEX never reads.
static void add_processor(const VexArchInfo *info)
{
    VexArchInfo known = *info;
    memset(&known.hwcache_info, 0, sizeof known.hwcache_info);
    add(&known, sizeof known);
#if defined(VGA_amd64)
    // The recorder's multiply-adds (fma.c) depend on leaf 1. (Its other registers may differ from core to core.)
    UInt a = 1, b, c = 0, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    const UInt features[2] = {c, d};
    add(features, sizeof features);
#endif
}

// Field by field: the core fills the structure on its stack, with garbage between the fields.
static void add_abi(const VexAbiInfo *abi)
{
    const Int fields[] = {
        abi->guest_stack_redzone_size,
        abi->guest_amd64_assume_fs_is_const,
        abi->guest_amd64_assume_gs_is_const,
#if defined(HAVE_VEX_SIGBUS_ON_MISALIGN)
        abi->guest_amd64_sigbus_on_misalign,
#endif
        abi->guest__use_fallback_LLSC,
    };
    add(fields, sizeof fields);
}

Bool jm_code_key(ULong key[2], const VexTranslateArgs *args)
{
    const UWord kinds[] = {args->arch_guest,
                           args->arch_host,
                           (UWord)args->instrument1,
                           (UWord)args->finaltidy,
                           (UWord)args->disp_cp_chain_me_to_slowEP,
                           (UWord)args->disp_cp_chain_me_to_fastEP,
                           (UWord)args->disp_cp_xindir,
                           (UWord)args->disp_cp_xassisted,
                           sizeof(VexTranslateResult)};
    sums[0] = 1;
    sums[1] = 2;
    add(FORMAT, sizeof FORMAT);
    add_options();
    add(kinds, sizeof kinds);
    add_processor(&args->archinfo_guest);
    add_processor(&args->archinfo_host);
    add_abi(&args->abiinfo_both);
    const Bool is_read = add_tool();
    memcpy(key, sums, sizeof sums);
    return is_read;
}
