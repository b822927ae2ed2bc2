// SPDX-License-Identifier: GPL-2.0-or-later
//
// Names code of a library by the native host's symbols, on a stack as small as the C library allows. Arguments: the
// library; a file that is moved to its path after it was loaded, "-" to remove it, or "" to leave it; then addresses of
// the library in hexadecimal, each printed as "NAME entry" or "NAME", or symbols to demangle.

#define _GNU_SOURCE
#include "host/host.h"
#include "host/native/demangle.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { MOST_MAPPINGS = 500, MOST_ANSWERS = 100 };
static Mapping mappings[MOST_MAPPINGS];
static unsigned n_mappings;

static void read_mappings(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[5000];
    while (fgets(line, sizeof line, f) && n_mappings < MOST_MAPPINGS) {
        Mapping *m = &mappings[n_mappings++];
        char permissions[8];
        unsigned major, minor;
        int path = 0;
        sscanf(line, "%lx-%lx %7s %llx %x:%x %llu %n", &m->start, &m->end, permissions, &m->offset, &major, &minor,
               &m->inode, &path);
        m->device = makedev(major, minor);
        m->is_programs = True;
        m->is_readable = permissions[0] == 'r';
        m->as = line[path] == '/' ? MAPPED_FILE : MAPPED_ANONYMOUS;
        line[strcspn(line, "\n")] = 0;
        if (line[path] == '/')
            m->path = strdup(line + path);
    }
    fclose(f);
}

const HChar *jm_native_stub_name(Addr address)
{
    return NULL;
}

Bool host_mapping_at(Addr address, Mapping *found)
{
    *found = (Mapping){.as = MAPPED_NOTHING};
    for (unsigned i = 0; i < n_mappings; i++)
        if (mappings[i].start <= address && address < mappings[i].end)
            *found = mappings[i];
    return found->as != MAPPED_NOTHING;
}

Bool host_is_readable(Addr start, SizeT bytes)
{
    Mapping m;
    return host_mapping_at(start, &m) && m.is_readable && bytes <= m.end - start;
}

void *host_alloc(const HChar *name, SizeT n)
{
    return malloc(n);
}
void *host_alloc_zeroed(const HChar *name, SizeT n, SizeT each)
{
    return calloc(n, each);
}
void *host_realloc(const HChar *name, void *p, SizeT n)
{
    return realloc(p, n);
}
void host_free(void *p)
{
    free(p);
}
void host_print(HostOutput kind, const HChar *text) {}
void host_fail(const HChar *condition, const HChar *path, UInt line, const HChar *function)
{
    abort();
}

static Addr bias;
static int n_asked;
static char **asked;
static char *answers[MOST_ANSWERS];

static void keep_name(void *context, const HostFrame *frame)
{
    *(char **)context = frame->function ? strdup(frame->function) : "?";
}

static void *answer(void *unused)
{
    for (int i = 0; i < n_asked && i < MOST_ANSWERS; i++) {
        if (asked[i][0] == '_') {
            answers[i] = strdup(jm_demangled(asked[i]));
            continue;
        }
        Addr address = bias + strtoul(asked[i], NULL, 16);
        host_frames_at(address, True, keep_name, &answers[i]);
        const HChar *entry = host_function_entry(address);
        if (entry) {
            char *both = malloc(strlen(answers[i]) + 7);
            strcpy(both, answers[i]);
            answers[i] = strcat(both, " entry");
        }
    }
    return NULL;
}

int main(int n, char **arguments)
{
    struct link_map *map;
    void *library = dlopen(arguments[1], RTLD_NOW);
    if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
        return 1;
    bias = map->l_addr;
    read_mappings();
    if (arguments[2][0] == '-')
        remove(arguments[1]);
    else if (arguments[2][0])
        rename(arguments[2], arguments[1]);
    n_asked = n - 3;
    asked = arguments + 3;
    const HChar *path, *soname;
    Mapping code;
    host_mapping_at((Addr)dlsym(library, "exported"), &code);
    host_object_at((Addr)dlsym(library, "exported"), &path, &soname);
    printf("%s", soname ? soname : "?");
    printf(" %s\n", host_knows_object(code.start, code.end, &soname) && soname ? soname : "?");
    // A page that cannot be touched lies before the stack.
    size_t before = 65536, bytes = sysconf(_SC_THREAD_STACK_MIN);
    char *room = mmap(NULL, before + bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(room, before, PROT_NONE);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstack(&attributes, room + before, bytes) != 0 ||
        pthread_create(&thread, &attributes, answer, NULL) != 0)
        return 1;
    pthread_join(thread, NULL);
    for (int i = 0; i < n_asked && i < MOST_ANSWERS; i++)
        puts(answers[i]);
    return 0;
}
