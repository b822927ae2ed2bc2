// SPDX-License-Identifier: GPL-2.0-or-later
//
// usage: old_kernel ERRNO CALL… -- COMMAND…
// Starts a command on a kernel that refuses system calls with this error: ENOSYS as an old kernel, EPERM as some
// containers. A call is its number, or N- for all from that one on.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST 64

int main(int argc, char **argv)
{
    struct sock_filter code[2 + 2 * MOST] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned n = 1, refused = SECCOMP_RET_ERRNO | (unsigned)atoi(argv[1]);
    int i;
    for (i = 2; i < argc && strcmp(argv[i], "--") != 0 && i < MOST; i++) {
        unsigned compare = strchr(argv[i], '-') ? BPF_JGE : BPF_JEQ;
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | compare | BPF_K, (unsigned)atoi(argv[i]), 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, refused);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {(unsigned short)n, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("old_kernel");
        return 77;
    }
    execvp(argv[i + 1], argv + i + 1);
    perror(argv[i + 1]);
    return 127;
}
