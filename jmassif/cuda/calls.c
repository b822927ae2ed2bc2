// SPDX-License-Identifier: GPL-2.0-or-later
//
// The actions' handlers; see calls.h. A handler runs after a call has succeeded, and reads its arguments and results
// from the program's memory.
//
// A runtime call consists of driver calls. The innermost call that reports a block creates it; the calls around it only
// add frames to its stack. An outer call's result is recorded only if no inner call has recorded it, as the runtime may
// reach the driver in ways that cannot be wrapped.

#include "cuda/calls.h"
#include "base/array.h"
#include "base/client_memory.h"
#include "base/hooks.h"
#include "calls/scope.h"
#include "cuda/query.h"
#include "device/blocks.h"
#include "events/exhaustion.h"
#include "stack/stack.h"
#include "tensors/tensor.h"
#include "trace/trace.h"

static ULong n_unknown_frees;
static ULong n_refused;

// ---- words of a call -----------------------------------------------------------------------------------------

static inline UWord argument_p(const CudaCall *call)
{
    return call->words[call->function->p];
}

static inline UWord argument_s(const CudaCall *call)
{
    return call->words[call->function->s];
}

// The word in the program's memory that `word` points to; 0 if unreadable.
static UWord returned_at(const CudaCall *call, UInt word)
{
    UWord value;
    jm_read_word(call->words[word], &value);
    return value;
}

// The result that the call has stored through its parameter.
static UWord returned(const CudaCall *call)
{
    return returned_at(call, call->function->p);
}

// ---- requested bytes -----------------------------------------------------------------------------------------

static ULong bytes_in_s(const CudaCall *call)
{
    return argument_s(call);
}

static UWord element_bytes(const CudaCall *call)
{
    static const UChar bytes[] = {
        [ACTION_OVERWRITE_D16] = 2,    [ACTION_OVERWRITE_2D_D16] = 2, [ACTION_OVERWRITE_D32] = 4,
        [ACTION_OVERWRITE_2D_D32] = 4, [ACTION_OVERWRITE_2D] = 1,     [ACTION_OVERWRITE_3D] = 1};
    return bytes[call->function->action];
}

static ULong bytes_of_elements(const CudaCall *call)
{
    return argument_s(call) * element_bytes(call);
}

// (pointer, pitch, width, height, …): a lower bound, since rows are padded
static ULong bytes_of_rows(const CudaCall *call)
{
    return call->words[2] * call->words[3];
}

// (pointer; width, height, depth): a lower bound, too
static ULong bytes_of_extent(const CudaCall *call)
{
    return call->words[1] * call->words[2] * call->words[3];
}

// ---- sizes of arrays, from structures of CUDA's public headers (driver_types.h, cuda.h) --------------------------

// The driver's alignment and tiling are below the API and not included.

// Flags CUDA_ARRAY3D_* and cudaArray* that make depth a number of layers or faces, equal at each level.
#define LAYERED 0x01
#define CUBEMAP 0x04

typedef struct {
    UWord width, height, depth; // 0: a missing dimension
    ULong element_bytes;
    UInt flags;
} Shape;

// Each level of a mipmap halves every dimension. CUDA makes at least one level, and at most as many as it takes to
// halve the largest dimension to 1 (the documentation of cuMipmappedArrayCreate).
static ULong levels_bytes(Shape shape, UWord n_levels)
{
    const Bool has_layers = (shape.flags & (LAYERED | CUBEMAP)) != 0;
    ULong bytes = 0;
    for (UWord level = 0; level == 0 || level < n_levels; level++) {
        const UWord depth = has_layers ? shape.depth : shape.depth >> level;
        bytes += jm_larger(shape.width >> level, 1) * jm_larger(shape.height >> level, 1) * jm_larger(depth, 1) *
                 shape.element_bytes;
        if (jm_larger(jm_larger(shape.width, shape.height), shape.depth) >> level <= 1)
            break;
    }
    return bytes;
}

// cudaChannelFormatDesc: int x, y, z, w (bits of each channel), kind.
static ULong channel_bytes(Addr descriptor)
{
    ULong bits = 0;
    for (UInt i = 0; i < 4; i++) {
        UInt channel;
        jm_read_uint(descriptor + i * 4, &channel);
        bits += channel;
    }
    return bits / 8;
}

