/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Wild structures for the simulated board's devices, of whatever release it has:
 *
 *   ioctls STEPS SEED LOG
 *
 * Numbers are ones that drivers know, or near them; words are what earlier calls have returned, pointers into memory of
 * ours, at its end or to nowhere, and numbers that go wrong easily. After each step a mark of its number with a
 * snapshot, and in LOG.PID the number and what the board's kernel has committed for the process. Nothing but that may
 * come of it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "board/jmsim_board.h"
#include "jmassif.h"
#include "sequences.h"

enum { WORDS = 64, N_KNOWN = 24, N_DEVICES = 24 };

static const char *const nodes[] = {
    "/dev/nvmap",          "/dev/nvhost-ctrl-gpu", "/dev/nvhost-as-gpu",    "/dev/nvhost-gpu",
    "/dev/nvhost-tsg-gpu", "/dev/nvgpu/igpu0/as",  "/dev/nvgpu/igpu0/ctrl", "/dev/nvidiactl",
    "/dev/nvidia0",        "/dev/nvidia-uvm",      "/dev/nvgpu/igpu0/tsg",  "/dev/nvgpu/igpu0/channel"};

static const uint32_t tegra[] = {
    0xc0084e00, 0xc0084e01, 0x40204e03, 0x40104e03, 0x40144e03, 0x00004e04, 0xc0084e0f, 0xc0084e10, 0x40384e06,
    0x40204e07, 0x40384e07, 0xc00c4e6a, 0x80304e69, 0x80284e69, 0x40144e65, 0x80304e6c, 0x80104e1a, 0x40204e11,
    0x40104e18, 0x80484e1b, 0x80404e1b, 0x80084e19, 0xc0184e16, 0x40204e0c, 0xc0404708, 0xc0104708, 0xc0104705,
    0xc0084709, 0xc0184709, 0xc0284721, 0xc018472a, 0xc0184729, 0xc004470b, 0xc0204106, 0xc0204103, 0xc0184106,
    0xc0284107, 0xc0104103, 0xc0084105, 0xc0044101, 0xc020410b, 0xc0504880, 0xc0684880, 0xc018486f, 0xc018486b,
    0xc010486c, 0x4020487b, 0x40084864, 0xc018540b, 0xc0105412};

static const uint8_t escapes[] = {0x27, 0x28, 0x29, 0x2a, 0x2b, 0x2b, 0x2b, 0x34, 0x35,
                                  0x4a, 0x4d, 0x4e, 0x4f, 0x57, 0x58, 0xc8, 0xce, 0xd2};
static const uint32_t classes[] = {0,    1,    0x41, 0x80, 0x2080, 0x3e,   0x3f,   0x40,
                                   0x42, 0x71, 0x81, 0x82, 0x83,   0x50a0, 0xc36f, 0x90f1};

/* NVMAP_IOC_FREE, whose argument is a handle. */
enum { FREE = 0x00004e04 };

static struct walker self;
static uint32_t release, client, parent;
static int nvmap, rm;
static int devices[N_DEVICES], board, log_fd;
static uint64_t known[N_KNOWN];
static unsigned n_known;
static uint64_t *ours, *at_the_end; /* memory, and words right before what is none */

static uint64_t some_word(void)
{
    static const uint64_t telling[] = {
        0, 1, 2, 3, 8, 0xffffffff, 0x80000000, 0x7fffffff, ~0ull, ~0ull - 4095, 1ull << 47, 1ull << 63};
    uint64_t pair = chance(&self, UINT64_MAX);
    switch (chance(&self, 12)) {
    case 0:
        return pair;
    case 1:
        return telling[pair % (sizeof telling / sizeof *telling)];
    case 2:
        return (uintptr_t)(ours + pair % WORDS);
    case 3:
        return (uintptr_t)(at_the_end + pair % 12);
    case 4:
        return 4096 * (pair % 64);
    case 5:
        return (uint64_t)classes[pair % (sizeof classes / sizeof *classes)] << 32 | known[pair % N_KNOWN] % 100;
    case 6:
        return pair % 64 << 32 | pair % 61;
    default:
        return known[pair % N_KNOWN];
    }
}

