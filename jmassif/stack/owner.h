// SPDX-License-Identifier: GPL-2.0-or-later
//
// Whose a stack's memory is. Owners are data: the rules in owners.rules (compiled in) and in --owners=FILE say which
// object files and functions belong to whom; the first rule that matches a frame names its owner. A stack is read from
// the allocation outwards and its first frame with an owner decides. What that makes a library's or the interpreter's
// becomes the program's data where a line of the program's own Python code has caused it, and what no rule names
// becomes a package's where importing it has brought it: other rules say which code is own, which imports, and which
// owners can lose memory so.

#ifndef JM_OWNER_H
#define JM_OWNER_H

#include "base/compat.h"
#include "base/kind.h"

// The owners that code names. All others are the rules' alone and have the ids that follow.
#define JM_OWNERS(X)                                                                                                   \
    X(UNKNOWN, "unknown")                                                                                              \
    X(TENSOR, "tensor")                                                                                                \
    X(APP, "app")                                                                                                      \
    X(CACHE, "cache") /* what a framework or a pool keeps for later */                                                 \
    X(SLACK, "slack") /* what the driver takes in one piece, to give out in many */

#define JM_OWNER_ENUM(id, name) JM_OWNER_##id,
enum {
    JM_OWNER_NONE, // a frame that no rule names: look further out
    JM_OWNERS(JM_OWNER_ENUM)
};
#undef JM_OWNER_ENUM

// Reads the rules. A syntax error in --owners=FILE ends the run: file, line, the mend; exit status 2.
void jm_owner_init(const HChar *extra_rules_file);

// By what sort of memory it is: of the host, of the device, of the driver below the API.
typedef struct {
    OwnerId host;
    OwnerId device;
    OwnerId driver;
} FrameOwners;

// Training roles of tensors (parameter, gradient, …), by rules of the same kind. Unlike owners, the first *rule* that
// matches any frame of the stack decides, not the first frame: a copy to the device is an input, but a parameter when
// Module.to asked for it.
typedef UShort RoleId; // the rank of the rule: lower ranks decide; 0: none

const HChar *jm_role_name(RoleId role); // "other" for none
Bool jm_role_is_survivors(RoleId role); // the role is that of what outlives the frames (pending.h)

// Whose code a frame runs, for claims.
typedef enum {
    CODE_UNSAID,  // no rule names it: look further out
    CODE_OWN,     // the program's own Python code
    CODE_MAIN,    // likewise, but only if no Python frame is further out: libraries have code with this name too
    CODE_LIBRARY, // a library's Python code: look further out
    CODE_LOAD,    // what loads libraries: all that it causes is theirs, or a package's if an import has asked
    CODE_IMPORT,  // what imports a package: all that it causes is the libraries'
} Code;

// What those frames say of a stack.
typedef enum { CAUSE_UNSAID, CAUSE_OWN, CAUSE_IMPORT, N_CAUSES } Cause;

// What rules are held against a frame by. Any of them may be NULL.
typedef struct {
    HChar type; // 'p': of Python
    const HChar
        *object; // matched without its directory; of Python the file's whole path, by rules that begin with "py:"
    const HChar *soname; // of native code; matched likewise
    const HChar *function;
} NamedFrame;

typedef struct {
    FrameOwners owners;
    RoleId role;
    Code code;
} Ruling;

// What the rules say of a frame.
Ruling jm_owner_judge(const NamedFrame *frame);

// The owner that memory of `owner` has if own code, or an import, has caused it; JM_OWNER_NONE: the same.
OwnerId jm_owner_claimant(OwnerId owner, Cause cause);

OwnerId jm_owner_by_name(const HChar *name); // JM_OWNER_UNKNOWN if there is none
const HChar *jm_owner_name(OwnerId owner);
UInt jm_owner_count(void);           // owners are 1 … n
OwnerId jm_owner_by_rank(UInt rank); // 1 … n, in the order in which the rules name them
const HChar *jm_owner_group(OwnerId owner);

void jm_owner_stats(void); // tells what it keeps (stats.h)

#endif