// cudaMallocArray(array, desc, width, height, flags), or with an extent cudaMalloc3DArray(array, desc, w, h, d, flags).
static ULong bytes_of_runtime_array(const CudaCall *call)
{
    const UWord *words = call->words;
    const Bool has_depth = call->function->s != 0;
    return levels_bytes((Shape){words[2], words[3], has_depth ? words[4] : 0, channel_bytes(words[1]), 0}, 1);
}

// cudaMallocMipmappedArray(array, desc, w, h, d, levels, flags): the sum of the levels that CUDA makes
static ULong bytes_of_runtime_mipmap(const CudaCall *call)
{
    const UWord *words = call->words;
    return levels_bytes((Shape){words[2], words[3], words[4], channel_bytes(words[1]), words[6]}, (UInt)words[5]);
}

// CUarray_format: the size of one channel of an unsigned, signed or floating-point number. Block-compressed and planar
// formats have about one byte per texel.
static UInt format_bytes(UInt format)
{
    if (format == 0x03 || format == 0x0a || format == 0x20)
        return 4;
    return format == 0x02 || format == 0x09 || format == 0x10 ? 2 : 1;
}

// The array that a CUDA_ARRAY_DESCRIPTOR (or, with depth, CUDA_ARRAY3D_DESCRIPTOR) describes.
static ULong described_bytes(Addr descriptor, Bool has_depth, UWord n_levels)
{
    Shape shape = {0};
    UInt format, n_channels;
    jm_read_word(descriptor, &shape.width);
    jm_read_word(descriptor + 8, &shape.height);
    if (has_depth)
        jm_read_word(descriptor + 16, &shape.depth);
    Addr rest = descriptor + (has_depth ? 24 : 16);
    jm_read_uint(rest, &format);
    jm_read_uint(rest + 4, &n_channels);
    if (has_depth)
        jm_read_uint(rest + 8, &shape.flags);
    shape.element_bytes = (ULong)format_bytes(format) * n_channels;
    return levels_bytes(shape, (UInt)n_levels);
}

static ULong bytes_of_driver_array(const CudaCall *call)
{
    return described_bytes(call->words[1], call->function->s != 0, 1);
}

static ULong bytes_of_driver_mipmap(const CudaCall *call)
{
    return described_bytes(call->words[1], True, call->words[2]);
}

// ---- blocks --------------------------------------------------------------------------------------------------

// Opens a block that the call has returned, unless an inner call has opened it. True if it was opened here.
static Bool open_block(const CudaCall *call, Space space, UWord key, ULong bytes)
{
    Kind kind = call->function->kind;
    if (!key || jm_scope_has(call->tid, SCOPE_MADE(kind)))
        return False;
    if (bytes >= JM_ADDRESS_SPACE) {
        jm_calls_refuse();
        return False;
    }
    jm_device_block_open(call->tid, space, key, kind, bytes);
    return True;
}

// Opens a block, and queries only its context.
static void make(const CudaCall *call, Space space, UWord key, ULong bytes)
{
    if (open_block(call, space, key, bytes))
        jm_query_block(call, (QuerySubject){.key = key});
}

static void close_block(const CudaCall *call, Space space, UWord key)
{
    if (!key || jm_scope_has(call->tid, SCOPE_FREED))
        return;
    DeviceBlock *block = jm_device_block_find(space, key);
    if (block)
        jm_device_block_close(call->tid, block);
    else
        n_unknown_frees++;
}

static void make_block(const CudaCall *call)
{
    const Kind kind = call->function->kind;
    const Space space = kind == KIND_ARRAY ? SPACE_ARRAY : kind == KIND_VMM ? SPACE_VMM : SPACE_POINTER;
    make(call, space, returned(call), jm_calls_requested(call).bytes);
}

// (pointer, pitch, width, height, …)
static void make_pitched(const CudaCall *call)
{
    make(call, SPACE_POINTER, returned(call), returned_at(call, 1) * call->words[3]);
}

// (cudaPitchedPtr: pointer, pitch, …; width, height, depth)
static void make_3d(const CudaCall *call)
{
    UWord pitch;
    jm_read_word(call->words[0] + sizeof(UWord), &pitch);
    make(call, SPACE_POINTER, returned(call), pitch * call->words[2] * call->words[3]);
}

static void free_pointer(const CudaCall *call)
{
    DeviceBlock *block = jm_device_block_find(SPACE_POINTER, argument_p(call));
    UWord pool = block ? block->pool : 0;
    close_block(call, SPACE_POINTER, argument_p(call));
    if (pool)
        jm_query_pool(call, pool);
}

