// SPDX-License-Identifier: GPL-2.0-or-later
//
// Capturing and interning stacks. Consecutive stacks of a thread mostly share their outer frames, so each thread
// remembers its last stack with the node of every prefix: frames are compared from the outside, and only those that
// differ are looked up.

#include "stack.h"
#include "options.h"
#include "python.h"
#include "stats.h"
#include "symbol.h"
#include "table.h"
#include "trace.h"
#include "unwind.h"

// Deep enough for Python recursion at its default limit of 1000, at three or four native frames a call.
#define MAX_FRAMES 8192
#define MAX_KEYS   (2 * MAX_FRAMES) // with Python frames among them

// _start and what the unwinder finds below it; what is more is looked up every time.
#define MAX_BELOW_MAIN 8

typedef struct {
    NodeId parent;
    FrameId frame;
    UInt heap_account;
    OwnerId host_owner; // of the stack that ends here
    OwnerId device_owner;
    OwnerId driver_owner;
    RoleId role;
} Node;

typedef struct {
    Addr *keys; // outermost first: code addresses, or Python frames (python.h)
    NodeId *nodes;
    UInt depth;
    UInt capacity;
    Addr below_main[MAX_BELOW_MAIN]; // outermost first: what was cut off
    UInt n_below_main;
} LastStack; // of one thread

static Table nodes = JM_TABLE("jm.node", Node);
static Index node_index = JM_INDEX("jm.node");
static LastStack *last_stacks;
static ULong n_completed;

static inline Node *node_at(NodeId id)
{
    return jm_table_at(&nodes, id);
}

static inline ULong node_hash(NodeId parent, FrameId frame)
{
    return jm_hash(((ULong)parent << 32) | frame);
}

static ULong node_hash_of(UInt id)
{
    return node_hash(node_at(id)->parent, node_at(id)->frame);
}

static NodeId child(NodeId parent, FrameId frame)
{
    jm_index_reserve(&node_index, node_hash_of);
    UInt slot = (UInt)node_hash(parent, frame) & node_index.mask;
    while (node_index.slots[slot]) {
        NodeId id = node_index.slots[slot];
        const Node *n = node_at(id);
        if (n->parent == parent && n->frame == frame)
            return id;
        slot = (slot + 1) & node_index.mask;
    }
    NodeId id = jm_table_add(&nodes);
    Node *n = node_at(id);
    n->parent = parent;
    n->frame = frame;
    n->host_owner = jm_symbol_host_owner(frame);
    n->device_owner = jm_symbol_device_owner(frame);
    n->driver_owner = jm_symbol_driver_owner(frame);
    n->role = jm_symbol_role(frame);
    if (parent) {
        RoleId outer_role = node_at(parent)->role;
        if (!n->role || (outer_role && outer_role < n->role))
            n->role = outer_role;
        // A frame without an owner leaves the decision to its callers.
        if (n->host_owner == JM_OWNER_NONE)
            n->host_owner = node_at(parent)->host_owner;
        if (n->device_owner == JM_OWNER_NONE)
            n->device_owner = node_at(parent)->device_owner;
        if (n->driver_owner == JM_OWNER_NONE)
            n->driver_owner = node_at(parent)->driver_owner;
    }
    node_index.slots[slot] = id;
    node_index.used++;
    jm_trace_node(id, parent, frame);
    return id;
}

static NodeId push_location(NodeId parent, const Location *at)
{
    if (at->n_frames == 1)
        return child(parent, at->frame);
    for (Int i = at->n_frames - 1; i >= 0; i--)
        parent = child(parent, at->inlined[i]);
    return parent;
}

static LastStack *last_stack_of(ThreadId tid)
{
    if (!last_stacks)
        last_stacks = VG_(calloc)("jm.stack", VG_N_THREADS, sizeof *last_stacks);
    return &last_stacks[tid];
}

static void make_room(LastStack *last, UInt depth)
{
    if (depth <= last->capacity)
        return;
    last->capacity = depth < 64 ? 64 : depth * 2;
    last->keys = VG_(realloc)("jm.stack", last->keys, last->capacity * sizeof *last->keys);
    last->nodes = VG_(realloc)("jm.stack", last->nodes, last->capacity * sizeof *last->nodes);
}

