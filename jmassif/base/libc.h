// SPDX-License-Identifier: GPL-2.0-or-later
//
// The part of the C library that every host has, under its usual names. A tool of Valgrind has no C library; the linker
// leads these names to the core's functions (Makefile.am).

#pragma once

#include "host/types.h"

SizeT strlen(const HChar *s);
Int strcmp(const HChar *a, const HChar *b);
Int strncmp(const HChar *a, const HChar *b, SizeT n);
HChar *strchr(const HChar *s, Int c);
HChar *strrchr(const HChar *s, Int c);
HChar *strstr(const HChar *s, const HChar *part);
HChar *strpbrk(const HChar *s, const HChar *accepted);
HChar *strcpy(HChar *to, const HChar *from);
HChar *strncpy(HChar *to, const HChar *from, SizeT n);
void *memset(void *to, Int byte, SizeT n);
void *memcpy(void *to, const void *from, SizeT n);
void *memmove(void *to, const void *from, SizeT n);
Int memcmp(const void *a, const void *b, SizeT n);
