/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a command on a board whose driver memory is simulated:
 *
 *     jmsim-board --release=r32|r35|r36|r38|r39|rm535|rm580 [--memory=BYTES [--machine [--cma=BYTES] [--cached=BYTES]]]
 * [--newer]
 *                 [--log FILE] -- COMMAND [ARGUMENT…]
 *
 * --newer: the drivers are newer than the release. They have ioctls, numbered from 0xe0 on, of which nobody knows.
 *
 * It ends as the command does, once all that the command started has ended: with its status, or 128 plus the number of
 * the signal that killed it. 77: this kernel does not let us supervise. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "board.h"

enum { USAGE = 2, UNAVAILABLE = 77, NOT_FOUND = 127 };

static const char *const RELEASES[N_RELEASES] = {"r32", "r35", "r36", "r38", "rm535", "rm580", "r39"};
enum release release = N_RELEASES;

static void usage(void)
{
    fprintf(stderr,
            "usage: jmsim-board --release=r32|r35|r36|r38|r39|rm535|rm580 [--memory=BYTES [--machine [--cma=BYTES] "
            "[--cached=BYTES]]] [--newer] [--log FILE] -- COMMAND…\n");
    exit(USAGE);
}

static void unavailable(const char *what, int error)
{
    fprintf(stderr, "jmsim-board: %s: %s\n", what, strerror(error));
    exit(UNAVAILABLE);
}

static uint64_t bytes_of(const char *text)
{
    char *end;
    uint64_t bytes = strtoull(text, &end, 0);
    if (*end || end == text)
        usage();
    return bytes;
}

static void arguments_read(int argc, char **argv)
{
    static const struct option OPTIONS[] = {
        {"release", required_argument, NULL, 'r'}, {"memory", required_argument, NULL, 'm'},
        {"machine", no_argument, NULL, 'M'},       {"newer", no_argument, NULL, 'n'},
        {"log", required_argument, NULL, 'l'},     {"cma", required_argument, NULL, 'c'},
        {"cached", required_argument, NULL, 'k'},  {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(argc, argv, "+", OPTIONS, NULL)) != -1) {
        switch (option) {
        case 'r':
            for (release = 0; release < N_RELEASES && strcmp(RELEASES[release], optarg) != 0;)
                release++;
            break;
        case 'm':
            memory_bytes = bytes_of(optarg);
            break;
        case 'c':
            machine_cma = bytes_of(optarg);
            break;
        case 'k':
            machine_cached = bytes_of(optarg);
            break;
        case 'M':
            machine_is_board = true;
            break;
        case 'n':
            drivers_are_newer = true;
            break;
        case 'l':
            if (!log_open(optarg)) {
                fprintf(stderr, "jmsim-board: %s: %s\n", optarg, strerror(errno));
                exit(USAGE);
            }
            break;
        default:
            usage();
        }
    }
    if (release == N_RELEASES || optind == argc || (machine_is_board && memory_bytes == UINT64_MAX))
        usage();
}

static void command_run(char **command, int to_supervisor, int from_supervisor)
{
    char go;
    int fd = listener_install();
    if (write(to_supervisor, &fd, sizeof fd) != sizeof fd || read(from_supervisor, &go, 1) != 1)
        _exit(UNAVAILABLE);
    close(fd);
    close(to_supervisor);
    close(from_supervisor);
    execvp(command[0], command);
    fprintf(stderr, "jmsim-board: %s: %s\n", command[0], strerror(errno));
    _exit(NOT_FOUND);
}

/* The listener is the child's; we take a copy of it. */
static int listener_take(pid_t child, int from_child)
{
    int theirs;
    if (read(from_child, &theirs, sizeof theirs) != sizeof theirs)
        unavailable("the command did not start", ECHILD);
    if (theirs < 0)
        unavailable("seccomp user notification", -theirs);
    int process = (int)syscall(SYS_pidfd_open, child, 0);
    int ours = process < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, process, theirs, 0);
    if (ours < 0)
        unavailable("pidfd_getfd", errno);
    close(process);
    return ours;
}

static void descriptors_lift(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv)
{
    int to_parent[2], to_child[2];
    arguments_read(argc, argv);
    if (pipe(to_parent) != 0 || pipe(to_child) != 0)
        unavailable("pipe", errno);
    pid_t child = fork();
    if (child < 0)
        unavailable("fork", errno);
    if (child == 0) {
        close(to_parent[0]);
        close(to_child[1]);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* without us its calls would fail in ways that no board knows */
        command_run(argv + optind, to_parent[1], to_child[0]);
    }
    close(to_parent[1]);
    close(to_child[0]);
    descriptors_lift();
    signal(SIGINT, SIG_IGN); /* the terminal sends it to the command as well */
    signal(SIGPIPE, SIG_IGN);
    int fd = listener_take(child, to_parent[0]);
    if (write(to_child[1], "", 1) != 1)
        unavailable("the command did not start", errno);
    int status = listener_serve(fd, child);
    books_sweep();
    log_note("end committed %llu files %u buffers %u objects %u", (unsigned long long)books.committed_bytes,
             books.n_files, books.n_buffers, books.n_objects);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
