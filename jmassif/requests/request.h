// SPDX-License-Identifier: GPL-2.0-or-later
//
// The program's requests to the tool (malloc and its kin, and those of jmassif.h and the preload library), answered
// from within translated code. The core leaves the translated code for each, goes through its scheduler and comes back,
// which costs more than most answers.

#ifndef JM_REQUEST_H
#define JM_REQUEST_H

#include "base/compat.h"

// The superblock as it is, if it does not end with a request.
IRSB *jm_request_answer_at_once(IRSB *in);

#endif
