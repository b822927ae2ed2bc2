// SPDX-License-Identifier: GPL-2.0-or-later
//
// Turn code objects into frames; see code.h. A code object can be freed and replaced by another at the same
// address, and generated code (exec in a loop) even puts its names and lines at the addresses of the code before it. So
// the fields that identify a code object are cached and compared, as far as that is cheap.

#include "python/code.h"
#include "base/checksum.h"
#include "base/libc.h"
#include "base/table.h"
#include "base/text.h"

#define MAX_NAME       4096 // PATH_MAX
#define MAX_LINE_TABLE (1u << 20)

static struct {
    const PythonLayout *layout;
    Addr type;  // PyCode_Type; 0 if unknown
    SizeT head; // bytes of a code object up to the last field that is read
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

void jm_python_copy_str(const Str *str, HChar *to, UInt size)
{
    UInt n = 0;
    for (UWord i = 0; i < str->length && n + JM_UTF8_BYTES + 1 < size; i++) {
        UInt c = str->width == 1   ? ((const UChar *)str->data)[i]
                 : str->width == 2 ? ((const UShort *)str->data)[i]
                                   : ((const UInt *)str->data)[i];
        // Lone surrogates stand for bytes of a file name that is not UTF-8 (PEP 383).
        if (c >= 0xdc80 && c <= 0xdcff)
            to[n++] = c & 0xff;
        else
            n += jm_text_put_utf8(to + n, c);
    }
    to[n] = 0;
}

// ---- identity of a code object -------------------------------------------------------------------------------

#define OBJECT_TYPE 8
#define BYTES_DATA  32

// str and bytes have their length at the same offset.
#define OBJECT_LENGTH JM_STR_LENGTH

// A str, or the line table's bytes.
typedef struct {
    Addr object;
    Str contents;
    const ULong *end; // end of the contents
    ULong last[2];    // two words before the end; of short contents they reach into the object's header, harmlessly
} Part;

typedef struct {
    Part file, name, lines;
    Int first_line;
    Bool is_generated; // made by exec
    ULong mark;        // checksum of all contents
    ULong mappings;    // jm_n_forgotten when all of it was last readable
    LinePlace place;   // in `lines`
} CodeHead;

static Bool is_code(Addr object)
{
    UWord type;
    return !(object & 7) && jm_read_word(object + code_objects.layout->object_more + OBJECT_TYPE, &type) &&
           (!code_objects.type || type == code_objects.type);
}

static void set_end(Part *part)
{
    part->end = (const ULong *)(part->contents.data + part->contents.length * part->contents.width);
    part->last[0] = part->end[-1];
    part->last[1] = part->end[-2];
}

static Bool read_str(Addr object, Part *part)
{
    part->object = object;
    if (!jm_python_find_str(code_objects.layout, object, &part->contents))
        return False;
    set_end(part);
    return True;
}

static Bool read_lines(Addr object, Part *part)
{
    const Addr body = object + code_objects.layout->object_more;
    *part = (Part){.object = object, .contents = {.data = body + BYTES_DATA, .width = 1}};
    UWord *length = &part->contents.length;
    if (!jm_read_word(body + OBJECT_LENGTH, length) || *length > MAX_LINE_TABLE ||
        !jm_is_readable(object, part->contents.data - object + *length))
        return False;
    set_end(part);
    return True;
}

static ULong mark_part(ULong mark, const Part *part)
{
    const Str *contents = &part->contents;
    return jm_checksum((const void *)contents->data, contents->length * contents->width, mark + contents->width);
}

static ULong mark_of(const CodeHead *h)
{
    return mark_part(mark_part(mark_part((UInt)h->first_line, &h->file), &h->name), &h->lines);
}

static Bool is_frozen(const Str *file)
{
    static const HChar frozen[] = "<frozen ";
    return file->width == 1 && file->length >= sizeof frozen - 1 &&
           memcmp((const void *)file->data, frozen, sizeof frozen - 1) == 0;
}

static Bool read_head(Addr code, CodeHead *h)
{
    const PythonLayout *l = code_objects.layout;
    if (!jm_is_readable(code, code_objects.head) || !is_code(code))
        return False;
    if (!read_str(*(Addr *)(code + l->code_filename), &h->file) ||
        !read_str(*(Addr *)(code + l->code_name), &h->name) || !read_lines(*(Addr *)(code + l->code_lines), &h->lines))
        return False;
    // The file of exec's code is <string> or <something with a counter>. Frozen modules are not generated.
    const Str *file = &h->file.contents;
    h->is_generated = file->length && *(const UChar *)file->data == '<' && !is_frozen(file);
    h->first_line = *(Int *)(code + l->code_firstlineno);
    h->mark = mark_of(h);
    h->mappings = jm_n_forgotten;
    h->place = (LinePlace){0};
    return True;
}

static inline Bool part_can_be_read(const Part *part)
{
    return jm_is_readable(part->object, (Addr)part->end - part->object);
}

static Bool can_be_read(CodeHead *h, Addr code)
{
    if (LIKELY(h->mappings == jm_n_forgotten))
        return True;
    if (!jm_is_readable(code, code_objects.head) || !part_can_be_read(&h->file) || !part_can_be_read(&h->name) ||
        !part_can_be_read(&h->lines))
        return False;
    h->mappings = jm_n_forgotten;
    return True;
}

// Nonzero if the length or the end has changed. Differences are combined with |, because successive comparisons would
// wait for each other.
static inline ULong difference(const Part *part)
{
    return (*(const UWord *)(part->object + code_objects.layout->object_more + OBJECT_LENGTH) ^ part->contents.length) |
           (part->end[-1] ^ part->last[0]) | (part->end[-2] ^ part->last[1]);
}

// True if the code object at this address is still the same. If the last walk saw it, a replacement must have been made
// without any allocation in between, so comparing addresses, lengths and ends of its parts suffices. Otherwise compare
// checksums of all contents, as always of generated code, which lies at the same address with the same length.
static Bool is_still(CodeHead *h, Addr code, Bool was_on_stack)
{
    const PythonLayout *l = code_objects.layout;
    if (!can_be_read(h, code) || !is_code(code))
        return False;
    if (*(Addr *)(code + l->code_filename) != h->file.object || *(Addr *)(code + l->code_name) != h->name.object ||
        *(Addr *)(code + l->code_lines) != h->lines.object || *(Int *)(code + l->code_firstlineno) != h->first_line)
        return False;
    const ULong differs = difference(&h->file) | difference(&h->name) | difference(&h->lines);
    return !differs && ((was_on_stack && !h->is_generated) || mark_of(h) == h->mark);
}

// ---- frames --------------------------------------------------------------------------------------------------

// The frame of an instruction.
typedef struct {
    Addr code;
    Int at;
    FrameId frame; // 0 if hidden
    ULong mark;
} KnownCode;

static Table known_code = JM_TABLE("jm.python", KnownCode);

static inline KnownCode *known_code_at(UInt id)
{
    return jm_table_at(&known_code, id);
}

static Index known_code_index = JM_INDEX("jm.python");

static FrameId make_frame(CodeHead *h, Int at)
{
    static HChar file[MAX_NAME], name[MAX_NAME];
    // Since 3.13 a call of a class runs a frame that cleans up after __init__. It has no line, and one string for all
    // its names; hide it.
    if (h->file.object == h->name.object && h->first_line == 0)
        return 0;
    jm_python_copy_str(&h->file.contents, file, sizeof file);
    jm_python_copy_str(&h->name.contents, name, sizeof name);
    const Str *lines = &h->lines.contents;
    const UInt line = jm_python_line(code_objects.layout->lines, (const UChar *)lines->data, lines->length,
                                     h->first_line, at, &h->place);
    return jm_symbol_python_frame(name, file, line);
}

static FrameId find_frame(Addr code, Int at, CodeHead *h)
{
    IndexSlot *slot = JM_INDEX_FIND(&known_code_index, jm_hash(code + ((ULong)(UInt)at << 40)), id,
                                    known_code_at(id)->code == code && known_code_at(id)->at == at);
    const UInt id = slot->entry ? slot->entry : jm_index_put(&known_code_index, slot, jm_table_add(&known_code));
    KnownCode *k = known_code_at(id);
    if (k->mark != h->mark) // it is new, or another code object was there before
        *k = (KnownCode){code, at, make_frame(h, at), h->mark};
    return k->frame;
}

// ---- cache of recent code ------------------------------------------------------------------------------------

// Two-way set-associative, with the frame of one instruction each.
#define RECENT_BITS 10
static struct {
    Addr code;
    ULong walk; // the last walk that saw it
    Int at;
    FrameId frame;
} recent_code[1u << RECENT_BITS];
static CodeHead recent_heads[1u << RECENT_BITS];
static ULong n_walks; // number of the current walk

ULong jm_python_code_begin(void)
{
    return ++n_walks;
}

// The entry of this code object, or the less recently used of its two entries.
static UInt place_of(Addr code)
{
    const UInt first = jm_place(code, RECENT_BITS - 1) * 2, second = first + 1;
    if (recent_code[first].code == code || recent_code[second].code == code)
        return recent_code[first].code == code ? first : second;
    return recent_code[second].walk < recent_code[first].walk ? second : first;
}

Bool jm_python_code_has(Addr code, const CodeParts *parts)
{
    const PythonLayout *l = code_objects.layout;
    return parts->lines && *(Addr *)(code + l->code_filename) == parts->file &&
           *(Addr *)(code + l->code_name) == parts->name && *(Addr *)(code + l->code_lines) == parts->lines &&
           *(Int *)(code + l->code_firstlineno) == parts->first_line;
}

FrameId jm_python_code_frame(Addr code, Int at, Bool was_on_stack, CodeParts *parts)
{
    const UInt place = place_of(code);
    CodeHead *head = &recent_heads[place];
    const ULong seen_in = recent_code[place].walk;
    was_on_stack |= seen_in == n_walks - 1;
    const Bool is_known = recent_code[place].code == code && (seen_in == n_walks || is_still(head, code, was_on_stack));
    recent_code[place].code = 0;
    *parts = (CodeParts){0};
    if (!is_known && !read_head(code, head)) {
        n_unreadable++;
        return 0;
    }
    if (!is_known || recent_code[place].at != at)
        recent_code[place].frame = find_frame(code, at, head);
    recent_code[place].code = code;
    recent_code[place].walk = n_walks;
    recent_code[place].at = at;
    if (!head->is_generated)
        *parts = (CodeParts){head->file.object, head->name.object, head->lines.object, head->first_line};
    return recent_code[place].frame;
}

ULong jm_python_code_unreadable(void)
{
    return n_unreadable;
}
