// SPDX-License-Identifier: GPL-2.0-or-later
//
// Capture stacks and intern them in a trie. Consecutive stacks of a thread mostly share their outer frames, so each
// thread keeps its last stack with the node of every prefix. Frames are compared from the outside, and only different
// ones are looked up.
//
// A new stack shares its outer frames with a known one up to a branch. Its first node after the branch stores its
// parent and is indexed. Each further node is the first child of its parent and has the next id, so it stores only its
// frame and is found at its parent's id plus one.

#include "stack/stack.h"
#include "base/options.h"
#include "base/per_thread.h"
#include "base/table.h"
#include "base/text.h"
#include "host/host.h"
#include "python/python.h"
#include "stack/thread.h"
#include "symbols/symbol.h"
#include "trace/trace.h"
#include "unwind/unwind.h"

#define MAX_KEYS (2 * JM_MAX_FRAMES) // Python frames included

// A frame, with the node before it as parent; with BRANCH_BIT the index of a Branch.
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
    UInt n_below_main; // outermost frames that were cut off
    UInt n_frames;     // the others, without the allocator's
    Bool is_whole;     // not completed; n_below_main is valid
    Bool is_direct;    // keys are all that the walk has led to, in one piece
    NodeId outside;    // that they hang below, if they are inside a call; else 0
} LastStack;

static Table nodes = JM_TABLE("jm.node", Node);
static Table branches = JM_TABLE("jm.branch", Branch);
static ULong n_completed;

// ---- the trie ------------------------------------------------------------------------------------------------

static inline Node node_at(NodeId id)
{
    return *(const Node *)jm_table_at(&nodes, id);
}

static inline Branch *branch_at(UInt i)
{
    return jm_table_at(&branches, i);
}

static Index branch_index = JM_INDEX("jm.branch");

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
    if (next == nodes.n) // the newest node has no child yet
        return add_node(parent, frame, frame);
    if (node_at(next) == frame)
        return next;
    IndexSlot *slot = JM_INDEX_FIND(&branch_index, jm_hash((ULong)parent << 32 | frame), i,
                                    branch_at(i)->parent == parent && branch_at(i)->frame == frame);
    if (slot->entry)
        return branch_at(slot->entry)->node;
    UInt i = jm_index_put(&branch_index, slot, jm_table_add(&branches));
    NodeId id = add_node(parent, frame, BRANCH_BIT | i);
    *branch_at(i) = (Branch){id, parent, frame};
    return id;
}

// The node's frame. Sets `*node` to its parent.
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

// ---- each thread's last stack --------------------------------------------------------------------------------

static void release(ThreadId tid, void *record, ThreadEnd how)
{
    LastStack *last = record;
    host_free(last->keys);
    host_free(last->nodes);
}

static PerThread last_stacks = JM_PER_THREAD("jm.stack", LastStack, release);
static PerThread last_inside = JM_PER_THREAD("jm.stack", LastStack, release); // parts inside a call

static void make_room(LastStack *last, UInt depth)
{
    if (depth <= last->capacity)
        return;
    last->capacity = depth < 64 ? 64 : depth * 2;
    last->keys = host_realloc("jm.stack", last->keys, last->capacity * sizeof *last->keys);
    last->nodes = host_realloc("jm.stack", last->nodes, last->capacity * sizeof *last->nodes);
}

// ---- capturing -----------------------------------------------------------------------------------------------

// A stack before it is interned: the visible frames of the walk, and the keys made from them.
typedef struct {
    Walk walk;
    UInt begin, end;     // visible frames, innermost first
    NodeId completed_by; // the base that they hang below; 0 if the stack is whole
    const Addr *keys;    // as in LastStack, but innermost first
    UInt n_keys;
    UInt n_same;    // outermost frames, then keys, that equal those of the thread's last stack; such keys are missing
    Bool is_direct; // as in LastStack
} Capture;

// Skip the allocator's own frames. Sets `*ignored` if the next frame is one of --ignore-fn.
static void trim(Capture *c, Bool *ignored)
{
    *ignored = False;
    while (c->begin < c->end) {
        const Location *at = jm_symbol_locate(c->walk.ips[c->begin]);
        *ignored = at->is_ignored;
        if (!at->is_allocator)
            return;
        c->begin++;
    }
    *ignored = False;
}

