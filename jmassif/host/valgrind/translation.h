// SPDX-License-Identifier: GPL-2.0-or-later
//
// Translation of the program's code: its cost in time and memory, and what is added to superblocks. Most of a script's
// start is translation: `import torch` has 330,000 superblocks, and runs most of them a few times.

#pragma once

#include "host/valgrind/compat.h"

// Set defaults before the options are parsed: the user's --vex-guest-max-insns, --vex-guest-chase,
// --num-transtab-sectors and --avg-transtab-entry-size win.
void jm_translation_init(void);

// Keep the least translated code that the program can do with. Call after the options are parsed.
void jm_translation_keep_little(void);

// Count guest instructions in jm_clock_instructions, for --time-unit=i.
IRSB *jm_count_instructions(IRSB *in);

// Let the processor do fused multiply-adds. On x86-64 VEX computes each lane in software up to some release after 3.19:
// more than half of the time in the kernels of oneDNN and OpenBLAS. The processor's instruction gives the program's own
// result to the bit, also for NaNs and in every rounding mode. On arm64, and in later releases on x86-64 (3.24 does),
// VEX emits the instruction itself. The first function says whether the processor has it, and that helps.
Bool jm_fma_is_available(void);
IRSB *jm_fma_in_hardware(IRSB *in, const VexArchInfo *host);

// Answer a client request (malloc and its variants, those of jmassif.h and of the preload library) that ends the
// superblock. The core leaves translated code for each, goes through its scheduler and comes back, which costs more
// than most answers.
IRSB *jm_request_answer_at_once(IRSB *in);

// Answer a request of the program (tool.c). Return False for requests that are not for this tool.
Bool jm_tool_request(ThreadId tid, UWord *args, UWord *result);

// Add a direct jump before the indirect one of a superblock that is about to run, a return or a call through a
// library's table of addresses; it is taken if both lead to the same place. The core looks up the target of each
// indirect jump: 124 million times in the second run of `import torch`, a tenth of its time. Half of the jumps lead to
// the same target as the first time.
void jm_indirect_foresee(IRSB *block);
