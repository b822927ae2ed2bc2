/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's side of a simulated board's driver memory: a supervisor that answers the system calls on device nodes of
 * the processes below it. One thread, no locks: a call is answered before the next one is read.
 *
 * A device, and a buffer, is a memfd. The supervisor keeps one description of it, the master; every description that it
 * hands out carries a shared lock, so that the master tells at any time, without asking any process, whether a
 * descriptor or a mapping is left anywhere: in a child, in a socket's queue, wherever. */
#ifndef BOARD_H
#define BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "jmsim_board.h"

#define PAGE_BYTES ((uint64_t)4096)

/* R39 is an Orin with L4T 39: nvmap as of r38, nvgpu as of r36. A Thor with L4T 39 is taken for r38. */
enum release { R32, R35, R36, R38, RM535, RM580, R39, N_RELEASES };
extern enum release release;

enum device {
    NO_DEVICE,
    NVMAP,
    GPU_CTRL,
    GPU_AS,
    GPU_CHANNEL,
    GPU_TSG,
    GPU_OTHER, /* opens, and does nothing */
    RM_CTL,
    RM_GPU,
    UVM,
    BOARD,
    DMABUF,  /* of nvmap */
    FOREIGN, /* of another driver */
    CLOSED,  /* stands for a descriptor that the kernel closed: see client_close */
};

/* Of addresses: `to` is behind the last. */
struct extent {
    uint64_t from, to;
};

/* A system call that waits for its answer. */
struct call {
    uint64_t id;
    pid_t tid;
    struct file *file;
    uint32_t command;
    uint64_t argument;
    uint8_t *data; /* the argument's structure */
    size_t size;
};

struct file {
    struct file *next, *next_same; /* all files; those of the same hash */
    enum device device;
    int master;
    uint64_t inode;
    bool was_held;
    void *object;          /* of the device's own kind */
    uint64_t mapped_bytes; /* RM: what may be mapped from here */
};

/* file.c */
extern struct file *files;
struct file *file_new(enum device device, uint64_t bytes); /* NULL: no descriptor left */
void file_delete(struct file *file);
struct file *file_of(pid_t tid, int fd); /* NULL: not one of ours */
bool file_held(const struct file *file);
int file_open(const struct file *file); /* a new description, locked; to be handed out */

/* client.c: what is done in a process that waits. Errors are negative. */
bool client_read(pid_t tid, uint64_t from, void *to, size_t bytes);
bool client_write(pid_t tid, uint64_t to, const void *from, size_t bytes);
bool client_read_path(pid_t tid, uint64_t from, char *to, size_t bytes);
pid_t client_process(pid_t tid);
uint64_t client_private_bytes(pid_t process); /* resident, but for shared memory; 0: it is gone */
uint64_t client_mapped(pid_t tid, uint64_t inode, const struct extent *exclude, size_t n_exclude);
int client_hand_out(const struct call *call, const struct file *file, int from, bool close_on_exec);
int client_add(const struct call *call, int ours, bool close_on_exec); /* a descriptor that is no device's */
int client_close(const struct call *call, int fd);

/* The argument's fields. */
uint32_t get32(const struct call *call, size_t offset);
uint64_t get64(const struct call *call, size_t offset);
void put32(struct call *call, size_t offset, uint32_t value);
void put64(struct call *call, size_t offset, uint64_t value);

/* A command of a device: its number in each release (0: there is none), and what it does. `act` returns the system
 * call's result, or a negative error. */
struct command {
    uint32_t number[N_RELEASES];
    const char *name;
    long (*act)(struct call *call);
};
extern bool drivers_are_newer; /* they have ioctls from FIRST_NEWER on, which do nothing */
enum { FIRST_NEWER = 0xe0 };
extern const struct command nvmap_commands[], ctrl_commands[], as_commands[], channel_commands[], tsg_commands[],
    board_commands[];

/* books.c */
extern struct jmsim_books books;
extern uint64_t memory_bytes;                    /* what there is */
bool books_take(uint64_t *kind, uint64_t bytes); /* false: there is not as much */
void books_give(uint64_t *kind, uint64_t bytes);
void books_sweep(void); /* lets go of what nobody holds any more */
uint64_t books_of_process(pid_t process);
void logged(const struct call *call, const char *name, long result);
void log_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool log_open(const char *path);

/* devices.c */
enum device device_of(const char *path);
long device_open(const struct call *call, struct file **file, enum device device);
long device_ioctl(struct call *call);
long device_mmap(const struct call *call, uint64_t address, uint64_t bytes, uint64_t offset); /* 0: let it happen */
void device_closed(struct file *file);

/* nvmap.c */
struct buffer;
void nvmap_open(struct file *file, pid_t process);
void nvmap_close(struct file *file);
void nvmap_sweep(void);
struct buffer *buffer_of(const struct file *file); /* NULL: no allocated buffer of nvmap */
uint64_t buffer_bytes(const struct buffer *buffer);
void buffer_pin(struct buffer *buffer); /* by a mapping in a GPU address space */
void buffer_unpin(struct buffer *buffer);
uint64_t nvmap_bytes_of(pid_t process);

/* nvgpu.c */
void as_close(struct file *file);

/* rm.c */
long rm_ioctl(struct call *call);
void rm_close(struct file *file);
bool rm_memory_exists(uint32_t client, uint32_t memory);
uint64_t rm_bytes_of(pid_t process);

/* uvm.c */
long uvm_ioctl(struct call *call);
void uvm_close(struct file *file);
long uvm_mmap(const struct call *call, uint64_t address, uint64_t bytes, uint64_t offset);
uint64_t uvm_managed(pid_t tid);
uint64_t uvm_bytes_of(pid_t process);

/* machine.c: the machine's memory as its kernel tells it */
extern bool machine_is_board;
void machine_knows(pid_t process);
extern uint64_t machine_cma, machine_cached;                 /* bytes: the kernel's reserve, all free; the file cache */
uint64_t machine_left(void);                                 /* for drivers to take */
uint64_t machine_granted(void);                              /* by nvmap to one request */
int machine_file(const struct call *call, const char *path); /* a descriptor of ours; negative: none of its files */

/* notify.c */
int listener_install(void);              /* in the child: a filter; returns the listener, or a negative error */
int listener_serve(int fd, pid_t child); /* until no process is left; returns the child's status, as wait() tells it */
extern int listener;

#endif
