// SPDX-License-Identifier: GPL-2.0-or-later
//
// Read CPython's objects at the offsets of its headers; see objects.h. PyObject, PyTypeObject, lists, tuples and
// the head of a dictionary are unchanged since 3.6 (Include/cpython/object.h, listobject.h, tupleobject.h,
// dictobject.h). Others depend on the release: the collector's heads (3.7, 3.8), dictionary keys (3.11), and storage of
// attributes (3.11, 3.12, 3.13). The collector's lists have no published address before 3.13, so search for them: three
// adjacent rings of pointers are unmistakable.

#include "python/objects.h"
#include "base/client_memory.h"
#include "base/libc.h"
#include "base/table.h"
#include "host/host.h"
#include "python/code.h"
#include "python/python.h"

// Offsets in bytes.
#define OBJECT_TYPE      8
#define SIZED_LENGTH     16
#define TYPE_NAME        24
#define TYPE_BASIC_SIZE  32
#define TYPE_FLAGS       168
#define TYPE_DICT        264
#define TYPE_DICT_OFFSET 288
#define TYPE_MRO         344
#define TUPLE_ITEMS      24
#define LIST_ITEMS       24
#define DICT_KEYS        32
#define DICT_VALUES      40

// Py_TPFLAGS_…
#define INLINE_VALUES (1ul << 2)
#define MANAGED_DICT  (1ul << 4)
#define IS_LIST       (1ul << 25)
#define IS_TUPLE      (1ul << 26)
#define IS_DICT       (1ul << 29)
#define IS_CLASS      (1ul << 31)

#define MAX_OBJECTS  (1u << 26) // in a ring, before it counts as a cycle without its head
#define MAX_ELEMENTS (1u << 24)
#define MAX_BASES    256

static const PythonLayout *python;

// ---- the collector's rings -----------------------------------------------------------------------------------

#define N_GENERATIONS 3
#define NEXT(head)    (jm_word_at(head) & ~(UWord)3) // low bits are flags since 3.8
#define PREVIOUS(h)   (jm_word_at((h) + 8) & ~(UWord)3)

// PyGC_Head and struct gc_generation (Include/internal/pycore_gc.h, objimpl.h). Up to 3.7 the head is a union with a
// long double.
static Bool is_aligned_to_16(void)
{
    return python->version <= 0x307;
}

static UInt generation_bytes(void)
{
    return is_aligned_to_16() ? 48 : 24;
}

static Bool is_ring(Addr head)
{
    Addr next = NEXT(head), previous = PREVIOUS(head);
    return next && previous && PREVIOUS(next) == head && NEXT(previous) == head;
}

static Bool are_generations(Addr at)
{
    for (UInt i = 0; i < N_GENERATIONS; i++)
        if (!is_ring(at + i * generation_bytes()))
            return False;
    return True;
}

#define SEARCHED_BYTES 65536

// Step by four bytes: in Debian's 3.13 the address is not a multiple of eight.
static Addr search(Addr start)
{
    for (Addr at = start; start && at < start + SEARCHED_BYTES && jm_is_readable(at, 8); at += 4)
        if (jm_word_at(at) && are_generations(at))
            return at;
    return 0;
}

// Generations do not move while the interpreter lives, so their address is cached.
static Addr find_generations(void)
{
    static Addr found_in, found;
    Addr runtime, interpreter;
    python = jm_python_interpreter(&runtime, &interpreter);
    if (!python || python->object_more) // free-threaded: the collector has no lists
        return 0;
    Addr start = python->version < 0x309 ? runtime : interpreter;
    if (found_in != start) {
        found_in = start;
        // 3.6 exports a pointer to them.
        found = python->version == 0x306 ? jm_word_at(jm_python_symbol("_PyGC_generation0")) : search(start);
    }
    return found && are_generations(found) ? found : 0;
}

static Bool use_object(Addr head, UseTracked use)
{
    const Addr object = head + (is_aligned_to_16() ? 32 : 16), type = jm_python_type(object);
    return type && use(object, type);
}