// Number of outermost frames below main, which are hidden (unless --show-below-main=yes).
static UInt n_below_main(const LastStack *last, const Capture *c)
{
    if (jm_options.show_below_main)
        return 0;
    UInt n = c->end - c->begin;
    if (last->is_whole && last->n_below_main < c->walk.n_same && last->n_below_main < n)
        return last->n_below_main;
    UInt k = 0;
    while (k < n && jm_symbol_locate(c->walk.ips[c->end - 1 - k])->is_below_main)
        k++;
    return k < n ? k : 0; // show a stack that is start-up code only
}

// Frames inside the call.
static UInt n_inside(const StackBase *base, const Walk *walk)
{
    UInt n = 0;
    while (n < walk->n && walk->sps[n] < base->caller.sp)
        n++;
    return n;
}

// True if the unwinder lost its way before it reached the wrapper's caller, as without unwind tables: it stops, follows
// frame pointers anywhere, or guesses return addresses. Then sets `*end` to the end of the credible frames.
static Bool is_broken(const StackBase *base, const Walk *walk, UInt *end)
{
    const Addr *ips = walk->ips;
    const UInt n = walk->n;
    if (!base || !base->node || walk->sps[0] >= base->caller.sp) // a signal handler may have its own stack
        return False;
    UInt inside = n_inside(base, walk);
    const Bool is_certain = inside < walk->n_certain || walk->n_certain == n;
    if (inside == JM_MAX_FRAMES || (is_certain && inside < n && ips[inside] == base->caller.ip))
        return False;
    if (!is_certain)
        inside = walk->n_certain;
    UInt kept = 0;
    // Frames without an object are not code, nor is anything further out.
    while (kept < inside && jm_symbol_locate(ips[kept])->has_object)
        kept++;
    // A whole stack that misses the wrapper: longjmp has left the call, as in a failing dlopen.
    if (is_certain && kept == inside && inside < n && ips[n - 1] == base->outermost_ip)
        return False;
    while (kept > 0 && jm_symbol_locate(ips[kept - 1])->is_allocator)
        kept--;
    *end = kept;
    return True;
}

// Set the outer end: a broken stack continues at its base, and frames below main are hidden.
static void complete(Capture *c, const StackBase *base, LastStack *last)
{
    UInt believed;
    if (is_broken(base, &c->walk, &believed)) {
        c->end = believed > c->begin ? believed : c->begin;
        c->completed_by = base->node;
        n_completed++;
    } else {
        UInt below = n_below_main(last, c);
        if (last->is_direct && !last->outside && below == last->n_below_main && below < c->walk.n_same)
            c->n_same = jm_smaller(c->walk.n_same - below, last->n_frames);
        last->n_below_main = below;
        c->end -= below;
    }
    last->is_whole = !c->completed_by;
}

// Keys that differ from the walk's frames. Shared by all threads, since only one runs at a time.
static Addr mixed[MAX_KEYS];

// Make keys of the frames, with Python frames among them.
static void interleave(Capture *c, LastStack *last, ThreadId tid, Bool is_late)
{
    c->keys = c->walk.ips + c->begin;
    c->n_keys = c->end - c->begin;
    c->is_direct = True;
    last->n_frames = c->n_keys;
    if (c->completed_by) // the base has the Python frames
        return;
    UInt n_mixed =
        jm_python_interleave(tid, c->keys, c->walk.sps + c->begin, c->n_keys, is_late, mixed, MAX_KEYS, &c->n_same);
    if (n_mixed) {
        c->keys = mixed;
        c->n_keys = n_mixed;
    }
}

// Apply --depth: drop the outermost frames, and with them the base that completes the stack.
static void cut(Capture *c)
{
    if (!jm_options.depth || c->n_keys <= (UInt)jm_options.depth)
        return;
    c->n_keys = jm_options.depth;
    c->completed_by = 0;
    c->is_direct = False;
}

static NodeId push(NodeId parent, Addr key, Bool is_base)
{
    if (!is_base && jm_symbol_is_preload(key)) // a hook further out, which makes the real call
        return parent;
    return jm_python_is_frame(key) ? child(parent, jm_python_frame(key)) : push_location(parent, jm_symbol_locate(key));
}

