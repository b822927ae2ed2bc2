// SPDX-License-Identifier: GPL-2.0-or-later
//
// What a code object says of itself, and the frames that its instructions become; see python_code.h. A code object can
// be freed and another one take its place, and generated code (exec in a loop) also puts its names and lines where
// those of the code before it were. So what makes an object another one is kept and compared, as far as that is cheap.

#include "stack/python_code.h"
#include "base/client_memory.h"
#include "base/stats.h"
#include "base/table.h"
#include "stack/python_text.h"
#include "stack/symbol.h"
#include "trace/trace.h"

#define MAX_NAME       4096 // PATH_MAX
#define MAX_LINE_TABLE (1u << 20)

static struct {
    const PythonLayout *layout;
    Addr type;  // PyCode_Type; 0: not known
    SizeT head; // bytes of a code object that hold all that is read of it
} code_objects;

static ULong n_unreadable;

SizeT jm_python_end_of(const UShort *fields, UInt n)
{
    SizeT end = 0;
    for (UInt i = 0; i < n; i++)
        if (end < fields[i] + sizeof(Addr))
            end = fields[i] + sizeof(Addr);
    return end;
}

void jm_python_code_start(const PythonLayout *l, Addr type)
{
    const UShort fields[] = {l->code_firstlineno, l->code_filename, l->code_name, l->code_lines, l->code_bytes};
    code_objects.layout = l;
    code_objects.type = type;
    code_objects.head = jm_python_end_of(fields, sizeof fields / sizeof fields[0]);
}

// What a code object and an instruction in it were found to be.
typedef struct {
    Addr code;
    Int at;
    FrameId frame; // 0: none is shown
    ULong mark;
} KnownCode;

static Table known_code = JM_TABLE("jm.python", KnownCode);
static Index known_code_index = JM_INDEX("jm.python");

static ULong code_hash(Addr code, Int at)
{
    return jm_hash(code + ((ULong)(UInt)at << 40));
}

static ULong known_code_hash_of(UInt id)
{
    const KnownCode *k = jm_table_at(&known_code, id);
    return code_hash(k->code, k->at);
}

#define BYTES_LENGTH 16
#define BYTES_DATA   32

// What makes an object's contents other ones: its place, the two words before its end and, if `whole`, all from `start`
// on. What is short reaches into the object's header, which does no harm. Sums of products by odd numbers that differ
// (multilinear hashing; Lemire and Kaser 2014): unlike steps of a better hash, no multiplication waits for another.
static inline ULong content_mark(Addr start, Addr end, Bool whole)
{
    const ULong *words = (const ULong *)end;
    ULong mark = end * 0x9e3779b97f4a7c15ULL + words[-1] * 0xbf58476d1ce4e5b9ULL + words[-2] * 0x94d049bb133111ebULL;
    for (Addr at = start; whole && at + sizeof(ULong) <= end; at += sizeof(ULong))
        mark = jm_hash(mark ^ *(const ULong *)at);
    return mark;
}

static Bool is_frozen(const Str *file)
{
    static const HChar frozen[] = "<frozen ";
    return file->width == 1 && file->length >= sizeof frozen - 1 &&
           VG_(memcmp)((const void *)file->data, frozen, sizeof frozen - 1) == 0;
}

static Bool is_code(Addr object)
{
    UWord type;
    return !(object & 7) && jm_read_word(object + 8, &type) && (!code_objects.type || type == code_objects.type);
}

// What a code object says of itself, and where.
typedef struct {
    Addr filename, function, lines; // objects
    Int first_line;
    Str file, name;
    UWord n_lines;
} CodeHead;

static inline ULong code_mark(const CodeHead *h, Bool is_generated)
{
    ULong mark = content_mark(h->file.data, h->file.data + h->file.length * h->file.width, False);
    mark = 3 * mark + content_mark(h->name.data, h->name.data + h->name.length * h->name.width, False);
    mark = 3 * mark + content_mark(h->lines + BYTES_DATA, h->lines + BYTES_DATA + h->n_lines, is_generated);
    return 3 * mark + (UInt)h->first_line;
}

// Those met lately, each at the one place that its hash gives it: to see that one is still what it was takes a third of
// the steps of finding out, and once a stack is enough: imports have the same few frames over and over. Generated code
// is not among them.
typedef struct {
    Addr code;
    Int at;
    FrameId frame;
    ULong walk; // in which it was looked at last
} RecentCode;

// What it is compared by, in the same place.
typedef struct {
    ULong mark;
    CodeHead head;
} RecentHead;

#define RECENT_BITS 9
static RecentCode recent_code[1u << RECENT_BITS];
static RecentHead recent_heads[1u << RECENT_BITS];
static ULong this_walk; // of one stack's frames: meanwhile the program stands still

static inline UInt recent_place(Addr code, Int at)
{
    return jm_place(code + ((ULong)(UInt)at << 20), RECENT_BITS);
}

static inline Bool is_length(Addr object, UWord length_at, UWord length, Addr end)
{
    return jm_is_readable(object, end - object) && *(const UWord *)(object + length_at) == length;
}

