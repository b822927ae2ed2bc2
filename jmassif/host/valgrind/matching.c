// SPDX-License-Identifier: GPL-2.0-or-later
//
// When an object file is mapped, the core matches each name of each function with each pattern of functions to replace
// or wrap: 70 patterns for objects of any name, and all of it twice. PyTorch has 300,000 functions, of which a few
// hundred can match. So the core is shown only these: names that begin like a pattern and match it, or that have the
// core's own prefix. Patterns are learned when the core decodes them. The dynamic loader is shown whole, because the
// core's own patterns for it are never decoded.
//
// The core's function for one match measures both strings each time, and takes exponential time for patterns with many
// stars, which users' rules may contain. jm_text_fits replaces it. The linker leads the core's calls here (--wrap).

#include "host/valgrind/matching.h"
#include "base/stats.h"
#include "base/table.h"
#include "base/text.h"
#include "host/valgrind/debug_info.h"

__typeof__(VG_(string_match)) __wrap_vgPlain_string_match;

Bool __wrap_vgPlain_string_match(const HChar *pattern, const HChar *string)
{
    return jm_text_fits(pattern, 0, string);
}

#if defined(CHOOSES_SYMBOLS)

#define BUCKET_BITS 12
#define BEGINNING   4 // characters

// Private functions of the core, unchanged since 3.16.
typedef struct SymbolAddresses SymbolAddresses;
Bool __real_vgPlain_maybe_Z_demangle(const HChar *, HChar **, HChar **, Bool *, Int *, Int *);
Int __real_vgPlain_DebugInfo_syms_howmany(const DebugInfo *);
void __real_vgPlain_DebugInfo_syms_getidx(const DebugInfo *, Int, SymbolAddresses *, UInt *, const HChar **,
                                          const HChar ***, Bool *, Bool *, Bool *);
void __real_vgPlain_redir_notify_new_DebugInfo(const DebugInfo *);
__typeof__(__real_vgPlain_maybe_Z_demangle) __wrap_vgPlain_maybe_Z_demangle;
__typeof__(__real_vgPlain_DebugInfo_syms_howmany) __wrap_vgPlain_DebugInfo_syms_howmany;
__typeof__(__real_vgPlain_DebugInfo_syms_getidx) __wrap_vgPlain_DebugInfo_syms_getidx;
__typeof__(__real_vgPlain_redir_notify_new_DebugInfo) __wrap_vgPlain_redir_notify_new_DebugInfo;

// Symbols that the core looks up itself: for --sim-hints=no-nptl-pthread-stackcache, and for the display of Ada's
// names.
static const HChar *const known_to_core[] = {"stack_cache_actsize", "gnu_get_libc_version",
                                             "__gnat_ada_main_program_name"};

// --require-text-symbol: its patterns are searched among all symbols.
extern XArray *VG_(clo_req_tsyms);

typedef struct {
    UInt text; // offset in `texts`
    UInt beginning;
    UShort next; // index + 1 of the next pattern in the bucket; 0 at the end
} Pattern;

static XArray *patterns; // of Pattern
static XArray *texts;    // of HChar
static UShort buckets[1u << BUCKET_BITS];
static Bool any_may_match; // a pattern begins with a wildcard, or there are too many: show all symbols

static const DebugInfo *shown; // the object file that is shown in part
static XArray *chosen;         // of Int, numbers of the symbols shown
static UInt chosen_at;         // jm_debug_info_n_read() at the choice

// Pack the first characters, or all of a shorter text, into a word.
static inline UInt beginning_of(const HChar *text)
{
    UInt bits = 0;
    for (UInt i = 0; i < BEGINNING && text[i]; i++)
        bits |= (UInt)(UChar)text[i] << 8 * i;
    return bits;
}

static inline const HChar *text_of(const Pattern *pattern)
{
    return VG_(indexXA)(texts, pattern->text);
}

static Bool is_known(const HChar *text)
{
    const Pattern *pattern;
    for (UInt at = buckets[jm_place(beginning_of(text), BUCKET_BITS)]; at; at = pattern->next) {
        pattern = VG_(indexXA)(patterns, at - 1);
        if (VG_(strcmp)(text_of(pattern), text) == 0)
            return True;
    }
    return False;
}

static void learn(const HChar *text)
{
    for (UInt i = 0; i < BEGINNING && text[i]; i++)
        any_may_match |= text[i] == '*' || text[i] == '?' || text[i] == '\\';
    if (!patterns) {
        patterns = VG_(newXA)(VG_(malloc), "jm.patterns", VG_(free), sizeof(Pattern));
        texts = VG_(newXA)(VG_(malloc), "jm.patterns", VG_(free), sizeof(HChar));
    }
    if (any_may_match || is_known(text))
        return;
    if (VG_(sizeXA)(patterns) == 0xFFFF) {
        any_may_match = True;
        return;
    }
    UShort *bucket = &buckets[jm_place(beginning_of(text), BUCKET_BITS)];
    const Pattern pattern = {VG_(addBytesToXA)(texts, text, VG_(strlen)(text) + 1), beginning_of(text), *bucket};
    *bucket = VG_(addToXA)(patterns, &pattern) + 1;
}