// How many of the outermost frames lie below main and are not shown (unless --show-below-main=yes). They are the same
// from one stack of a thread to the next, so they are compared with the last stack's before they are looked up.
static UInt n_below_main(LastStack *last, const Addr *ips, UInt n)
{
    if (VG_(clo_show_below_main))
        return 0;
    UInt k = last->n_below_main;
    Bool same = k > 0 && k < n;
    for (UInt i = 0; same && i < k; i++)
        same = last->below_main[i] == ips[n - 1 - i];
    // There may be one more: start-up code also calls constructors, and from further out than main.
    for (k = same ? k : 0; k < n && jm_symbol_locate(ips[n - 1 - k])->is_below_main; k++)
        if (k < MAX_BELOW_MAIN)
            last->below_main[k] = ips[n - 1 - k];
    last->n_below_main = k < MAX_BELOW_MAIN ? k : MAX_BELOW_MAIN;
    return k < n ? k : 0; // nothing but start-up code: show it
}

// The stack as the unwinder sees it; one thread runs at a time.
static Addr ips[MAX_FRAMES];
static Addr sps[MAX_FRAMES + 1];
static Addr keys[MAX_KEYS];

// Whether the unwinder lost its way before it came back to the wrapper's caller: without unwind tables it stops, or
// follows frame pointers, which may lead anywhere. If so, leaves the frames that can be believed in `*n`.
static Bool is_broken(const StackBase *base, UInt *n)
{
    if (!base || !base->node || sps[0] > base->sp) // a signal handler may have a stack of its own
        return False;
    UInt inside = 0;
    while (inside < *n && sps[inside] <= base->sp)
        inside++;
    if (inside == MAX_FRAMES || (inside < *n && ips[inside] == base->caller_ip))
        return False;
    UInt kept = 0;
    while (kept < inside && jm_symbol_locate(ips[kept])->has_object) // else it is no code, nor is what follows it
        kept++;
    // A stack that is whole and does not come by the wrapper: the call is over, left by longjmp as a failing dlopen is.
    if (kept == inside && inside < *n && ips[*n - 1] == base->outermost_ip)
        return False;
    while (kept > 0 && jm_symbol_locate(ips[kept - 1])->is_allocator)
        kept--;
    *n = kept;
    return True;
}

// A wrapper's frame stands beside the wrapped function's own and says nothing more.
static UInt drop_wrappers(UInt n_keys)
{
    UInt kept = 0;
    for (UInt i = 0; i < n_keys; i++)
        if (jm_python_is_frame(keys[i]) || !jm_symbol_locate(keys[i])->is_preload)
            keys[kept++] = keys[i];
    return kept;
}

static NodeId push(NodeId parent, Addr key)
{
    return jm_python_is_frame(key) ? child(parent, jm_python_frame(key)) : push_location(parent, jm_symbol_locate(key));
}

// `is_base`: what is captured is the base of others (stack.h), which keeps the wrapper's frame.
static Addr outermost_ip; // of the stack last captured

static NodeId capture(ThreadId tid, const StackBase *base, Bool is_base, Bool *ignored)
{
    *ignored = False;
    UInt n = jm_unwind(tid, ips, sps, MAX_FRAMES);
    if (n < 2)
        ips[1] = 0;
    sps[n] = 0;
    UInt first = 0;
    while (first < n) {
        const Location *at = jm_symbol_locate(ips[first]);
        *ignored = at->is_ignored;
        if (!at->is_allocator)
            break;
        first++;
    }
    if (first == n)
        *ignored = False;
    if (is_base)
        first = 0;

    LastStack *last = last_stack_of(tid);
    NodeId start = 0;
    outermost_ip = n > 0 ? ips[n - 1] : 0;
    if (is_broken(base, &n)) {
        n = n > first ? n : first;
        start = base->node;
        outermost_ip = base->outermost_ip;
        n_completed++;
    } else {
        n -= n_below_main(last, ips + first, n - first);
    }

    // A broken stack's base has the Python frames.
    UInt n_keys;
    if (start) {
        n_keys = n - first;
        VG_(memcpy)(keys, ips + first, n_keys * sizeof *keys);
    } else {
        n_keys = jm_python_interleave(tid, ips + first, sps + first, n - first, keys, MAX_KEYS);
    }
    if (!is_base && base)
        n_keys = drop_wrappers(n_keys);
    if (jm_options.depth && n_keys > (UInt)jm_options.depth) {
        n_keys = jm_options.depth;
        start = 0;
    }

    make_room(last, n_keys);
    UInt same = 0;
    if (!start)
        while (same < n_keys && same < last->depth && last->keys[same] == keys[n_keys - 1 - same])
            same++;
    NodeId node = same ? last->nodes[same - 1] : start;
    for (UInt d = same; d < n_keys; d++) {
        Addr key = keys[n_keys - 1 - d];
        node = push(node, key);
        last->keys[d] = key;
        last->nodes[d] = node;
    }
    // A completed stack's prefixes hang under its base, so they are no prefixes for the next stack.
    last->depth = start ? 0 : n_keys;
    return node;
}

