// SPDX-License-Identifier: GPL-2.0-or-later
//
// The tool's file stands for all that is compiled in: VEX, the core, the addresses of helpers that translated code
// calls, the code that instrumentation adds. Runs of one tool differ in the processor and in options. All options count
// except those known to be harmless, so an option of a later release makes a new key, never a wrong hit.

#include "host/valgrind/code_key.h"
#include "base/checksum.h"
#include "base/options.h"
#include "base/sha256.h"
#include "base/text.h"

#define FORMAT "jmassif-code 2"

// Globs of options that leave superblocks unchanged. (--stacks changes them, and so does --time-unit=i.)
static const HChar *const harmless[] = {"--tool=*",
                                        "--jmassif-out-file=*",
                                        "--heap=*",
                                        "--heap-admin=*",
                                        "--pages=*",
                                        "--driver=*",
                                        "--depth=*",
                                        "--threads=*",
                                        "--alloc-fn=*",
                                        "--ignore-fn=*",
                                        "--nvtx=*",
                                        "--python=*",
                                        "--owners=*",
                                        "--memory=*",
                                        "--large=*",
                                        "--board-root=*",
                                        "--time-unit=ms",
                                        "--time-unit=B",
                                        "--interval=*",
                                        "--anonymize=*",
                                        "--max-snapshots=*",
                                        "--low-footprint=*",
                                        "--keep-going=*",
                                        "--low-memory=*",
                                        "--threshold=*",
                                        "--detailed-freq=*",
                                        "--check-unwinding=*",
                                        "--code-cache*",
                                        "-q",
                                        "--quiet",
                                        "-v",
                                        "--verbose",
                                        "--stats=*",
                                        "--log-f*",
                                        "--trace-children*",
                                        "--child-silent-after-fork=*",
                                        "--time-stamp=*",
                                        "--profile-heap=*",
                                        "--num-transtab-sectors=*",
                                        "--avg-transtab-entry-size=*",
                                        "--command-line-only=*",
                                        NULL};

static Bool is_harmless(const HChar *option)
{
    for (UInt i = 0; harmless[i]; i++)
        if (jm_text_matches(harmless[i], option))
            return True;
    return False;
}

static void add_text(Sha256 *hash, const HChar *text)
{
    jm_sha256_add(hash, (const UChar *)text, VG_(strlen)(text) + 1);
}

static void add_options(Sha256 *hash)
{
    for (Word i = 0; i < VG_(sizeXA)(VG_(args_for_valgrind)); i++) {
        const HChar *option = *(HChar **)VG_(indexXA)(VG_(args_for_valgrind), i);
        if (!is_harmless(option))
            add_text(hash, option);
    }
    jm_sha256_add(hash, (const UChar *)&VG_(clo_vex_control), sizeof VG_(clo_vex_control));
}

// Hash the tool's file by jm_checksum: SHA-256 of it would take longer than a small program runs.
static Bool add_tool(Sha256 *hash)
{
    Int fd = VG_(fd_open)("/proc/self/exe", VKI_O_RDONLY, 0);
    if (fd < 0)
        return False;
    const SizeT piece_bytes = 64 * 1024;
    UChar *piece = VG_(malloc)("jm.code", piece_bytes);
    ULong sums[2] = {1, 2};
    Int n;
    while ((n = VG_(read)(fd, piece, piece_bytes)) > 0)
        for (UInt i = 0; i < 2; i++)
            sums[i] = jm_checksum(piece, n, sums[i]);
    VG_(free)(piece);
    VG_(close)(fd);
    jm_sha256_add(hash, (const UChar *)sums, sizeof sums);
    return n == 0;
}

// Leave out the description of the caches: it is a separate array that VEX never reads.
static void add_processor(Sha256 *hash, const VexArchInfo *info)
{
    VexArchInfo known = *info;
    VG_(memset)(&known.hwcache_info, 0, sizeof known.hwcache_info);
    jm_sha256_add(hash, (const UChar *)&known, sizeof known);
#if defined(VGA_amd64)
    // The recorder's multiply-adds (fma.c) depend on leaf 1. (Its other registers may differ from core to core.)
    UInt a = 1, b, c = 0, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    const UInt features[2] = {c, d};
    jm_sha256_add(hash, (const UChar *)features, sizeof features);
#endif
}

// Hash field by field: the core fills the structure on its stack, with garbage between the fields.
static void add_abi(Sha256 *hash, const VexAbiInfo *abi)
{
    Int fields[] = {
        abi->guest_stack_redzone_size,
        abi->guest_amd64_assume_fs_is_const,
        abi->guest_amd64_assume_gs_is_const,
#if defined(HAVE_VEX_SIGBUS_ON_MISALIGN)
        abi->guest_amd64_sigbus_on_misalign,
#endif
        abi->guest__use_fallback_LLSC,
    };
    jm_sha256_add(hash, (const UChar *)fields, sizeof fields);
}

Bool jm_code_key(CodeKey *key, const VexTranslateArgs *args)
{
    Sha256 hash;
    HChar hex[JM_SHA256_HEX + 1];
    jm_sha256_begin(&hash);
    add_text(&hash, FORMAT);
    add_options(&hash);
    const UWord kinds[] = {args->arch_guest,
                           args->arch_host,
                           (UWord)args->instrument1,
                           (UWord)args->finaltidy,
                           (UWord)args->disp_cp_chain_me_to_slowEP,
                           (UWord)args->disp_cp_chain_me_to_fastEP,
                           (UWord)args->disp_cp_xindir,
                           (UWord)args->disp_cp_xassisted,
                           sizeof(VexTranslateResult)};
    jm_sha256_add(&hash, (const UChar *)kinds, sizeof kinds);
    add_processor(&hash, &args->archinfo_guest);
    add_processor(&hash, &args->archinfo_host);
    add_abi(&hash, &args->abiinfo_both);
    if (!add_tool(&hash))
        return False;
    jm_sha256_end(&hash, hex);
    VG_(snprintf)(key->hex, sizeof key->hex, "%.32s", hex);
    for (UInt i = 0; i < 2; i++) {
        HChar digits[17];
        VG_(snprintf)(digits, sizeof digits, "%.16s", hex + 16 * i);
        key->words[i] = VG_(strtoull16)(digits, NULL);
    }
    return True;
}