// A ring as the last walk found it. The collector adds objects at the end and counts how often it has done so: while
// the end and the count are the same, there is no new object.
#define N_LAST 4
typedef struct {
    Addr last[N_LAST];
    ULong count;
    Table wanted; // heads
} KnownRing;

static KnownRing known[N_GENERATIONS + 1] = {[0 ... N_GENERATIONS] = {.wanted = JM_TABLE("jm.python", Addr)}};

static Bool is_as_before(Addr ring, KnownRing *k)
{
    const ULong count = jm_word_at(ring + (is_aligned_to_16() ? 32 : 16)); // with the threshold
    Bool is_same = count == k->count;
    k->count = count;
    for (UInt i = 0; i < N_LAST; i++) {
        const Addr at = PREVIOUS(i ? k->last[i - 1] : ring);
        is_same &= k->last[i] == at;
        k->last[i] = at;
    }
    return is_same;
}

static void each_of_ring(Addr ring, KnownRing *k, UseTracked use, Bool is_again)
{
    Addr at, n = 0;
    if (is_again && is_as_before(ring, k)) {
        for (UInt i = 1; i < k->wanted.n; i++) {
            at = *(const Addr *)jm_table_at(&k->wanted, i);
            if (NEXT(PREVIOUS(at)) == at) // else it is no object any more
                use_object(at, use);
        }
        return;
    }
    k->wanted.n = 1;
    for (at = NEXT(ring); at && at != ring && n++ < MAX_OBJECTS; at = NEXT(at))
        if (use_object(at, use))
            *(Addr *)jm_table_at(&k->wanted, jm_table_add(&k->wanted)) = at;
    if (!is_again || at != ring)
        k->count = ~0ULL; // not all that is wanted at the next walk
}

static Bool each_object(UseTracked use, Bool is_again)
{
    Addr generations = find_generations();
    if (!generations)
        return False;
    Addr rings[N_GENERATIONS + 1];
    for (UInt i = 0; i < N_GENERATIONS; i++)
        rings[i] = generations + i * generation_bytes();
    // gc.freeze moves objects to a permanent generation, which follows the three and one pointer.
    rings[N_GENERATIONS] = generations + N_GENERATIONS * generation_bytes() + (is_aligned_to_16() ? 16 : 8);
    const UInt n = N_GENERATIONS + (python->version >= 0x307 && is_ring(rings[N_GENERATIONS]));
    for (UInt i = 0; i < n; i++)
        each_of_ring(rings[i], &known[i], use, is_again);
    return True;
}

// Return whether the thread has the interpreter's lock: the current state is that of the lock's holder, and since 3.12
// the thread's own.
static Bool has_lock(void)
{
    const Addr before_3_13 = jm_python_symbol("_PyThreadState_UncheckedGet");
    const Addr current = before_3_13 ? before_3_13 : jm_python_symbol("PyThreadState_GetUnchecked");
    const Addr own = jm_python_symbol("PyGILState_GetThisThreadState");
    const UWord state = current && own ? host_call(current) : 0;
    return state && state == host_call(own);
}

// Without the interpreter's lock, other threads may free objects meanwhile, of which none is held here.
Bool jm_python_each_object(UseTracked use, Bool is_again)
{
    jm_read_copies(host_others_run() && !has_lock());
    Bool is_there = each_object(use, is_again);
    jm_read_copies(False);
    return is_there;
}

// ---- classes -------------------------------------------------------------------------------------------------

Addr jm_python_type(Addr object)
{
    return object && !(object & 7) ? jm_word_at(object + OBJECT_TYPE) : 0;
}

static UWord flags_of(Addr object)
{
    Addr type = jm_python_type(object);
    return type ? jm_word_at(type + TYPE_FLAGS) : 0;
}

