/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one thing in which the simulated runtimes of different sonames differ, so that the rest is
 * compiled once: build.sh compiles this file for each, with -DRUNTIME_VERSION. */
#include "runtime.h"

const int runtime_version = RUNTIME_VERSION;