// Number of outermost keys that equal those of the thread's last stack.
static UInt n_shared(const Capture *c, const LastStack *last)
{
    if (c->completed_by != last->outside)
        return 0;
    const UInt most = c->n_keys < last->depth ? c->n_keys : last->depth;
    UInt same = c->n_same < most ? c->n_same : most;
    while (same < most && last->keys[same] == c->keys[c->n_keys - 1 - same])
        same++;
    return same;
}

// Parent of the outermost key.
static NodeId outside(const Capture *c, ThreadId tid)
{
    if (c->completed_by)
        return c->completed_by;
    return jm_options.threads ? child(0, jm_thread_frame(tid)) : 0;
}

static NodeId intern(const Capture *c, LastStack *last, ThreadId tid, Bool is_base)
{
    make_room(last, c->n_keys);
    const UInt same = n_shared(c, last);
    NodeId node = same ? last->nodes[same - 1] : outside(c, tid);
    for (UInt d = same; d < c->n_keys; d++) {
        Addr key = c->keys[c->n_keys - 1 - d];
        node = push(node, key, is_base);
        last->keys[d] = key;
        last->nodes[d] = node;
    }
    last->depth = c->n_keys;
    last->is_direct = c->is_direct;
    last->outside = c->completed_by;
    return node;
}

// ---- inside a call that is in progress -----------------------------------------------------------------------

// The callers of a call wait for its end. So once a stack inside it has been whole, the others that have the call's
// frame hang below the same node, if no Python code has been called inside.

static Bool is_called_from_base(ThreadId tid, const StackBase *base)
{
    return jm_python_innermost(tid) == base->python;
}

// `c` was interned whole.
static void find_outside(const Capture *c, StackBase *base, const LastStack *last, ThreadId tid)
{
    const UInt n = n_inside(base, &c->walk);
    if (jm_options.depth || c->completed_by || n + base->caller.n != c->walk.n || n > c->walk.n_certain ||
        c->begin > n || c->walk.ips[n] != base->caller.ip || !is_called_from_base(tid, base))
        return;
    UInt n_outside = c->n_keys;
    for (UInt i = c->begin; i < n; i++)
        n_outside -= !jm_symbol_is_preload(c->walk.ips[i]);
    base->outside = n_outside ? last->nodes[n_outside - 1] : 0;
}

static NodeId intern_inside(Capture *c, const StackBase *base, ThreadId tid)
{
    LastStack *last = JM_OF_THREAD(&last_inside, LastStack, tid);
    const UInt n_outside = base->caller.n + 1; // with the wrapper's frame
    c->end -= n_outside;
    c->begin = c->begin < c->end ? c->begin : c->end;
    c->keys = c->walk.ips + c->begin;
    c->n_keys = c->end - c->begin;
    c->completed_by = base->outside;
    c->n_same = last->is_direct ? c->walk.n_same - n_outside : 0;
    c->is_direct = True;
    return intern(c, last, tid, False);
}

// `becomes` and `from` are not NULL when capturing a base for other stacks (stack.h), which keeps the wrapper's frame.
static NodeId capture(ThreadId tid, const HostFrameRegisters *from, StackBase *base, StackBase *becomes, Bool is_late,
                      Bool *ignored)
{
    const Bool may_be_inside = base && base->outside && !becomes;
    LastStack *last = JM_OF_THREAD(&last_stacks, LastStack, tid);
    Capture c = {.walk = jm_unwind(tid, from, may_be_inside ? &base->caller : NULL)};
    c.end = c.walk.n;
    trim(&c, ignored);
    if (c.walk.is_inside && is_called_from_base(tid, base)) {
        last->is_direct = last->is_whole = False; // it was not of the last walk
        return intern_inside(&c, base, tid);
    }
    if (becomes)
        c.begin = 0;
    complete(&c, base, last);
    if (becomes) {
        const Bool has_caller = c.walk.n > 1;
        becomes->caller = (Waiting){.ip = has_caller ? c.walk.ips[1] : 0,
                                    .sp = has_caller ? c.walk.sps[1] : from->sp + 1,
                                    .n = has_caller && !c.completed_by && !is_late ? c.walk.n - 1 : 0};
        becomes->outermost_ip = c.completed_by ? base->outermost_ip : c.walk.n > 0 ? c.walk.ips[c.walk.n - 1] : 0;
        becomes->python = jm_python_innermost(tid);
        becomes->outside = 0;
    }
    if ((base && !becomes) || jm_options.depth)
        c.n_same = 0; // all keys are needed
    interleave(&c, last, tid, is_late);
    if (base && !becomes) { // a wrapper's frame duplicates the wrapped function's own
        UInt kept = 0;
        for (UInt i = 0; i < c.n_keys; i++)
            if (jm_python_is_frame(c.keys[i]) || !jm_symbol_is_preload(c.keys[i]))
                mixed[kept++] = c.keys[i];
        c.keys = mixed;
        c.n_keys = kept;
        c.is_direct = False;
    }
    cut(&c);
    if (jm_per_thread_has_any(&last_inside))
        JM_OF_THREAD(&last_inside, LastStack, tid)->is_direct = False;
    NodeId node = intern(&c, last, tid, becomes != NULL);
    if (base && !becomes && !base->outside && base->caller.n)
        find_outside(&c, base, last, tid);
    return node;
}

