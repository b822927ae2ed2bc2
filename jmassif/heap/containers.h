// SPDX-License-Identifier: GPL-2.0-or-later
//
// Large containers of a Python program that a variable keeps: who survives, by type.

#ifndef JM_CONTAINERS_H
#define JM_CONTAINERS_H

// Writes a record of each, before an interpreter frees what it holds.
void jm_containers_write(void);

#endif