static void free_array(const CudaCall *call)
{
    close_block(call, SPACE_ARRAY, argument_p(call));
}

// ---- pools ---------------------------------------------------------------------------------------------------

static void make_async(const CudaCall *call)
{
    UWord key = returned(call);
    if (open_block(call, SPACE_POINTER, key, jm_calls_requested(call).bytes))
        jm_query_block(call, (QuerySubject){.key = key, .is_async = True});
}

// (pointer, size, pool, stream)
static void make_from_pool(const CudaCall *call)
{
    UWord key = returned(call), pool = call->words[2];
    if (!open_block(call, SPACE_POINTER, key, jm_calls_requested(call).bytes))
        return;
    jm_device_block_set_pool(jm_device_block_find(SPACE_POINTER, key), pool);
    jm_query_block(call, (QuerySubject){.key = key, .pool = pool});
}

static void destroy_pool(const CudaCall *call)
{
    jm_pool_destroyed(argument_p(call));
}

static void trim_pool(const CudaCall *call)
{
    jm_query_pool(call, argument_p(call));
}

// ---- copies --------------------------------------------------------------------------------------------------

// cudaMemcpyKind.
enum { HOST_TO_DEVICE = 1, DEVICE_TO_DEVICE = 3, BY_ADDRESS = 4 };

static void copied(const CudaCall *call, CopiedBytes c, UInt direction)
{
    if (jm_calls_is_capturing() || (c.bytes >= JM_LEAST_COPY && jm_scope_has(call->tid, SCOPE_COPIED)))
        return; // it happens when the graph is launched; a driver's call inside it has been recorded
    if (direction != HOST_TO_DEVICE && direction != DEVICE_TO_DEVICE && direction != BY_ADDRESS)
        return;
    if (direction == DEVICE_TO_DEVICE)
        c.from = 0;
    c.is_of_unknown_side = direction == BY_ADDRESS;
    if (c.bytes >= JM_LEAST_COPY)
        jm_scope_mark(call->tid, SCOPE_COPIED);
    jm_hooks.copied(call->tid, &c);
}

static CopiedBytes plain(const CudaCall *call)
{
    ULong bytes = jm_calls_requested(call).bytes;
    return (CopiedBytes){call->words[0], call->words[1], bytes, bytes, bytes, False};
}

// (to, from, bytes, …); of OVERWRITE: (to, value, bytes or elements, …)
#define COPY(name, direction)                                                                                          \
    static void name(const CudaCall *call)                                                                             \
    {                                                                                                                  \
        copied(call, plain(call), direction);                                                                          \
    }
COPY(copy, (UInt)call->words[3])
COPY(copy_to_device, HOST_TO_DEVICE)
COPY(copy_unified, BY_ADDRESS)
COPY(overwrite, DEVICE_TO_DEVICE)

static CopiedBytes rows_of(Addr to, UWord to_pitch, Addr from, UWord from_pitch, UWord width, UWord height)
{
    UWord above = height ? height - 1 : 0;
    return (CopiedBytes){to, from, to_pitch * above + width, from_pitch * above + width, (ULong)width * height, False};
}

// (to, pitch, from, pitch, width, height, direction, …)
static void copy_2d(const CudaCall *call)
{
    const UWord *w = call->words;
    copied(call, rows_of(w[0], w[1], w[2], w[3], w[4], w[5]), (UInt)w[6]);
}

static ULong bytes_of_2d(const CudaCall *call)
{
    return call->words[4] * call->words[5];
}

// (to, pitch, value, width in elements, height, …); of 3D (to, pitch, rows of a layer, width, height, layers).
static ULong bytes_of_filled_rows(const CudaCall *call)
{
    const UWord *w = call->words;
    return bytes_of_elements(call) * w[4] * (call->function->action == ACTION_OVERWRITE_3D ? w[5] : 1);
}

static void overwrite_rows(const CudaCall *call)
{
    const UWord *w = call->words;
    const UWord above = call->function->action == ACTION_OVERWRITE_3D ? (w[5] - 1) * w[2] : 0;
    if (bytes_of_filled_rows(call))
        copied(call, rows_of(w[0], w[1], 0, 0, bytes_of_elements(call), above + w[4]), DEVICE_TO_DEVICE);
}