NodeId jm_stack_capture(ThreadId tid, const StackBase *base, Bool *ignored)
{
    return capture(tid, base, False, ignored);
}

void jm_stack_capture_base(ThreadId tid, const StackBase *outer, StackBase *base)
{
    Bool ignored;
    base->node = capture(tid, outer, True, &ignored);
    base->sp = VG_(get_SP)(tid);
    base->caller_ip = ips[1];
    base->outermost_ip = outermost_ip;
}

NodeId jm_stack_push_mapped(NodeId node, const HChar *path, Bool is_object)
{
    return child(node, jm_symbol_mapped_frame(path, is_object));
}

OwnerId jm_stack_host_owner(NodeId node)
{
    OwnerId owner = node ? node_at(node)->host_owner : JM_OWNER_NONE;
    return owner == JM_OWNER_NONE ? JM_OWNER_UNKNOWN : owner;
}

OwnerId jm_stack_driver_owner(NodeId node)
{
    OwnerId owner = node ? node_at(node)->driver_owner : JM_OWNER_NONE;
    return owner == JM_OWNER_NONE ? JM_OWNER_UNKNOWN : owner;
}

OwnerId jm_stack_device_owner(NodeId node)
{
    OwnerId owner = node ? node_at(node)->device_owner : JM_OWNER_NONE;
    return owner == JM_OWNER_NONE ? JM_OWNER_UNKNOWN : owner;
}

RoleId jm_stack_role(NodeId node)
{
    return node ? node_at(node)->role : 0;
}

Bool jm_stack_has_role(NodeId node, RoleId role)
{
    for (; node && node_at(node)->role; node = node_at(node)->parent) {
        RoleId of_frame = jm_symbol_role(node_at(node)->frame);
        if (of_frame && (of_frame == role || VG_STREQ(jm_role_name(of_frame), jm_role_name(role))))
            return True;
    }
    return False;
}

UInt *jm_stack_heap_account(NodeId node)
{
    return &node_at(node)->heap_account;
}

void jm_stack_forget(void)
{
    for (ThreadId tid = 0; last_stacks && tid < VG_N_THREADS; tid++)
        last_stacks[tid].depth = last_stacks[tid].n_below_main = 0;
}

void jm_stack_thread_exit(ThreadId tid)
{
    LastStack *last = last_stack_of(tid);
    if (last->keys) {
        VG_(free)(last->keys);
        VG_(free)(last->nodes);
    }
    VG_(memset)(last, 0, sizeof *last);
}

ULong jm_stack_n_completed(void)
{
    return n_completed;
}

void jm_stack_stats(void)
{
    jm_stats_table("nodes of stacks", &nodes);
    jm_stats_index(&node_index);
    UInt n = 0;
    SizeT bytes = last_stacks ? VG_N_THREADS * sizeof *last_stacks : 0;
    for (ThreadId tid = 0; last_stacks && tid < VG_N_THREADS; tid++) {
        n += last_stacks[tid].capacity > 0;
        bytes += last_stacks[tid].capacity * (sizeof *last_stacks->keys + sizeof *last_stacks->nodes);
    }
    jm_stats_row("jm.stack", "threads' last stacks", n, bytes);
    jm_stats_row("static", "frames of one stack, at most", MAX_FRAMES, sizeof ips + sizeof sps + sizeof keys);
}
