// SPDX-License-Identifier: GPL-2.0-or-later
//
// Calls libiberty's demanglers in their forms that allocate nothing; see demangle.h. They need more stack than a thread
// of the program may have left, so they run on one of the recorder's own.

#include "host/native/demangle.h"
#include "base/libc.h"
#include "base/text.h"
#include "host/host.h"

// These are in libiberty's demangle.h, which some distributions do not install.
#define DMGL_PARAMS 1
#define DMGL_ANSI   2
typedef void (*demangle_callbackref)(const char *part, size_t bytes, void *to);
int cplus_demangle_v3_callback(const char *mangled, int options, demangle_callbackref add, void *to);
int rust_demangle_callback(const char *mangled, int options, demangle_callbackref add, void *to);

// Twice what the deepest names need that the demanglers, which limit their recursion, accept.
#define STACK_BYTES ((SizeT)1 << 20)

// A symbol of 200 bytes can stand for gigabytes. The demanglers hold nothing that must be freed, so they can be left in
// the middle.
#define MAX_NAME ((SizeT)1 << 20)

typedef struct {
    HChar *text;
    SizeT bytes, capacity;
} Name;

static Name name;
static void *too_long[5]; // where to go on

static void add_part(const char *part, size_t bytes, void *to)
{
    Name *n = to;
    if (n->bytes + bytes >= MAX_NAME)
        __builtin_longjmp(too_long, 1);
    if (n->bytes + bytes >= n->capacity) {
        n->capacity = (n->bytes + bytes + 1) * 2;
        n->text = host_realloc("jm.native.demangle", n->text, n->capacity);
    }
    memcpy(n->text + n->bytes, part, bytes);
    n->bytes += bytes;
    n->text[n->bytes] = 0;
}

typedef struct {
    const HChar *symbol;
    Bool is_demangled;
} Job;

// Rust's first: its older symbols look like those of C++.
static void demangle(void *context)
{
    Job *job = context;
    name.bytes = 0;
    job->is_demangled = rust_demangle_callback(job->symbol, DMGL_PARAMS | DMGL_ANSI, add_part, &name);
    if (job->is_demangled)
        return;
    name.bytes = 0;
    job->is_demangled = cplus_demangle_v3_callback(job->symbol, DMGL_PARAMS | DMGL_ANSI, add_part, &name);
}

static void call_on_stack(Addr top, void (*function)(void *), void *argument)
{
#if defined(__x86_64__)
    __asm__ volatile("movq %%rsp, %%rbx\n\tmovq %[top], %%rsp\n\tcall *%[function]\n\tmovq %%rbx, %%rsp"
                     : "+D"(argument)
                     : [top] "r"(top), [function] "r"(function)
                     : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3",
                       "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
                       "xmm15", "cc", "memory");
#elif defined(__aarch64__)
    register void *x0 __asm__("x0") = argument;
    __asm__ volatile("mov x19, sp\n\tmov sp, %[top]\n\tblr %[function]\n\tmov sp, x19"
                     : "+r"(x0)
                     : [top] "r"(top), [function] "r"(function)
                     : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
                       "x16", "x17", "x18", "x19", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17",
                       "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31",
                       "cc", "memory");
#endif
}

const HChar *jm_demangled(const HChar *symbol)
{
    static UChar *stack;
    if (symbol[0] != '_' || (symbol[1] != 'Z' && symbol[1] != 'R'))
        return symbol;
    if (!stack)
        stack = host_alloc("jm.native.demangle", STACK_BYTES);
    static Job job;
    job = (Job){symbol, False};
    if (__builtin_setjmp(too_long))
        return job.symbol;
    call_on_stack(JM_ROUND_DOWN((Addr)stack + STACK_BYTES, 16), demangle, &job);
    return job.is_demangled && name.bytes ? name.text : job.symbol;
}

// ---- what libiberty calls ------------------------------------------------------------------------------------

// Numbers in names are printed by the C library's sprintf in its checked form; stdio is not for us.
int __sprintf_chk(char *to, int flag, size_t size, const char *format, ...);
int __snprintf_chk(char *to, size_t size, int flag, size_t object_size, const char *format, ...);

int __sprintf_chk(char *to, int flag, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    UInt n = jm_format_list(to, size < 64 ? size : 64, format, arguments);
    va_end(arguments);
    return n;
}

int __snprintf_chk(char *to, size_t size, int flag, size_t object_size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    UInt n = jm_format_list(to, size, format, arguments);
    va_end(arguments);
    return n;
}