NodeId jm_stack_capture(ThreadId tid, StackBase *base, Bool *ignored)
{
    return capture(tid, NULL, base, NULL, False, ignored);
}

void jm_stack_capture_base(ThreadId tid, const HostFrameRegisters *wrapper, StackBase *outer, Bool is_late,
                           StackBase *base)
{
    Bool ignored;
    base->node = capture(tid, wrapper, outer, base, is_late, &ignored);
}

NodeId jm_stack_push_mapped(NodeId node, const HChar *path, Bool is_object)
{
    return child(node, jm_symbol_mapped_frame(path, is_object));
}

// ---- owners and roles ----------------------------------------------------------------------------------------

// Skip frames without an owner: their callers decide.
static OwnerId first_owner(NodeId node, Owned owned)
{
    while (node) {
        OwnerId owner = jm_symbol_ruling(take_frame(&node))->owners[owned];
        if (owner != JM_OWNER_NONE)
            return owner;
    }
    return JM_OWNER_UNKNOWN;
}

// Cause of an allocation: user code (except when it loads a library), an import, or neither.
static Cause cause_of(NodeId node)
{
    Bool is_main = False;   // user code if no Python frame follows
    Bool is_loaded = False; // memory taken while a library loads is never the user's
    while (node) {
        switch ((Code)jm_symbol_ruling(take_frame(&node))->code) {
        case CODE_OWN:
            return is_loaded ? CAUSE_UNSAID : CAUSE_OWN;
        case CODE_IMPORT:
            return CAUSE_IMPORT;
        case CODE_LOAD:
            is_loaded = True;
            break;
        case CODE_MAIN:
            is_main = True;
            break;
        case CODE_LIBRARY:
            is_main = False;
            break;
        case CODE_UNSAID:
            break;
        }
    }
    return is_main && !is_loaded ? CAUSE_OWN : CAUSE_UNSAID;
}

OwnerId jm_stack_owner(NodeId node, Owned owned)
{
    OwnerId owner = first_owner(node, owned);
    Bool can_be_claimed = False;
    for (Cause cause = CAUSE_OWN; cause < N_CAUSES; cause++)
        can_be_claimed |= jm_owner_claimant(owner, cause) != JM_OWNER_NONE;
    OwnerId claimant = can_be_claimed ? jm_owner_claimant(owner, cause_of(node)) : JM_OWNER_NONE;
    return claimant != JM_OWNER_NONE ? claimant : owner;
}

RoleId jm_stack_role(NodeId node)
{
    RoleId first = 0; // a smaller role id has precedence
    while (node) {
        RoleId role = jm_symbol_ruling(take_frame(&node))->role;
        if (role && (!first || role < first))
            first = role;
    }
    return first;
}

Bool jm_stack_has_role(NodeId node, RoleId role)
{
    while (node) {
        RoleId of_frame = jm_symbol_ruling(take_frame(&node))->role;
        if (of_frame && (of_frame == role || jm_text_equal(jm_role_name(of_frame), jm_role_name(role))))
            return True;
    }
    return False;
}

static void forget(void *record)
{
    LastStack *last = record;
    last->depth = last->is_whole = last->is_direct = 0;
}

void jm_stack_forget(void)
{
    jm_per_thread_each(&last_stacks, forget);
    jm_per_thread_each(&last_inside, forget);
}

ULong jm_stack_n_completed(void)
{
    return n_completed;
}
