// SPDX-License-Identifier: GPL-2.0-or-later
//
// A program that any C library runs: the start files of a newer one would ask for it. It keeps 5,000,000 bytes.
void *malloc(unsigned long);
void exit(int) __attribute__((noreturn));
void start(void);

static char *kept;

static void keeps(void)
{
    kept = malloc(5000000);
}

#ifdef __x86_64__
__attribute__((force_align_arg_pointer)) // the kernel leaves no return address
#endif
void start(void)
{
    keeps();
    kept[0] = 1;
    exit(0);
}