Bool jm_python_any_base(Addr type, Bool (*is_wanted)(Addr type, void *context), void *context)
{
    Addr order = jm_word_at(type + TYPE_MRO);
    if (!order || !(flags_of(order) & IS_TUPLE))
        return False;
    UWord n = jm_word_at(order + SIZED_LENGTH);
    for (UWord i = 0; i < n && i < MAX_BASES; i++)
        if (is_wanted(jm_word_at(order + TUPLE_ITEMS + 8 * i), context))
            return True;
    return False;
}

#define MAX_NAME 64

static Bool is_same(Addr at, const HChar *text, SizeT bytes)
{
    HChar there[MAX_NAME];
    return bytes <= sizeof there && jm_read_bytes(at, there, bytes) && memcmp(there, text, bytes) == 0;
}

Bool jm_python_is_named(Addr type, const HChar *name)
{
    const Addr at = jm_word_at(type + TYPE_NAME);
    return at && is_same(at, name, strlen(name) + 1);
}

// True if the object is a str of these ASCII characters.
static Bool is_text(Addr object, const HChar *text)
{
    UInt state, n = strlen(text);
    UWord length;
    Addr data = object + python->string_ascii;
    // Bits for compact and ASCII (code.h).
    return object && jm_read_word(object + SIZED_LENGTH, &length) && length == n && jm_read_uint(object + 32, &state) &&
           (state >> 5 & 3) == 3 && is_same(data, text, n);
}

Bool jm_python_is_of_module(Addr type, const HChar *module)
{
    return is_text(jm_python_item(jm_word_at(type + TYPE_DICT), "__module__"), module);
}

// ---- dictionaries --------------------------------------------------------------------------------------------

// Entries of a dictionary's keys, with the values if these are separate.
typedef struct {
    Addr entries;
    UWord n;
    UInt entry_bytes;
    UInt key_at;
    Addr values; // 0 if the entries hold the values
} Entries;

// `keys` is a PyDictKeysObject (Include/internal/pycore_dict.h), `values` a PyDictValues or 0.
static Bool open_entries(Addr keys, Addr values, Entries *e)
{
    if (!keys || (keys & 7) || !jm_is_readable(keys, 40))
        return False;
    if (python->version >= 0x30b) {
        const UWord kinds = jm_word_at(keys + 8);
        const UChar log2_index_bytes = kinds >> 8 & 0xff;
        const Bool is_general = (kinds >> 16 & 0xff) == 0; // entries hold hashes
        if (log2_index_bytes > 32)
            return False;
        e->entries = keys + 32 + ((UWord)1 << log2_index_bytes);
        e->n = jm_word_at(keys + 24);
        e->entry_bytes = is_general ? 24 : 16;
    } else {
        const UWord size = jm_word_at(keys + 8);
        if (size > MAX_ELEMENTS)
            return False;
        e->entries = keys + 40 + size * (size <= 0xff ? 1 : size <= 0xffff ? 2 : 4);
        e->n = jm_word_at(keys + 32);
        e->entry_bytes = 24;
    }
    e->key_at = e->entry_bytes - 16;
    e->values = values && python->version >= 0x30d ? values + 8 : values;
    return e->n <= MAX_ELEMENTS && jm_is_readable(e->entries, e->n * e->entry_bytes) &&
           (!e->values || jm_is_readable(e->values, e->n * 8));
}

static Addr key_of(const Entries *e, UWord i)
{
    return jm_word_at(e->entries + i * e->entry_bytes + e->key_at);
}

static Addr value_of(const Entries *e, UWord i)
{
    return jm_word_at(e->values ? e->values + 8 * i : e->entries + i * e->entry_bytes + e->key_at + 8);
}

static Bool open_dict(Addr dict, Entries *e)
{
    return python && (flags_of(dict) & IS_DICT) &&
           open_entries(jm_word_at(dict + DICT_KEYS), jm_word_at(dict + DICT_VALUES), e);
}

static Addr find_value(const Entries *e, const HChar *name)
{
    for (UWord i = 0; i < e->n; i++)
        if (value_of(e, i) && is_text(key_of(e, i), name))
            return value_of(e, i);
    return 0;
}

Addr jm_python_item(Addr dict, const HChar *key)
{
    Entries e;
    return open_dict(dict, &e) ? find_value(&e, key) : 0;
}