static void remember(uint64_t word)
{
    known[n_known++ % N_KNOWN] = word;
}

static uint32_t some_number(void)
{
    uint32_t number = tegra[chance(&self, sizeof tegra / sizeof *tegra)];
    switch (chance(&self, 8)) {
    case 0:
        number ^= 1u << chance(&self, 32);
        break;
    case 1:
    case 2:
    case 3:
        number = (uint32_t)_IOC(3, 'F', escapes[chance(&self, sizeof escapes)], 8 * (2 + chance(&self, 22)));
        break;
    case 4:
        number = chance(&self, 6) ? (uint32_t)chance(&self, 90) : 0x30000001 + (uint32_t)chance(&self, 2);
        break;
    default:
        break;
    }
    return number;
}

static void open_one(void)
{
    int i = (int)chance(&self, N_DEVICES);
    if (devices[i] > 0)
        close(devices[i]);
    devices[i] = open(nodes[chance(&self, sizeof nodes / sizeof *nodes)], O_RDWR | O_CLOEXEC);
}

/* Descriptors that must last. */
enum { OURS = 200, N_OURS = 10 };

static int kept(int fd)
{
    return fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, OURS);
}

/* On r32 a handle is a descriptor, and is closed. Since r34 it is none: what the kernel does with one, nobody has said.
 */
static unsigned long handle_to_free(uint32_t word)
{
    bool is_kept = word >= OURS && word < OURS + N_OURS;
    return is_kept || (release != 0 && word < 4096) ? 0 : word;
}

/* Wild from the first word to the last. */
static void call_anything(int fd)
{
    for (int i = 0; i < WORDS; i++)
        ours[i] = some_word();
    uint64_t *words = chance(&self, 20) ? ours : at_the_end;
    uint32_t number = some_number();
    if (words == at_the_end)
        memcpy(at_the_end, ours, 96);
    if (ioctl(fd, number, number == FREE ? handle_to_free((uint32_t)some_word()) : (uintptr_t)words) == 0)
        remember(ours[0]);
}

static uint32_t some_known(void)
{
    return (uint32_t)known[chance(&self, n_known < N_KNOWN ? n_known + 1 : N_KNOWN)];
}

/* A word or two of what could be right go wrong. */
static int call_nearly(int fd, uint32_t number, uint32_t *words)
{
    memcpy(ours, words, 48);
    for (uint64_t n = chance(&self, 3) ? 0 : 1 + chance(&self, 2); n > 0; n--)
        ((uint32_t *)ours)[chance(&self, 12)] = (uint32_t)some_word();
    int result = ioctl(fd, number, ours);
    memcpy(words, ours, 48);
    return result;
}

static void use_nvmap(void)
{
    static const uint32_t allocs[] = {0x40104e03, 0x40104e03, 0x40144e03, 0x40204e03, 0, 0};
    uint32_t words[12] = {0};
    switch (chance(&self, 6)) {
    case 0:
        words[0] = (uint32_t)chance(&self, 300000);
        if (call_nearly(nvmap, 0xc0084e00, words) == 0)
            remember(words[1]);
        break;
    case 1:
    case 2:
        memcpy(words, (uint32_t[]){some_known(), 1u << 30, 3, 4096}, 16);
        call_nearly(nvmap, allocs[release], words);
        break;
    case 3:
        words[1] = some_known();
        if (call_nearly(nvmap, 0xc0084e0f, words) == 0)
            remember(words[0]);
        break;
    case 4:
        words[0] = some_known();
        if (call_nearly(nvmap, 0xc0084e10, words) == 0)
            remember(words[1]);
        break;
    default:
        ioctl(nvmap, FREE, handle_to_free(some_known()));
    }
}