// The code object that is now where this one was; its own head can be read.
static inline Bool is_still(const RecentHead *r, Addr code)
{
    const PythonLayout *l = code_objects.layout;
    const CodeHead *h = &r->head;
    if (*(Addr *)(code + l->code_filename) != h->filename || *(Addr *)(code + l->code_name) != h->function ||
        *(Addr *)(code + l->code_lines) != h->lines || *(Int *)(code + l->code_firstlineno) != h->first_line)
        return False;
    Addr file_end = h->file.data + h->file.length * h->file.width;
    Addr name_end = h->name.data + h->name.length * h->name.width;
    Addr lines_end = h->lines + BYTES_DATA + h->n_lines;
    return is_length(h->filename, JM_STR_LENGTH, h->file.length, file_end) &&
           is_length(h->function, JM_STR_LENGTH, h->name.length, name_end) &&
           is_length(h->lines, BYTES_LENGTH, h->n_lines, lines_end) && code_mark(h, False) == r->mark;
}

static FrameId find_frame(Addr code, Int at, const CodeHead *h, ULong mark)
{
    jm_index_reserve(&known_code_index, known_code_hash_of);
    UInt slot = (UInt)code_hash(code, at) & known_code_index.mask;
    KnownCode *k = NULL;
    while (known_code_index.slots[slot]) {
        KnownCode *other = jm_table_at(&known_code, known_code_index.slots[slot]);
        if (other->code == code && other->at == at) {
            if (other->mark == mark)
                return other->frame;
            k = other; // no longer
            break;
        }
        slot = (slot + 1) & known_code_index.mask;
    }
    if (!k) {
        UInt id = jm_table_add(&known_code);
        k = jm_table_at(&known_code, id);
        known_code_index.slots[slot] = id;
        known_code_index.used++;
    }
    static HChar file_text[MAX_NAME], name_text[MAX_NAME];
    jm_python_copy_str(&h->file, file_text, sizeof file_text);
    jm_python_copy_str(&h->name, name_text, sizeof name_text);
    k->code = code;
    k->at = at;
    k->mark = mark;
    // From 3.13 on a call of a class runs a frame that cleans up after __init__. It has no line; one string is all its
    // names.
    Bool is_cleanup = h->file.data == h->name.data && h->first_line == 0;
    UInt line =
        jm_python_line(code_objects.layout->lines, (const UChar *)h->lines + BYTES_DATA, h->n_lines, h->first_line, at);
    k->frame = is_cleanup ? 0 : jm_symbol_python_frame(name_text, file_text, line);
    return k->frame;
}

// The frame of the instruction at byte `at` of a code object; 0: not a Python function, or not to be read. `place`:
// where it is if it was met lately.
static FrameId look_at(Addr code, Int at, UInt place)
{
    const PythonLayout *l = code_objects.layout;
    RecentCode *recent = &recent_code[place];
    if (!jm_is_readable(code, code_objects.head) || !is_code(code)) {
        n_unreadable++;
        return 0;
    }
    // That check covers the head of the object.
    if (recent->code == code && recent->at == at && is_still(&recent_heads[place], code)) {
        recent->walk = this_walk;
        return recent->frame;
    }
    CodeHead h = {.filename = *(Addr *)(code + l->code_filename),
                  .function = *(Addr *)(code + l->code_name),
                  .lines = *(Addr *)(code + l->code_lines),
                  .first_line = *(Int *)(code + l->code_firstlineno)};
    if (!jm_python_find_str(l, h.filename, &h.file) || !jm_python_find_str(l, h.function, &h.name) ||
        !jm_read_word(h.lines + BYTES_LENGTH, &h.n_lines) || h.n_lines > MAX_LINE_TABLE ||
        !jm_is_readable(h.lines, BYTES_DATA + h.n_lines)) {
        n_unreadable++;
        return 0;
    }
    // Code from a file stays what it is, and so do the interpreter's own frozen modules, whose long tables an import
    // would read again and again. That of exec is <string> or <something that counts up at the end>.
    Bool is_generated = h.file.length && *(const UChar *)h.file.data == '<' && !is_frozen(&h.file);
    ULong mark = code_mark(&h, is_generated);
    FrameId frame = find_frame(code, at, &h, mark);
    if (!is_generated) {
        *recent = (RecentCode){code, at, frame, this_walk};
        recent_heads[place] = (RecentHead){mark, h};
    }
    return frame;
}

FrameId jm_python_code_frame(Addr code, Int at)
{
    const UInt place = recent_place(code, at);
    const RecentCode *recent = &recent_code[place];
    if (recent->walk == this_walk && recent->code == code && recent->at == at)
        return recent->frame;
    return look_at(code, at, place);
}

void jm_python_code_begin(void)
{
    this_walk++;
}

ULong jm_python_code_unreadable(void)
{
    return n_unreadable;
}

void jm_python_code_stats(void)
{
    jm_stats_table("places in Python code", &known_code);
    jm_stats_index(&known_code_index);
    jm_stats_row("static", "places in Python code met lately", 1u << RECENT_BITS,
                 sizeof recent_code + sizeof recent_heads);
}