// ---- attributes ----------------------------------------------------------------------------------------------

// Returns the object's __dict__. Until that exists, returns 0 and sets `*values` to the values that stand in for it.
static Addr dict_or_values(Addr object, Addr type, Addr *values)
{
    const UWord flags = jm_word_at(type + TYPE_FLAGS);
    *values = 0;
    if (python->version < 0x30b || !(flags & MANAGED_DICT)) {
        const Word offset = jm_word_at(type + TYPE_DICT_OFFSET);
        return offset > 0 ? jm_word_at(object + offset) : 0;
    }
    // The pointer precedes the collector's head (Include/internal/pycore_object.h).
    Addr dict = jm_word_at(object - 24);
    if (python->version == 0x30c && (dict & 1)) {
        *values = dict + 1;
        return 0;
    }
    if (!dict && python->version == 0x30b)
        *values = jm_word_at(object - 32);
    else if (!dict && python->version >= 0x30d && (flags & INLINE_VALUES))
        *values = object + jm_word_at(type + TYPE_BASIC_SIZE);
    return dict;
}

// ht_cached_keys of PyHeapTypeObject (Include/cpython/object.h); PyTypeObject is a word longer since 3.12.
static Addr cached_keys(Addr type)
{
    return jm_word_at(type + (python->version >= 0x30c ? 880 : 872));
}

Addr jm_python_attribute(Addr object, const HChar *name)
{
    Entries e;
    Addr values, type = jm_python_type(object);
    if (!python || !type)
        return 0;
    Addr dict = dict_or_values(object, type, &values);
    if (dict)
        return jm_python_item(dict, name);
    return values && open_entries(cached_keys(type), values, &e) ? find_value(&e, name) : 0;
}

// ---- values of containers ------------------------------------------------------------------------------------

// Set and deque (Include/setobject.h, Modules/_collectionsmodule.c).
#define SET_USED     24
#define SET_MASK     32
#define SET_TABLE    40
#define DEQUE_BLOCK  64 // elements of a block, between two links
#define DEQUE_LEFT   24
#define DEQUE_RIGHT  32
#define DEQUE_OFFSET 40

Addr jm_python_storage(Addr container, UWord *n)
{
    const UWord flags = flags_of(container);
    const Addr type = jm_python_type(container);
    const Bool is_set = jm_python_is_named(type, "set");
    *n = jm_word_at(container + (is_set ? SET_USED : SIZED_LENGTH));
    return flags & IS_LIST                                 ? jm_word_at(container + LIST_ITEMS)
           : flags & IS_DICT                               ? jm_word_at(container + DICT_KEYS)
           : is_set                                        ? jm_word_at(container + SET_TABLE)
           : jm_python_is_named(type, "collections.deque") ? jm_word_at(container + DEQUE_RIGHT)
                                                           : 0;
}

void jm_python_each_value(Addr container, UseObject use, void *context)
{
    const UWord flags = flags_of(container);
    Entries e;
    if (flags & (IS_LIST | IS_TUPLE)) {
        const UWord n = jm_word_at(container + SIZED_LENGTH);
        const Addr items = flags & IS_LIST ? jm_word_at(container + LIST_ITEMS) : container + TUPLE_ITEMS;
        for (UWord i = 0; i < n && i < MAX_ELEMENTS; i++)
            use(jm_word_at(items + 8 * i), context);
    } else if (open_dict(container, &e)) {
        for (UWord i = 0; i < e.n; i++)
            if (value_of(&e, i))
                use(value_of(&e, i), context);
    } else if (jm_python_is_named(jm_python_type(container), "set")) {
        const UWord mask = jm_word_at(container + SET_MASK);
        const Addr table = jm_word_at(container + SET_TABLE);
        for (UWord i = 0; i <= mask && i < MAX_ELEMENTS; i++)
            if (jm_word_at(table + 16 * i) && jm_word_at(table + 16 * i + 8) != (UWord)-1) // a removed one's hash
                use(jm_word_at(table + 16 * i), context);
    } else if (jm_python_is_named(jm_python_type(container), "collections.deque")) {
        Addr block = jm_word_at(container + DEQUE_LEFT);
        UWord at = jm_word_at(container + DEQUE_OFFSET), n = jm_word_at(container + SIZED_LENGTH);
        for (; n && n < MAX_ELEMENTS && block; n--, at++) {
            if (at == DEQUE_BLOCK) {
                block = jm_word_at(block + 8 * (DEQUE_BLOCK + 1));
                at = 0;
            }
            use(jm_word_at(block + 8 * (at + 1)), context);
        }
    }
}

