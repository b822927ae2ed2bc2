// SPDX-License-Identifier: GPL-2.0-or-later
//
// Capturing and interning stacks. Consecutive stacks of a thread mostly share their outer frames, so each thread
// remembers its last stack with the node of every prefix: frames are compared from the outside, and only those that
// differ are looked up.
//
// A stack that is new shares its outer frames with a known one, and then leaves it for good: from there on each node is
// the only child of the one before it, and has the next id. So only the node at which it leaves has a parent kept and
// is in the index; of all others there is nothing to keep but the frame, and each is found where it is expected.

#include "stack/stack.h"
#include "base/options.h"
#include "stack/python.h"
#include "base/stats.h"
#include "stack/symbol.h"
#include "base/table.h"
#include "trace/trace.h"
#include "stack/unwind.h"

#define MAX_KEYS (2 * JM_MAX_FRAMES) // with Python frames among them

// A node is its frame, and its parent the node before it; or it is the number of a branch.
typedef UInt Node;
#define BRANCH_BIT 0x80000000u

typedef struct {
    NodeId node;
    NodeId parent;
    FrameId frame;
} Branch;

typedef struct {
    Addr *keys; // outermost first: code addresses, or Python frames (python.h)
    NodeId *nodes;
    UInt depth;
    UInt capacity;
    UInt n_below_main; // frames further out, which were cut off
    Bool is_whole;     // else it was completed, and that was not looked for
    Bool is_native;    // the keys are the frames above those, one by one
} LastStack;           // of one thread

static Table nodes = JM_TABLE("jm.node", Node);
static Table branches = JM_TABLE("jm.branch", Branch);
static Index branch_index = JM_INDEX("jm.branch");
static LastStack *last_stacks;
static ULong n_completed;

static inline Node node_at(NodeId id)
{
    return *(const Node *)jm_table_at(&nodes, id);
}

static inline Branch *branch_at(UInt i)
{
    return jm_table_at(&branches, i);
}

static inline ULong branch_hash(NodeId parent, FrameId frame)
{
    return jm_place(((ULong)parent << 32) | frame, 32); // the steps of a look-up wait for each other
}

static ULong branch_hash_of(UInt i)
{
    return branch_hash(branch_at(i)->parent, branch_at(i)->frame);
}

static NodeId add_node(NodeId parent, FrameId frame, Node content)
{
    NodeId id = jm_table_add(&nodes);
    *(Node *)jm_table_at(&nodes, id) = content;
    jm_trace_node(id, parent, frame);
    return id;
}

static NodeId child(NodeId parent, FrameId frame)
{
    NodeId next = parent + 1;
    if (next == nodes.n) // the newest node leads nowhere yet
        return add_node(parent, frame, frame);
    if (node_at(next) == frame)
        return next;
    jm_index_reserve(&branch_index, branch_hash_of);
    UInt slot = (UInt)branch_hash(parent, frame) & branch_index.mask;
    while (branch_index.slots[slot]) {
        const Branch *b = branch_at(branch_index.slots[slot]);
        if (b->parent == parent && b->frame == frame)
            return b->node;
        slot = (slot + 1) & branch_index.mask;
    }
    UInt i = jm_table_add(&branches);
    NodeId id = add_node(parent, frame, BRANCH_BIT | i);
    *branch_at(i) = (Branch){id, parent, frame};
    branch_index.slots[slot] = i;
    branch_index.used++;
    return id;
}

