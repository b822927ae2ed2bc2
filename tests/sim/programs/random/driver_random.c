/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random operations straight on the simulated board's device nodes, of whatever release it has:
 *
 *   driver_random OPERATIONS SEED [--log=FILE] [--check] [--exec-at=N] [--rare]
 *
 * After each operation the log gets a line "NUMBER COMMITTED MANAGED OPERATION" with the board's own figures, and where
 * libjmassif.so is preloaded a region "books-K" begins and ends then, with K = NUMBER / 256, so that a profile has the
 * ledger's totals at each (of one name it tells the first 256 exactly). With --check the board's figures must be those
 * that follow from the operations by the rules, by brute force. With --exec-at the program execs itself before
 * operation N and goes on without anything. With --rare there are operations as well that no CUDA program is known to
 * do: descriptors of devices that move to another number. Nothing is freed
 * at the end. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "random.h"

void jmassif_region_begin(const char *text) __attribute__((weak));
void jmassif_region_end(const char *text) __attribute__((weak));

enum { TOLD_OF_ONE_NAME = 256 };

enum release release;
const char *self;
int board;
bool rare;
static uint64_t state;

uint64_t chance(uint64_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % n;
}

struct jmsim_books books_now(void)
{
    struct jmsim_books books;
    MUST(ioctl(board, JMSIM_BOARD_BOOKS, &books) == 0);
    return books;
}

static void child_wait(pid_t child)
{
    int status;
    MUST(waitpid(child, &status, 0) == child);
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void run_in_child(void (*work)(void))
{
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        work();
        _exit(0);
    }
    child_wait(child);
}

void run_in_new_program(void)
{
    char seed[24];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)chance(1000000) + 1);
    pid_t child = fork();
    MUST(child >= 0);
    if (child == 0) {
        execl(self, self, "20", seed, "--check", (char *)NULL);
        _exit(1);
    }
    child_wait(child);
}

static const char *step(void)
{
    bool has_nvmap = release <= R38, has_rm = release >= R38;
    return has_nvmap && (!has_rm || chance(2)) ? nvmap_step() : rm_step();
}

/* A program that found the board empty has it for itself; in a child's totals its parent's buffers are as well. */
static bool alone;

static void check(uint64_t number, const char *operation, const struct jmsim_books *books)
{
    uint64_t committed = nvmap_expected() + rm_expected(), managed = rm_expected_managed();
    if (books->process_bytes == committed && books->managed_bytes == managed &&
        (!alone || books->committed_bytes == committed))
        return;
    fprintf(stderr,
            "after operation %llu, %s: the board says %llu, %llu of it ours, and %llu managed; it should be %llu and "
            "%llu\n",
            (unsigned long long)number, operation, (unsigned long long)books->committed_bytes,
            (unsigned long long)books->process_bytes, (unsigned long long)books->managed_bytes,
            (unsigned long long)committed, (unsigned long long)managed);
    _exit(1);
}

static char log_text[1 << 16];
static size_t log_length;
static int log_fd = -1;

static void log_write(void)
{
    if (log_fd >= 0)
        MUST(write(log_fd, log_text, log_length) == (ssize_t)log_length);
    log_length = 0;
}

static void log_add(uint64_t number, const struct jmsim_books *books, const char *operation)
{
    if (log_length + 128 > sizeof log_text)
        log_write();
    log_length += (size_t)snprintf(log_text + log_length, 128, "%llu %llu %llu %s\n", (unsigned long long)number,
                                   (unsigned long long)books->committed_bytes, (unsigned long long)books->managed_bytes,
                                   operation);
}

int main(int argc, char **argv)
{
    const char *log = NULL;
    bool checked = false;
    uint64_t number = 0, exec_at = UINT64_MAX;
    for (int i = 3; i < argc; i++) {
        if (strncmp(argv[i], "--log=", 6) == 0)
            log = argv[i] + 6;
        else if (strcmp(argv[i], "--check") == 0)
            checked = true;
        else if (strcmp(argv[i], "--rare") == 0)
            rare = true;
        else if (strncmp(argv[i], "--exec-at=", 10) == 0)
            exec_at = strtoull(argv[i] + 10, NULL, 10);
        else if (strncmp(argv[i], "--from=", 7) == 0) /* after an exec */
            number = strtoull(argv[i] + 7, NULL, 10);
        else
            argc = 0;
    }
    if (argc < 3) {
        fprintf(stderr, "usage: driver_random OPERATIONS SEED [--log=FILE] [--check] [--exec-at=N] [--rare]\n");
        return 2;
    }
    self = argv[0];
    uint64_t end = strtoull(argv[1], NULL, 10);
    state = strtoull(argv[2], NULL, 10) * 0x9e3779b97f4a7c15u + number + 1;
    board = open(JMSIM_BOARD_NODE, O_RDWR | O_CLOEXEC);
    if (board < 0) {
        fprintf(stderr, "driver_random: %s: %s\n", JMSIM_BOARD_NODE, strerror(errno));
        return 77;
    }
    if (log)
        MUST((log_fd = open(log, O_WRONLY | O_CREAT | O_CLOEXEC | (number ? O_APPEND : O_TRUNC), 0666)) >= 0);
    release = books_now().release;
    alone = books_now().committed_bytes == 0;
    for (; number < end; number++) {
        if (number == exec_at) {
            char from[32];
            snprintf(from, sizeof from, "--from=%llu", (unsigned long long)number);
            log_write();
            nvmap_before_exec();
            char log_again[4096];
            snprintf(log_again, sizeof log_again, "--log=%s", log ? log : "/dev/null");
            char *again[8] = {argv[0], argv[1], argv[2], log_again, from};
            int n = 5;
            if (checked)
                again[n++] = "--check";
            if (rare)
                again[n++] = "--rare";
            execv(self, again);
            MUST(!"exec");
        }
        char name[32];
        snprintf(name, sizeof name, "books-%llu", (unsigned long long)(number / TOLD_OF_ONE_NAME));
        const char *operation = step();
        struct jmsim_books books = books_now();
        if (jmassif_region_begin) {
            jmassif_region_begin(name);
            jmassif_region_end(name);
        }
        if (checked)
            check(number, operation, &books);
        log_add(number, &books, operation);
    }
    log_write();
    return 0;
}