// Learn the pattern that a symbol's name encodes (`*function`).
Bool __wrap_vgPlain_maybe_Z_demangle(const HChar *symbol, HChar **soname, HChar **function, Bool *is_wrapper, Int *tag,
                                     Int *priority)
{
    const Bool is_pattern = __real_vgPlain_maybe_Z_demangle(symbol, soname, function, is_wrapper, tag, priority);
    if (is_pattern && function)
        learn(*function);
    return is_pattern;
}

static Bool may_be_replaced(const HChar *name)
{
    const UInt beginning = beginning_of(name);
    for (UInt at = buckets[jm_place(beginning, BUCKET_BITS)]; at;) {
        const Pattern *pattern = VG_(indexXA)(patterns, at - 1);
        if (pattern->beginning == beginning && jm_text_fits(text_of(pattern), 0, name))
            return True;
        at = pattern->next;
    }
    return name[0] == '_' && name[1] == 'v' && name[2] == 'g'; // VG_NOTIFY_ON_LOAD
}

// VG_REPLACE_FUNCTION and VG_WRAP_FUNCTION: such an object may replace functions of its own, so it is shown whole.
static Bool is_encoded(const HChar *name)
{
    return VG_(strncmp)(name, "_vgr", 4) == 0 || VG_(strncmp)(name, "_vgw", 4) == 0;
}

static Bool is_whole(const DebugInfo *object)
{
    const HChar *path = VG_(DebugInfo_get_filename)(object), *soname = VG_(DebugInfo_get_soname)(object);
    return any_may_match || VG_(sizeXA)(VG_(clo_req_tsyms)) ||
           (path && VG_(strncmp)(VG_(basename)(path), "ld", 2) == 0) || (soname && VG_(strncmp)(soname, "ld", 2) == 0);
}

static Bool is_any(const HChar *name, const HChar *const *others, Bool (*is)(const HChar *))
{
    for (; name; name = others ? *others++ : NULL)
        if (is(name))
            return True;
    return False;
}

// Choose the symbols to show; False if all must be shown.
static Bool choose(const DebugInfo *object)
{
    const Int n = __real_vgPlain_DebugInfo_syms_howmany(object);
    if (!chosen)
        chosen = VG_(newXA)(VG_(malloc), "jm.chosen", VG_(free), sizeof(Int));
    VG_(dropTailXA)(chosen, VG_(sizeXA)(chosen));
    chosen_at = jm_debug_info_n_read();
    for (Int i = 0; i < n; i++) {
        const HChar *name, **others;
        Bool is_text;
        __real_vgPlain_DebugInfo_syms_getidx(object, i, NULL, NULL, &name, &others, &is_text, NULL, NULL);
        if (!is_any(name, others, may_be_replaced))
            continue;
        if (is_any(name, others, is_encoded))
            return False;
        VG_(addToXA)(chosen, &i);
    }
    return True;
}

void __wrap_vgPlain_redir_notify_new_DebugInfo(const DebugInfo *object)
{
    jm_debug_info_read_early(object);
    if (!patterns)
        for (UInt i = 0; i < sizeof known_to_core / sizeof *known_to_core; i++)
            learn(known_to_core[i]);
    if (!is_whole(object) && choose(object))
        shown = object;
    __real_vgPlain_redir_notify_new_DebugInfo(object);
    shown = NULL;
}

// Choose again if symbols were renumbered: from 3.22 on the core reads the C library's separate debug file in between.
Int __wrap_vgPlain_DebugInfo_syms_howmany(const DebugInfo *object)
{
    if (object == shown && chosen_at != jm_debug_info_n_read() && !choose(object))
        shown = NULL;
    return object == shown ? VG_(sizeXA)(chosen) : __real_vgPlain_DebugInfo_syms_howmany(object);
}

void __wrap_vgPlain_DebugInfo_syms_getidx(const DebugInfo *object, Int number, SymbolAddresses *addresses, UInt *size,
                                          const HChar **name, const HChar ***others, Bool *is_text, Bool *is_ifunc,
                                          Bool *is_global)
{
    if (object == shown)
        number = *(Int *)VG_(indexXA)(chosen, number);
    __real_vgPlain_DebugInfo_syms_getidx(object, number, addresses, size, name, others, is_text, is_ifunc, is_global);
}

void jm_matching_stats(void)
{
    jm_stats_row("jm.patterns", "patterns of what is replaced", patterns ? VG_(sizeXA)(patterns) : 0,
                 patterns ? VG_(sizeXA)(patterns) * sizeof(Pattern) : 0);
    jm_stats_row("jm.patterns", "characters of these", texts ? VG_(sizeXA)(texts) : 0,
                 texts ? VG_(sizeXA)(texts) * sizeof(HChar) : 0);
}

#else

void jm_matching_stats(void) {}

#endif
