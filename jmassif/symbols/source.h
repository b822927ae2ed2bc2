// SPDX-License-Identifier: GPL-2.0-or-later
//
// Checksums of the user's Python files. A reader shows a line's text only if the file it finds has the recorded one. So
// it shows the text that ran, and never an unrelated file that a trace names.

#pragma once

#include "host/types.h"

// Write the file's checksum on the first call for `string`, the path's id in the trace; none of an unreadable file.
void jm_source_seen(const HChar *path, UInt string);
