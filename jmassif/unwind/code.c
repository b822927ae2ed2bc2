// SPDX-License-Identifier: GPL-2.0-or-later
//
// Cache the mapping at each code address; see code.h. Unwinding through code without tables looks up some ten addresses
// a stack, and each look-up would search the core's list of mappings.

#include "unwind/code.h"
#include "base/libc.h"
#include "host/host.h"
#include "unwind/dwarf.h"

CodeSegment jm_code_segments[JM_N_CODE_SEGMENTS];

void jm_code_forget(void)
{
    memset(jm_code_segments, 0, sizeof jm_code_segments);
}

const CodeSegment *jm_find_code_segment(Addr address)
{
    static const CodeSegment nothing;
    Mapping mapping;
    if (!host_mapping_at(address, &mapping) && mapping.start == mapping.end)
        return &nothing;
    CodeSegment *known = &jm_code_segments[address >> 20 & (JM_N_CODE_SEGMENTS - 1)];
    *known = (CodeSegment){.start = mapping.start,
                           .end = mapping.end,
                           .is_code = mapping.is_executable,
                           .is_file = mapping.as == MAPPED_FILE,
                           .can_be_read = mapping.is_executable && mapping.is_readable};
    return known;
}

#if defined(__x86_64__)

Bool jm_is_return_address(Addr address)
{
    // call rel32; indirect call (ff /2), with zero to five bytes after its second byte.
    const CodeSegment *s = jm_code_segment(address - 1);
    if (!s->can_be_read || (address == s->end && !jm_is_code(address)))
        return False;
    const UChar *end = (const UChar *)address;
    const UWord n = address - s->start;
    if (n >= 5 && end[-5] == 0xe8)
        return True;
    for (UInt length = 2; length <= 7 && length <= n; length++)
        if (end[-(Int)length] == 0xff && (end[1 - (Int)length] & 0x38) == 0x10)
            return True;
    return False;
}

Bool jm_is_trampoline(Addr address)
{
    static const UChar move_64[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05}; // mov $15, %rax; syscall
    static const UChar move_32[] = {0xb8, 15, 0, 0, 0, 0x0f, 0x05};             // mov $15, %eax; syscall
    const CodeSegment *s = jm_code_segment(address);
    const UChar *code = (const UChar *)address;
    if (!s->can_be_read)
        return False;
    const UWord n = s->end - address;
    return (n >= sizeof move_64 && memcmp(code, move_64, sizeof move_64) == 0) ||
           (n >= sizeof move_32 && memcmp(code, move_32, sizeof move_32) == 0);
}

#else

Bool jm_is_return_address(Addr address)
{
    // bl; blr and its variants that authenticate the pointer.
    const CodeSegment *s = jm_code_segment(address - 4);
    if (address & 3 || !s->can_be_read || (address == s->end && !jm_is_code(address)))
        return False;
    UInt instruction = *(const UInt *)(address - 4);
    return instruction >> 26 == 0x25 || (instruction & 0xfefff000) == 0xd63f0000;
}

Bool jm_is_trampoline(Addr address)
{
    static const UInt instructions[] = {0xd2801168, 0xd4000001}; // mov x8, #139; svc #0
    const CodeSegment *s = jm_code_segment(address);
    return s->can_be_read && s->end - address >= sizeof instructions &&
           memcmp((const void *)address, instructions, sizeof instructions) == 0;
}

#endif
