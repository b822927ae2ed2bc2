// SPDX-License-Identifier: GPL-2.0-or-later
//
// The rule table: parsing it, and matching a frame against it. Matching is done once per frame when it is first seen,
// never per allocation, so rules are tried one after the other.
//
// Python keeps objects of up to 512 bytes in arenas, and an arena belongs to the line that needed it. So owners are off
// by up to an arena where imports end and the script's own lines begin, and after a late import the other way round.
// Measured against PYTHONMALLOC=malloc with Python 3.11 (arenas of 1 MiB), 0.1 to 0.9 MiB went to `python` instead of
// `data`: of a list of 23 MiB 0.5 %, of 10 MiB 7 %, of 3 MiB 25 % (after `import numpy` 6 %), of 1 MiB 78 %. Of 23 MiB
// in other releases: nothing in 3.6 and 3.8, 3 % in 3.10, 0.6 % in 3.12, 2.4 % in 3.13. An arena's rounding and the
// room left in its pools, 6 to 14 % here, are the line's too.

#include "stack/owner.h"
#include "base/options.h"
#include "base/stats.h"
#include "base/text.h"

#include "stack/owners_rules.h" // jm_owners_rules: owners.rules as a string, made by the build

#define MAX_OWNERS 200 // an OwnerId is a byte; the rest is room for the names that only groups mention

typedef struct {
    OwnerId owner; // JM_OWNER_NONE: pass over
    Bool host;
    Bool device;
    Bool driver; // below the API
    Bool is_python;
    const HChar *objects;   // globs joined by |; of Python files' paths if is_python
    const HChar *functions; // likewise
} Rule;

typedef struct {
    Rule frame; // its owner is not used
    const HChar *role;
    Bool is_survivors;
} RoleRule;

typedef struct {
    Rule frame; // its owner is not used
    Code code;
} CodeRule;

#define MAX_ROLE_RULES 250 // of one file

static XArray *rules;      // of Rule
static XArray *role_rules; // of RoleRule
static XArray *code_rules; // of CodeRule
static struct {
    const HChar *name;
    const HChar *group;
    OwnerId claimants[N_CAUSES];
    Bool is_ranked;
} owners[MAX_OWNERS];
static UInt n_owners;
static OwnerId by_rank[MAX_OWNERS]; // in the order in which the rules name them, so that a trace is as its rules are
static UInt n_ranked;

static const HChar *const groups[] = {"yours", "cached", "libraries", "runtime", NULL};

static const struct {
    const HChar *name;
    Code code;
} codes[] = {
    {"own", CODE_OWN}, {"main", CODE_MAIN}, {"library", CODE_LIBRARY}, {"load", CODE_LOAD}, {"import", CODE_IMPORT}};

static const HChar too_many_owners[] = "more than 198 owners; use fewer names";

// JM_OWNER_NONE: there is none of that name.
static OwnerId find_owner(const HChar *name)
{
    for (UInt i = 1; i <= n_owners; i++)
        if (VG_STREQ(owners[i].name, name))
            return i;
    return JM_OWNER_NONE;
}

static OwnerId add_owner(const HChar *name)
{
    owners[++n_owners].name = name;
    owners[n_owners].group = "libraries";
    return n_owners;
}

static void rank(OwnerId owner)
{
    if (!owners[owner].is_ranked)
        by_rank[++n_ranked] = owner;
    owners[owner].is_ranked = True;
}

static SizeT n_kept_words, kept_bytes;

static const HChar *keep_word(const HChar *word)
{
    n_kept_words++;
    kept_bytes += VG_(strlen)(word) + 1;
    return VG_(strdup)("jm.owner", word);
}

// Of a name in the rules. JM_OWNER_NONE: there are too many.
static OwnerId intern_owner(const HChar *name)
{
    OwnerId owner = find_owner(name);
    if (!owner && n_owners + 1 < MAX_OWNERS)
        owner = add_owner(keep_word(name));
    if (owner)
        rank(owner);
    return owner;
}