// CUDA_MEMCPY2D of cuda.h, in words: the source's x, y, type, host, device, array and pitch; the same of the
// destination; width and height.
enum { AT_X, AT_Y, AT_TYPE, AT_HOST, AT_DEVICE, AT_ARRAY, AT_PITCH, DESTINATION, AT_WIDTH = 14, AT_HEIGHT };
enum { ON_HOST = 1, ON_DEVICE = 2, BY_UNIFIED_ADDRESS = 4 }; // CUmemorytype

static UWord described(const CudaCall *call, UInt word)
{
    UWord value;
    jm_read_word(call->words[0] + word * sizeof value, &value);
    return value;
}

static ULong bytes_of_described_2d(const CudaCall *call)
{
    return described(call, AT_WIDTH) * described(call, AT_HEIGHT);
}

static void copy_2d_described(const CudaCall *call)
{
    const UInt from_type = (UInt)described(call, AT_TYPE), to_type = (UInt)described(call, DESTINATION + AT_TYPE);
    const UWord from_pitch = described(call, AT_PITCH), to_pitch = described(call, DESTINATION + AT_PITCH);
    const UWord from = described(call, from_type == ON_HOST ? AT_HOST : AT_DEVICE) +
                       described(call, AT_Y) * from_pitch + described(call, AT_X);
    const UWord to = described(call, DESTINATION + AT_DEVICE) + described(call, DESTINATION + AT_Y) * to_pitch +
                     described(call, DESTINATION + AT_X);
    const Bool is_by_address = to_type == BY_UNIFIED_ADDRESS || from_type == BY_UNIFIED_ADDRESS;
    if (to_type != ON_DEVICE && to_type != BY_UNIFIED_ADDRESS)
        return;
    copied(call, rows_of(to, to_pitch, from, from_pitch, described(call, AT_WIDTH), described(call, AT_HEIGHT)),
           is_by_address          ? BY_ADDRESS
           : from_type == ON_HOST ? HOST_TO_DEVICE
                                  : DEVICE_TO_DEVICE);
}

static void register_host(const CudaCall *call)
{
    jm_hooks.registered(call->tid, argument_p(call), argument_s(call));
}

static void unregister_host(const CudaCall *call)
{
    jm_hooks.registered(call->tid, argument_p(call), 0);
}

// ---- imported memory -----------------------------------------------------------------------------------------

// Opening a handle that is already open returns the same pointer, which must be closed as often.
static Bool is_opened_again(const CudaCall *call, UWord key)
{
    DeviceBlock *block = jm_device_block_find(SPACE_POINTER, key);
    if (!block || block->kind != KIND_IMPORTED || jm_scope_has(call->tid, SCOPE_MADE(KIND_IMPORTED)))
        return False;
    block->n_handles++;
    jm_scope_mark(call->tid, SCOPE_MADE(KIND_IMPORTED));
    return True;
}

static void open_ipc(const CudaCall *call)
{
    UWord key = returned(call);
    if (!is_opened_again(call, key) && open_block(call, SPACE_POINTER, key, 0))
        jm_query_block(call, (QuerySubject){.key = key, .is_imported = True});
}

static void close_ipc(const CudaCall *call)
{
    DeviceBlock *block = jm_device_block_find(SPACE_POINTER, argument_p(call));
    if (!block || block->n_handles <= 1 || jm_scope_has(call->tid, SCOPE_FREED)) {
        close_block(call, SPACE_POINTER, argument_p(call));
        return;
    }
    block->n_handles--;
    jm_scope_mark(call->tid, SCOPE_FREED);
}

// (memory, descriptor): an int, padding, a union of 16 bytes, and the size at 24.
static void import_external(const CudaCall *call)
{
    UWord bytes;
    jm_read_word(call->words[1] + 24, &bytes);
    make(call, SPACE_EXTERNAL, returned(call), bytes);
}

static void destroy_external(const CudaCall *call)
{
    close_block(call, SPACE_EXTERNAL, argument_p(call));
}

// ---- virtual memory management: handles and addresses --------------------------------------------------------

// The size is known only when the memory is mapped.
static void import_handle(const CudaCall *call)
{
    make(call, SPACE_VMM, returned(call), 0);
}

// The handle is the one that was mapped (the documentation of cuMemRetainAllocationHandle).
static void retain_handle(const CudaCall *call)
{
    DeviceBlock *block = jm_device_block_find(SPACE_VMM, returned(call));
    if (block)
        block->n_handles++;
}

static void release_handle(const CudaCall *call)
{
    DeviceBlock *block = jm_device_block_find(SPACE_VMM, argument_p(call));
    if (block && block->n_handles) {
        block->n_handles--;
        jm_device_block_release_if_unused(call->tid, block);
    } else {
        n_unknown_frees++;
    }
}