// The node's frame; moves on to its caller's node.
static FrameId take_frame(NodeId *node)
{
    Node n = node_at(*node);
    if (!(n & BRANCH_BIT)) {
        --*node;
        return n;
    }
    const Branch *b = branch_at(n & ~BRANCH_BIT);
    *node = b->parent;
    return b->frame;
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

// How many of the outermost frames lie below main and are not shown (unless --show-below-main=yes). `n_same` of them
// are those of the thread's last stack.
static UInt n_below_main(const LastStack *last, const Addr *ips, UInt n, UInt n_same)
{
    if (VG_(clo_show_below_main))
        return 0;
    if (last->is_whole && last->n_below_main < n_same && last->n_below_main < n)
        return last->n_below_main;
    UInt k = 0;
    while (k < n && jm_symbol_locate(ips[n - 1 - k])->is_below_main)
        k++;
    return k < n ? k : 0; // nothing but start-up code: show it
}

// Whether the unwinder lost its way before it came back to the wrapper's caller: without unwind tables it stops, or
// follows frame pointers, which may lead anywhere, or takes what looks like a return address for one. If so, leaves the
// frames that can be believed in `*n`.
static Bool is_broken(const StackBase *base, const Walk *walk, UInt *n)
{
    const Addr *ips = walk->ips, *sps = walk->sps;
    if (!base || !base->node || sps[0] > base->sp) // a signal handler may have a stack of its own
        return False;
    UInt inside = 0;
    while (inside < *n && sps[inside] <= base->sp)
        inside++;
    const Bool is_certain = inside < walk->n_certain || walk->n_certain == walk->n;
    if (inside == JM_MAX_FRAMES || (is_certain && inside < *n && ips[inside] == base->caller_ip))
        return False;
    if (!is_certain)
        inside = walk->n_certain;
    UInt kept = 0;
    while (kept < inside && jm_symbol_locate(ips[kept])->has_object) // else it is no code, nor is what follows it
        kept++;
    // A stack that is whole and does not come by the wrapper: the call is over, left by longjmp as a failing dlopen is.
    if (is_certain && kept == inside && inside < *n && ips[*n - 1] == base->outermost_ip)
        return False;
    while (kept > 0 && jm_symbol_locate(ips[kept - 1])->is_allocator)
        kept--;
    *n = kept;
    return True;
}

static Addr mixed[MAX_KEYS]; // keys that are not the frames one by one; one thread runs at a time

// A wrapper's frame stands beside the wrapped function's own and says nothing more.
static UInt drop_wrappers(const Addr *keys, UInt n_keys)
{
    UInt kept = 0;
    for (UInt i = 0; i < n_keys; i++)
        if (jm_python_is_frame(keys[i]) || !jm_symbol_locate(keys[i])->is_preload)
            mixed[kept++] = keys[i];
    return kept;
}

static NodeId push(NodeId parent, Addr key)
{
    return jm_python_is_frame(key) ? child(parent, jm_python_frame(key)) : push_location(parent, jm_symbol_locate(key));
}

static Addr innermost_caller_ip, outermost_ip; // of the stack last captured

// `is_base`: what is captured is the base of others (stack.h), which keeps the wrapper's frame.
static NodeId capture(ThreadId tid, const StackBase *base, Bool is_base, Bool *ignored)
{
    *ignored = False;
    const Walk walk = jm_unwind(tid);
    const Addr *ips = walk.ips;
    UInt n = walk.n;
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
    innermost_caller_ip = n > 1 ? ips[1] : 0;
    outermost_ip = n > 0 ? ips[n - 1] : 0;
    UInt same = 0; // keys, from the outermost on
    if (is_broken(base, &walk, &n)) {
        n = n > first ? n : first;
        start = base->node;
        outermost_ip = base->outermost_ip;
        n_completed++;
    } else {
        UInt below = n_below_main(last, ips + first, n - first, walk.n_same);
        if (last->is_native && below == last->n_below_main && below < walk.n_same)
            same = walk.n_same - below;
        last->n_below_main = below;
        n -= below;
    }
    last->is_whole = !start;

    const Addr *keys = ips + first;
    UInt n_keys = n - first;
    last->is_native = True;
    // A broken stack's base has the Python frames.
    UInt n_mixed = start ? 0 : jm_python_interleave(tid, keys, walk.sps + first, n_keys, mixed, MAX_KEYS);
    if (n_mixed) {
        keys = mixed;
        n_keys = n_mixed;
        last->is_native = False;
    }
    if (!is_base && base) {
        n_keys = drop_wrappers(keys, n_keys);
        keys = mixed;
        last->is_native = False;
    }
    if (jm_options.depth && n_keys > (UInt)jm_options.depth) {
        n_keys = jm_options.depth;
        start = 0;
        last->is_native = False;
    }

    make_room(last, n_keys);
    if (start || !last->is_native)
        same = 0;
    else if (same > n_keys || same > last->depth)
        same = n_keys < last->depth ? n_keys : last->depth;
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
    base->caller_ip = innermost_caller_ip;
    base->outermost_ip = outermost_ip;
}

NodeId jm_stack_push_mapped(NodeId node, const HChar *path, Bool is_object)
{
    return child(node, jm_symbol_mapped_frame(path, is_object));
}

// A frame without an owner leaves the decision to its callers.
static OwnerId owner_of(NodeId node, OwnerId (*of_frame)(FrameId frame))
{
    while (node) {
        OwnerId owner = of_frame(take_frame(&node));
        if (owner != JM_OWNER_NONE)
            return owner;
    }
    return JM_OWNER_UNKNOWN;
}

OwnerId jm_stack_host_owner(NodeId node)
{
    return owner_of(node, jm_symbol_host_owner);
}

OwnerId jm_stack_driver_owner(NodeId node)
{
    return owner_of(node, jm_symbol_driver_owner);
}

OwnerId jm_stack_device_owner(NodeId node)
{
    return owner_of(node, jm_symbol_device_owner);
}

RoleId jm_stack_role(NodeId node)
{
    RoleId first = 0; // of the rules that name one: they are in the order of their precedence
    while (node) {
        RoleId role = jm_symbol_role(take_frame(&node));
        if (role && (!first || role < first))
            first = role;
    }
    return first;
}

Bool jm_stack_has_role(NodeId node, RoleId role)
{
    while (node) {
        RoleId of_frame = jm_symbol_role(take_frame(&node));
        if (of_frame && (of_frame == role || VG_STREQ(jm_role_name(of_frame), jm_role_name(role))))
            return True;
    }
    return False;
}

void jm_stack_forget(void)
{
    for (ThreadId tid = 0; last_stacks && tid < VG_N_THREADS; tid++)
        last_stacks[tid].depth = last_stacks[tid].is_whole = last_stacks[tid].is_native = 0;
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
    jm_stats_table("nodes that are not their caller's first", &branches);
    jm_stats_index(&branch_index);
    UInt n = 0;
    SizeT bytes = last_stacks ? VG_N_THREADS * sizeof *last_stacks : 0;
    for (ThreadId tid = 0; last_stacks && tid < VG_N_THREADS; tid++) {
        n += last_stacks[tid].capacity > 0;
        bytes += last_stacks[tid].capacity * (sizeof *last_stacks->keys + sizeof *last_stacks->nodes);
    }
    jm_stats_row("jm.stack", "threads' last stacks", n, bytes);
    jm_stats_row("static", "keys of one stack, at most", MAX_KEYS, sizeof mixed);
}