static void add_named_by_code(void)
{
#define ADD(id, name)                                                                                                  \
    {                                                                                                                  \
        OwnerId owner = add_owner(name);                                                                               \
        tl_assert(owner == JM_OWNER_##id);                                                                             \
    }
    JM_OWNERS(ADD)
#undef ADD
    rank(JM_OWNER_UNKNOWN);
}

// True if `text` matches one of the globs in `globs` ("a*|b?").
static Bool matches_any(const HChar *globs, const HChar *text)
{
    while (*globs) {
        if (jm_text_fits(globs, '|', text))
            return True;
        while (*globs && *globs != '|')
            globs++;
        if (*globs == '|')
            globs++;
    }
    return False;
}

// A record of the trace has room for a name, and so has a report.
#define MAX_NAME 64

static Bool is_name(const HChar *s)
{
    if (!*s || VG_(strlen)(s) > MAX_NAME)
        return False;
    for (; *s; s++)
        if (!(VG_(isdigit)(*s) || (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || *s == '-' || *s == '_'))
            return False;
    return True;
}

static Rule frame_rule(const HChar *objects, const HChar *functions)
{
    Rule rule;
    VG_(memset)(&rule, 0, sizeof rule);
    rule.is_python = VG_(strncmp)(objects, "py:", 3) == 0;
    rule.objects = keep_word(objects + (rule.is_python ? 3 : 0));
    rule.functions = keep_word(functions);
    return rule;
}

#define MAX_GLOB 255

static const HChar too_long_glob[] = "a pattern is too long; 255 characters are the most, and | joins several";

static Bool has_long_glob(const HChar *globs)
{
    UInt n = 0;
    for (; *globs && n <= MAX_GLOB; globs++)
        n = *globs == '|' ? 0 : n + 1;
    return n > MAX_GLOB;
}

// role ROLE OBJECT FUNCTION [survivors]
static const HChar *add_role_rule(HChar **words, UInt n)
{
    if (n < 4 || n > 5 || (n == 5 && !VG_STREQ(words[4], "survivors")))
        return "expected: role ROLE OBJECT FUNCTION [survivors]";
    if (!is_name(words[1]))
        return "a role's name is made of letters, digits, - and _, 64 at most";
    if (VG_(sizeXA)(role_rules) >= MAX_ROLE_RULES)
        return "too many role rules; 250 are the most";
    if (has_long_glob(words[2]) || has_long_glob(words[3]))
        return too_long_glob;
    RoleRule rule = {frame_rule(words[2], words[3]), keep_word(words[1]), n == 5};
    VG_(addToXA)(role_rules, &rule);
    return NULL;
}

// group GROUP OWNER...
static const HChar *add_to_group(HChar **words, UInt n)
{
    if (n < 3)
        return "expected: group GROUP OWNER...";
    UInt g = 0;
    while (groups[g] && !VG_STREQ(words[1], groups[g]))
        g++;
    if (!groups[g])
        return "the group must be yours, cached, libraries or runtime";
    for (UInt i = 2; i < n; i++) {
        if (!is_name(words[i]))
            return "an owner's name is made of letters, digits, - and _, 64 at most";
        OwnerId owner = intern_owner(words[i]);
        if (owner == JM_OWNER_NONE)
            return too_many_owners;
        owners[owner].group = groups[g];
    }
    return NULL;
}

// code SORT OBJECT FUNCTION
static const HChar *add_code_rule(HChar **words, UInt n)
{
    if (n != 4)
        return "expected: code own|main|library|load|import OBJECT FUNCTION";
    UInt c = 0;
    while (c < sizeof codes / sizeof codes[0] && !VG_STREQ(words[1], codes[c].name))
        c++;
    if (c == sizeof codes / sizeof codes[0])
        return "code must be own, main, library, load or import";
    if (has_long_glob(words[2]) || has_long_glob(words[3]))
        return too_long_glob;
    CodeRule rule = {frame_rule(words[2], words[3]), codes[c].code};
    VG_(addToXA)(code_rules, &rule);
    return NULL;
}

// claim CLAIMANT|- OWNER...
// import CLAIMANT|- OWNER...
static const HChar *add_claim(HChar **words, UInt n, Cause cause)
{
    if (n < 3)
        return cause == CAUSE_OWN ? "expected: claim CLAIMANT OWNER... (- as the claimant takes a claim back)"
                                  : "expected: import CLAIMANT OWNER... (- as the claimant takes a claim back)";
    OwnerId claimant = JM_OWNER_NONE;
    for (UInt i = 1; i < n; i++) {
        if (i == 1 && VG_STREQ(words[i], "-"))
            continue;
        if (!is_name(words[i]))
            return "an owner's name is made of letters, digits, - and _, 64 at most";
        OwnerId owner = intern_owner(words[i]);
        if (owner == JM_OWNER_NONE)
            return too_many_owners;
        if (i == 1)
            claimant = owner;
        else
            owners[owner].claimants[cause] = claimant;
    }
    return NULL;
}

// OWNER OBJECT FUNCTION [host|device|driver]
static const HChar *add_rule(HChar **words, UInt n)
{
    if (n < 3 || n > 4)
        return "expected: OWNER OBJECT FUNCTION [host|device|driver]";
    Bool passes = VG_STREQ(words[0], "-");
    if (!passes && !is_name(words[0]))
        return "an owner's name is made of letters, digits, - and _, 64 at most (or is - to pass the frame over)";
    if (has_long_glob(words[1]) || has_long_glob(words[2]))
        return too_long_glob;
    Rule rule = frame_rule(words[1], words[2]);
    rule.host = n == 3 || VG_STREQ(words[3], "host");
    rule.device = n == 3 || VG_STREQ(words[3], "device");
    rule.driver = rule.device || VG_STREQ(words[3], "driver");
    if (!rule.host && !rule.driver)
        return "the last field must be host, device or driver";
    rule.owner = passes ? JM_OWNER_NONE : intern_owner(words[0]);
    if (!passes && rule.owner == JM_OWNER_NONE)
        return too_many_owners;
    VG_(addToXA)(rules, &rule);
    return NULL;
}

// One line of a rules text. Returns NULL, or what is wrong with it.
static const HChar *parse_line(HChar *line)
{
    HChar *words[32];
    UInt n = 0;
    HChar *save;
    HChar *hash = VG_(strchr)(line, '#');
    if (hash)
        *hash = 0;
    for (HChar *w = VG_(strtok_r)(line, " \t\r", &save); w; w = VG_(strtok_r)(NULL, " \t\r", &save)) {
        if (n == sizeof words / sizeof words[0])
            return "too many words; a group line holds at most 30 owners, split it";
        words[n++] = w;
    }
    if (n == 0)
        return NULL;
    if (VG_STREQ(words[0], "group"))
        return add_to_group(words, n);
    if (VG_STREQ(words[0], "role"))
        return add_role_rule(words, n);
    if (VG_STREQ(words[0], "code"))
        return add_code_rule(words, n);
    if (VG_STREQ(words[0], "claim"))
        return add_claim(words, n, CAUSE_OWN);
    if (VG_STREQ(words[0], "import"))
        return add_claim(words, n, CAUSE_IMPORT);
    return add_rule(words, n);
}

static void parse(const HChar *name, HChar *text)
{
    UInt line_number = 0;
    while (text) {
        HChar *end = VG_(strchr)(text, '\n');
        if (end)
            *end = 0;
        line_number++;
        const HChar *wrong = parse_line(text);
        if (wrong)
            jm_usage_error("%s:%u: %s", name, line_number, wrong);
        text = end ? end + 1 : NULL;
    }
}

static void append_all(XArray *to, XArray *from)
{
    for (Word i = 0; i < VG_(sizeXA)(from); i++)
        VG_(addToXA)(to, VG_(indexXA)(from, i));
    VG_(deleteXA)(from);
}

static void begin_rules(void)
{
    rules = VG_(newXA)(VG_(malloc), "jm.owner", VG_(free), sizeof(Rule));
    role_rules = VG_(newXA)(VG_(malloc), "jm.owner", VG_(free), sizeof(RoleRule));
    code_rules = VG_(newXA)(VG_(malloc), "jm.owner", VG_(free), sizeof(CodeRule));
}

#define MAX_FILE (1u << 20)

void jm_owner_init(const HChar *extra_rules_file)
{
    begin_rules();
    add_named_by_code();
    HChar *builtin = VG_(strdup)("jm.owner", jm_owners_rules);
    parse("owners.rules", builtin);
    VG_(free)(builtin);
    tl_assert(n_ranked == n_owners); // the rules name each that code does
    if (!extra_rules_file)
        return;

    // A user's groups and claims are read last, so that they override; a user's rules go first, because the first match
    // decides.
    XArray *builtin_rules = rules, *builtin_role_rules = role_rules, *builtin_code_rules = code_rules;
    begin_rules();
    HChar *extra = jm_text_read_file(extra_rules_file, MAX_FILE + 1);
    if (!extra)
        jm_usage_error("--owners=%s: cannot read the file; give the path of a rules file", extra_rules_file);
    if (VG_(strlen)(extra) > MAX_FILE)
        jm_usage_error("--owners=%s: the file is too large; a mebibyte is the most", extra_rules_file);
    parse(extra_rules_file, extra);
    VG_(free)(extra);
    append_all(rules, builtin_rules);
    append_all(role_rules, builtin_role_rules);
    append_all(code_rules, builtin_code_rules);
}

static void decide(OwnerId owner, Bool applies, OwnerId *decided, Bool *has_decided)
{
    if (!applies || *has_decided)
        return;
    *decided = owner;
    *has_decided = True;
}

// Which rules of each list a frame's function is held against follows from its object. Frames of one object come many
// at a time, so those of the last one are kept.
static struct {
    HChar type;
    HChar *object; // without its directory; of Python the file's path
    HChar *soname;
    XArray *rules, *role_rules, *code_rules; // of UInt, places in the lists
} met;

// Of a list whose elements begin with a Rule.
static XArray *choose(XArray *chosen, const XArray *list)
{
    if (!chosen)
        chosen = VG_(newXA)(VG_(malloc), "jm.owner", VG_(free), sizeof(UInt));
    VG_(dropTailXA)(chosen, VG_(sizeXA)(chosen));
    for (UInt i = 0; i < VG_(sizeXA)(list); i++) {
        const Rule *rule = VG_(indexXA)(list, i);
        if (rule->is_python == (met.type == 'p') &&
            (matches_any(rule->objects, met.object) || (*met.soname && matches_any(rule->objects, met.soname))))
            VG_(addToXA)(chosen, &i);
    }
    return chosen;
}

static void meet(const NamedFrame *frame)
{
    const Bool is_python = frame->type == 'p';
    const HChar *object = !frame->object ? "" : is_python ? frame->object : VG_(basename)(frame->object);
    const HChar *soname = is_python || !frame->soname ? "" : frame->soname;
    if (met.object && is_python == (met.type == 'p') && VG_(strcmp)(object, met.object) == 0 &&
        VG_(strcmp)(soname, met.soname) == 0)
        return;
    if (met.object) {
        VG_(free)(met.object);
        VG_(free)(met.soname);
    }
    met.type = frame->type;
    met.object = VG_(strdup)("jm.owner", object);
    met.soname = VG_(strdup)("jm.owner", soname);
    met.rules = choose(met.rules, rules);
    met.role_rules = choose(met.role_rules, role_rules);
    met.code_rules = choose(met.code_rules, code_rules);
}

// The place of the first rule from the one chosen as `number` on that fits the function; -1: none. Moves `number`
// behind it.
static Word next_rule(const XArray *chosen, const XArray *list, const HChar *function, Word *number)
{
    while (*number < VG_(sizeXA)(chosen)) {
        const UInt place = *(UInt *)VG_(indexXA)(chosen, (*number)++);
        const Rule *rule = VG_(indexXA)(list, place);
        if (matches_any(rule->functions, function ? function : ""))
            return place;
    }
    return -1;
}

// The first rule for each sort of memory decides.
static FrameOwners owners_of(const HChar *function)
{
    Bool host = False, device = False, driver = False;
    FrameOwners found = {JM_OWNER_NONE, JM_OWNER_NONE, JM_OWNER_NONE};
    Word number = 0, place;
    while (!(host && device && driver) && (place = next_rule(met.rules, rules, function, &number)) >= 0) {
        const Rule *rule = VG_(indexXA)(rules, place);
        decide(rule->owner, rule->host, &found.host, &host);
        decide(rule->owner, rule->device, &found.device, &device);
        decide(rule->owner, rule->driver, &found.driver, &driver);
    }
    return found;
}

Ruling jm_owner_judge(const NamedFrame *frame)
{
    meet(frame);
    Word role = 0, code = 0;
    const RoleId its_role = next_rule(met.role_rules, role_rules, frame->function, &role) + 1;
    const Word place = next_rule(met.code_rules, code_rules, frame->function, &code);
    return (Ruling){.owners = owners_of(frame->function),
                    .role = its_role,
                    .code = place < 0 ? CODE_UNSAID : ((CodeRule *)VG_(indexXA)(code_rules, place))->code};
}

OwnerId jm_owner_claimant(OwnerId owner, Cause cause)
{
    return owners[owner].claimants[cause];
}

const HChar *jm_role_name(RoleId role)
{
    return role ? ((RoleRule *)VG_(indexXA)(role_rules, role - 1))->role : "other";
}

Bool jm_role_is_survivors(RoleId role)
{
    return role && ((RoleRule *)VG_(indexXA)(role_rules, role - 1))->is_survivors;
}

OwnerId jm_owner_by_name(const HChar *name)
{
    OwnerId owner = find_owner(name);
    return owner ? owner : JM_OWNER_UNKNOWN;
}

const HChar *jm_owner_name(OwnerId owner)
{
    return owners[owner].name;
}
const HChar *jm_owner_group(OwnerId owner)
{
    return owners[owner].group;
}
UInt jm_owner_count(void)
{
    return n_owners;
}
OwnerId jm_owner_by_rank(UInt rank)
{
    return by_rank[rank];
}

void jm_owner_stats(void)
{
    jm_stats_array("jm.owner", "owner rules", rules, sizeof(Rule));
    jm_stats_array("jm.owner", "role rules", role_rules, sizeof(RoleRule));
    jm_stats_array("jm.owner", "code rules", code_rules, sizeof(CodeRule));
    jm_stats_row("jm.owner", "words of the rules", n_kept_words, kept_bytes);
}