static void use_rm(void)
{
    static uint64_t parameters[32];
    uint32_t words[12] = {0};
    memset(parameters, 0, sizeof parameters);
    parameters[3] = 1u << 23;
    parameters[8] = chance(&self, 100) * 4096;
    if (chance(&self, 4) == 0)
        parameters[chance(&self, 16)] = some_word();
    uint64_t at = (uintptr_t)parameters;
    uint32_t class = classes[chance(&self, sizeof classes / sizeof *classes)];
    switch (chance(&self, 6)) {
    case 0: /* a client, and its device */
        words[3] = 0x41;
        memcpy(words + 4, &at, sizeof at);
        if (call_nearly(rm, 0xc030462b, words) == 0 && words[10] == 0)
            client = words[2];
        memcpy(words, (uint32_t[]){client, client, 0, 0x80}, 16);
        if (call_nearly(rm, 0xc030462b, words) == 0 && words[10] == 0)
            parent = words[2];
        break;
    case 1:
    case 2:
        memcpy(words, (uint32_t[]){client, chance(&self, 4) ? parent : some_known(), 0, class}, 16);
        memcpy(words + 4, &at, sizeof at);
        if (call_nearly(rm, 0xc030462b, words) == 0 && words[10] == 0)
            remember(words[2]);
        break;
    case 3:
        memcpy(words, (uint32_t[]){client, parent, 0, client, some_known(), 0, 1}, 28);
        if (call_nearly(rm, 0xc01c4634, words) == 0)
            remember(words[2]);
        break;
    default:
        memcpy(words, (uint32_t[]){client, chance(&self, 8) ? parent : client, some_known(), 1}, 16);
        call_nearly(rm, 0xc0104629, words);
    }
}

static void step(void)
{
    int fd = devices[chance(&self, N_DEVICES)];
    bool anything = chance(&self, 3) == 0;
    if (anything && fd > 0 && chance(&self, 40))
        call_anything(fd);
    else if (anything)
        open_one();
    else if (nvmap >= 0 && (rm < 0 || chance(&self, 2)))
        use_nvmap();
    else if (rm >= 0)
        use_rm();
}

static void tell(unsigned long number)
{
    struct jmsim_books books;
    char text[64], name[24];
    MUST(ioctl(board, JMSIM_BOARD_BOOKS, &books) == 0);
    snprintf(name, sizeof name, "%lu", number);
    JMASSIF_MARK(name);
    JMASSIF_SNAPSHOT();
    int n = snprintf(text, sizeof text, "%lu driver %llu - # step\n", number, (unsigned long long)books.process_bytes);
    MUST(write(log_fd, text, (size_t)n) == n);
}

int main(int argc, char **argv)
{
    char path[4096];
    if (argc != 4)
        return 2;
    self.state = strtoull(argv[2], NULL, 10) * 0x9e3779b97f4a7c15u + 1;
    char *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(pages != MAP_FAILED && munmap(pages + 8192, 4096) == 0);
    ours = (uint64_t *)pages;
    at_the_end = (uint64_t *)(pages + 8192 - 96);
    board = kept(open(JMSIM_BOARD_NODE, O_RDWR | O_CLOEXEC));
    snprintf(path, sizeof path, "%s.%d", argv[3], (int)getpid());
    log_fd = kept(open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_TRUNC, 0600));
    MUST(board >= 0 && log_fd >= 0);
    nvmap = kept(open("/dev/nvmap", O_RDWR | O_CLOEXEC));
    rm = kept(open("/dev/nvidiactl", O_RDWR | O_CLOEXEC));
    struct jmsim_books books;
    MUST(ioctl(board, JMSIM_BOARD_BOOKS, &books) == 0);
    release = books.release;
    uint32_t version[18] = {0}; /* as each client asks for it first */
    ioctl(rm, 0xc04846d2, version);
    for (unsigned long number = 1, end = strtoul(argv[1], NULL, 10); number <= end; number++) {
        step();
        tell(number);
    }
    _exit(7);
}