// (address, size, offset, handle, flags)
static void map_handle(const CudaCall *call)
{
    jm_device_map(call->tid, call->words[0], call->words[1], call->words[3]);
    jm_exhaustion_pieces_used(call->tid);
}

// (address, size)
static void unmap_handle(const CudaCall *call)
{
    jm_device_unmap(call->tid, call->words[0], call->words[1]);
}

// ---- contexts, captures --------------------------------------------------------------------------------------

typedef struct {
    UInt device;
    UWord context;
    UInt n_retained;
} Primary;

static Array primaries = JM_ARRAY("jm.cuda", Primary);

static Primary *primary_of(UInt device)
{
    return jm_array_find_or_add(&primaries, &(Primary){.device = device}, sizeof device);
}

static void destroy_context(const CudaCall *call)
{
    jm_device_blocks_close_context(call->tid, argument_p(call));
}

// (context, device)
static void retain_primary(const CudaCall *call)
{
    Primary *primary = primary_of((UInt)call->words[1]);
    primary->context = returned(call);
    primary->n_retained++;
    jm_query_integrated(call);
}

static void release_primary(const CudaCall *call)
{
    Primary *primary = primary_of((UInt)argument_p(call));
    if (primary->n_retained && --primary->n_retained == 0)
        jm_device_blocks_close_context(call->tid, primary->context);
}

static void reset_primary(const CudaCall *call)
{
    Primary *primary = primary_of((UInt)argument_p(call));
    primary->n_retained = 0;
    jm_device_blocks_close_context(call->tid, primary->context);
}

// If the driver's calls are wrapped, its reset has closed the context's blocks. These are the runtime's own, with no
// known context.
static void reset_device(const CudaCall *call)
{
    jm_device_blocks_close_context(call->tid, 0);
}

static UInt n_captures; // captures under way

static void begin_capture(const CudaCall *call)
{
    n_captures += jm_scope_depth(call->tid) == 1;
}

static void end_capture(const CudaCall *call)
{
    n_captures -= jm_scope_depth(call->tid) == 1 && n_captures;
}

Bool jm_calls_is_capturing(void)
{
    return n_captures != 0;
}

// ---- reports of frameworks -----------------------------------------------------------------------------------

static void report_tensor(const CudaCall *call)
{
    jm_tensor_reported(call->tid, call->words, call->function->s);
}

// (bytes, allocated, reserved, device)
static void report_out_of_memory(const CudaCall *call)
{
    jm_exhaustion_framework(call->tid, call->words[0], call->words[1], call->words[2]);
}

// TensorFlow uses this allocator for host memory too, which lies in no segment.
static void report_handed_out(const CudaCall *call)
{
    if (call->result && argument_s(call))
        jm_tensor_handed_out(call->tid, call->result, argument_s(call));
}

static void report_taken_back(const CudaCall *call)
{
    if (argument_p(call))
        jm_tensor_taken_back(call->tid, argument_p(call));
}

// ---- the table -----------------------------------------------------------------------------------------------

#define ACTION(name, handler, request, flags) [ACTION_##name] = {handler, request, flags},
static const struct {
    void (*handler)(const CudaCall *call);
    ULong (*request)(const CudaCall *call);
    UInt flags;
} actions[N_ACTIONS] = {
#include "cuda/actions.def"
};

Bool jm_calls_is(const CudaFunction *function, ActionFlags flag)
{
    return (actions[function->action].flags & flag) != 0;
}

void jm_calls_act(const CudaCall *call)
{
    if (actions[call->function->action].handler)
        actions[call->function->action].handler(call);
}

Requested jm_calls_requested(const CudaCall *call)
{
    if (!actions[call->function->action].request)
        return (Requested){KIND_DRIVER, 0}; // a context, a module
    return (Requested){call->function->kind, actions[call->function->action].request(call)};
}

void jm_calls_refuse(void)
{
    n_refused++;
}

void jm_calls_write_counters(void)
{
    jm_trace_nonzero("cuda-free-of-unknown-pointer", n_unknown_frees);
    jm_trace_nonzero("cuda-block-ended-unseen", jm_device_blocks_n_stale());
    jm_trace_nonzero("stack-completed-from-api-call", jm_stack_n_completed());
    jm_trace_nonzero("cuda-report-refused", n_refused);
}
