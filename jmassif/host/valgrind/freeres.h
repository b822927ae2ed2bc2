// SPDX-License-Identifier: GPL-2.0-or-later
//
// Release of the internal memory of the program's libraries at its end.

#ifndef JM_FREERES_H
#define JM_FREERES_H

// Disable the release until host_exit_called() restores the user's choice.
void jm_freeres_init(void);

#endif
