// SPDX-License-Identifier: GPL-2.0-or-later
//
// Whether the program's libraries are made to let go of their memory at its end.

#ifndef JM_FREERES_H
#define JM_FREERES_H

// Until jm_freeres_allow() they are not.
void jm_freeres_init(void);
void jm_freeres_allow(void);

#endif
