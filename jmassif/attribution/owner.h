// SPDX-License-Identifier: GPL-2.0-or-later
//
// Owners of memory. Owners are data: rules in owners.rules (compiled in) and in --owners=FILE match object files and
// functions, and the first rule that matches a frame names its owner. The first frame from the allocation outwards that
// has an owner decides for the stack.
//
// Two overrides follow. Memory of libraries and of the interpreter becomes `data` if user code in Python caused it.
// Memory of a library that no rule names becomes `package` if importing a package caused it. Further rules define user
// code, imports and the owners that can be overridden.

#pragma once

#include "attribution/kind.h"

// Owners that C code names. All others come from rules only and have the ids that follow.
#define JM_OWNERS(X)                                                                                                   \
    X(UNKNOWN, "unknown")                                                                                              \
    X(TENSOR, "tensor")                                                                                                \
    X(APP, "app")                                                                                                      \
    X(CACHE, "cache") /* free memory that a framework or a pool keeps */                                               \
    X(SLACK, "slack") /* committed by the driver, not yet given out */

#define JM_OWNER_ENUM(id, name) JM_OWNER_##id,
enum {
    JM_OWNER_NONE, // no rule names the frame: its caller decides
    JM_OWNERS(JM_OWNER_ENUM)
};
#undef JM_OWNER_ENUM

// Reads the rules; `extra_rules_file` may be NULL. An error in the file ends the run with exit status 2 and a message
// with file, line and correction.
void jm_owner_init(const HChar *extra_rules_file);

// A frame has an owner of host memory, of device memory, and of memory that the driver commits below the API.
typedef enum { OWNS_HOST, OWNS_DEVICE, OWNS_DRIVER, N_OWNED } Owned;

// Training roles of tensors (parameter, gradient, …). Unlike with owners, the first *rule* to match any frame of the
// stack decides, not the first frame: a copy to the device is an input, but a parameter if Module.to requested it.
typedef UShort RoleId; // rank of the rule, the lowest of a stack decides; 0: no rule

const HChar *jm_role_name(RoleId role); // "other" for 0
Bool jm_role_is_survivors(RoleId role); // only memory that outlives the rule's frames has the role

// The kind of code that a frame runs, for overrides.
typedef enum {
    CODE_UNSAID,  // no rule matches: the caller decides
    CODE_OWN,     // user code in Python
    CODE_MAIN,    // the same, but only as the outermost Python frame: libraries have code with this name too
    CODE_LIBRARY, // a library's Python code: the caller decides
    CODE_LOAD,    // loads libraries: never data; a package's if an import is further out
    CODE_IMPORT,  // imports a package: never data
} Code;

// The cause of a stack's memory, from the code of its frames.
typedef enum { CAUSE_UNSAID, CAUSE_OWN, CAUSE_IMPORT, N_CAUSES } Cause;

// The properties of a frame that rules match. Each text may be NULL.
typedef struct {
    HChar type; // 'p': a Python frame
    const HChar
        *object; // native: matched without its directory; Python: the file's whole path, matched by "py:" rules only
    const HChar *soname; // native only; matched like `object`
    const HChar *function;
} NamedFrame;

typedef struct {
    RoleId role;
    OwnerId owners[N_OWNED]; // JM_OWNER_NONE: the caller decides
    UChar code;              // a Code
} Ruling;

// Applies the rules to a frame.
Ruling jm_owner_judge(const NamedFrame *frame);

// Returns the owner that replaces `owner` for this cause; JM_OWNER_NONE: no override.
OwnerId jm_owner_claimant(OwnerId owner, Cause cause);

OwnerId jm_owner_by_name(const HChar *name); // JM_OWNER_UNKNOWN if no owner has the name
const HChar *jm_owner_name(OwnerId owner);
UInt jm_owner_count(void);           // owners are 1 … n
OwnerId jm_owner_by_rank(UInt rank); // 1 … n, in the order in which the rules name them
const HChar *jm_owner_group(OwnerId owner);