// ---- names ---------------------------------------------------------------------------------------------------

#define MODULE_DICT  16
#define CELL_CONTENT 16

static void each_entry(Addr holder, const Entries *e, UseNamed use)
{
    for (UWord i = 0; i < e->n; i++)
        if (value_of(e, i))
            use(holder, key_of(e, i), value_of(e, i));
}

// The names of a function's cells are the last of its code's (co_freevars, since 3.11 co_localsplusnames).
static void each_of_closure(Addr function, UseNamed use)
{
    const Addr code = jm_word_at(function + (python->version < 0x30a ? 16 : 48));
    const Addr cells = jm_word_at(function + (python->version < 0x30a ? 48 : 72));
    const Addr names = code ? jm_word_at(code + python->code_filename - (python->version < 0x30b ? 24 : 16)) : 0;
    const UWord n = cells ? jm_word_at(cells + SIZED_LENGTH) : 0;
    const UWord n_names = names ? jm_word_at(names + SIZED_LENGTH) : 0;
    for (UWord i = 0; i < n && n <= n_names && n_names <= MAX_ELEMENTS; i++) {
        const Addr cell = jm_word_at(cells + TUPLE_ITEMS + 8 * i);
        use(function, jm_word_at(names + TUPLE_ITEMS + 8 * (n_names - n + i)),
            cell ? jm_word_at(cell + CELL_CONTENT) : 0);
    }
}

void jm_python_each_named(Addr object, Addr type, UseNamed use)
{
    Entries e;
    Addr values = 0;
    Addr dict = jm_word_at(type + TYPE_FLAGS) & IS_CLASS ? jm_word_at(object + TYPE_DICT)
                : jm_python_is_named(type, "module")     ? jm_word_at(object + MODULE_DICT)
                                                         : dict_or_values(object, type, &values);
    if (dict ? open_dict(dict, &e) : values && open_entries(cached_keys(type), values, &e))
        each_entry(object, &e, use);
    if (jm_python_is_named(type, "function"))
        each_of_closure(object, use);
}

void jm_python_copy_text(Addr object, HChar *to, UInt size)
{
    Str str;
    to[0] = 0;
    if (object && jm_python_find_str(python, object, &str))
        jm_python_copy_str(&str, to, size);
}

void jm_python_copy_class(Addr type, HChar *to, UInt size)
{
    to[0] = 0;
    if (!type || !jm_read_string(jm_word_at(type + TYPE_NAME), to, size))
        to[0] = 0;
    const HChar *dot = strrchr(to, '.');
    if (dot)
        memmove(to, dot + 1, strlen(dot));
}

const HChar *jm_python_copy_holder(Addr holder, HChar *to, UInt size)
{
    const Addr type = jm_python_type(holder);
    if (jm_python_is_named(type, "module")) {
        jm_python_copy_text(jm_python_item(jm_word_at(holder + MODULE_DICT), "__name__"), to, size);
        return "module";
    }
    if (jm_python_is_named(type, "function")) {
        jm_python_copy_text(jm_word_at(holder + (python->version < 0x30a ? 104 : 40)), to, size);
        return "function";
    }
    const Bool is_class = (jm_word_at(type + TYPE_FLAGS) & IS_CLASS) != 0;
    jm_python_copy_class(is_class ? holder : type, to, size);
    return is_class ? "class" : "instance";
}
