// SPDX-License-Identifier: GPL-2.0-or-later
//
// Capturing and interning stacks. Consecutive stacks of a thread mostly share their outer frames, so each thread
// remembers its last stack with the node of every prefix: frames are compared from the outside, and only those that
// differ are looked up.

#include "stack.h"
#include "options.h"
#include "symbol.h"
#include "table.h"
#include "trace.h"

// Deep enough for Python recursion at its default limit of 1000, at three or four native frames a call.
#define MAX_FRAMES 8192

// _start and what the unwinder finds below it; more than this is kept.
#define MAX_BELOW_MAIN 8

typedef struct {
    NodeId parent;
    FrameId frame;
    UInt heap_account;
    OwnerId host_owner; // of the stack that ends here
    OwnerId device_owner;
} Node;

typedef struct {
    Addr *ips; // outermost first
    NodeId *nodes;
    UInt depth;
    UInt capacity;
    Addr outermost_ip;
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
    if (parent) {
        // A frame without an owner leaves the decision to its callers.
        if (n->host_owner == JM_OWNER_NONE)
            n->host_owner = node_at(parent)->host_owner;
        if (n->device_owner == JM_OWNER_NONE)
            n->device_owner = node_at(parent)->device_owner;
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
    last->ips = VG_(realloc)("jm.stack", last->ips, last->capacity * sizeof *last->ips);
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
    if (same)
        return k;
    for (k = 0; k < MAX_BELOW_MAIN && k < n && jm_symbol_locate(ips[n - 1 - k])->is_below_main; k++)
        last->below_main[k] = ips[n - 1 - k];
    last->n_below_main = k;
    return k < n ? k : 0; // nothing but start-up code: show it
}

NodeId jm_stack_capture(ThreadId tid, const StackBase *base, Bool *ignored)
{
    static Addr ips[MAX_FRAMES]; // one thread runs at a time
    *ignored = False;
    UInt n = VG_(get_StackTrace)(tid, ips, MAX_FRAMES, NULL, NULL, 0);
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

    LastStack *last = last_stack_of(tid);
    NodeId start = 0;
    n -= n_below_main(last, ips + first, n - first);
    last->outermost_ip = n > first ? ips[n - 1] : 0;
    if (base && base->node && (n == first || (n < MAX_FRAMES && ips[n - 1] != base->outermost_ip))) {
        // The unwinder lost its way. What it made of data that is no code is worth nothing.
        while (n > first && !jm_symbol_locate(ips[n - 1])->has_object)
            n--;
        start = base->node;
        last->outermost_ip = base->outermost_ip;
        n_completed++;
    }
    if (jm_options.depth && n - first > (UInt)jm_options.depth) {
        n = first + jm_options.depth;
        start = 0;
    }

    UInt depth = n - first;
    make_room(last, depth);
    UInt same = 0;
    if (!start)
        while (same < depth && same < last->depth && last->ips[same] == ips[n - 1 - same])
            same++;
    NodeId node = same ? last->nodes[same - 1] : start;
    for (UInt d = same; d < depth; d++) {
        Addr ip = ips[n - 1 - d];
        node = push_location(node, jm_symbol_locate(ip));
        last->ips[d] = ip;
        last->nodes[d] = node;
    }
    // A completed stack's prefixes hang under its base, so they are no prefixes for the next stack.
    last->depth = start ? 0 : depth;
    return node;
}

Addr jm_stack_outermost_ip(ThreadId tid)
{
    return last_stack_of(tid)->outermost_ip;
}

OwnerId jm_stack_host_owner(NodeId node)
{
    OwnerId owner = node ? node_at(node)->host_owner : JM_OWNER_NONE;
    return owner == JM_OWNER_NONE ? JM_OWNER_UNKNOWN : owner;
}

OwnerId jm_stack_device_owner(NodeId node)
{
    OwnerId owner = node ? node_at(node)->device_owner : JM_OWNER_NONE;
    return owner == JM_OWNER_NONE ? JM_OWNER_UNKNOWN : owner;
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
    if (last->ips) {
        VG_(free)(last->ips);
        VG_(free)(last->nodes);
    }
    VG_(memset)(last, 0, sizeof *last);
}

ULong jm_stack_n_completed(void)
{
    return n_completed;
}
