// SPDX-License-Identifier: GPL-2.0-or-later
//
// Of each 16 bytes that come in: what the recorder says that the instruction does which they begin with (0: reads
// condition codes, 1: leaves them, 2: sets all), how long it is, and how far a jump or call is to where it leads, of
// other instructions 0.

#include "valgrind/x86_flags.h"

#include <stdio.h>

int main(void)
{
    unsigned char code[16];
    while (fread(code, sizeof code, 1, stdin) == 1) {
        UInt length = 0;
        Addr to = (Addr)code;
        int effect = 1;
        if (!jm_x86_leads_on(code, &length, &to)) {
            to = (Addr)code;
            effect = jm_x86_flags_effect(code, &length);
        }
        printf("%d %u %ld\n", effect, length, (long)(to - (Addr)code));
    }
    return 0;
}
