// SPDX-License-Identifier: GPL-2.0-or-later
//
// Objects of a running interpreter that its garbage collector tracks, their classes and attributes. They are read from
// the program's memory while it stands still; no program code runs and nothing is changed. As with frames (python.h)
// every read is checked, and implausible data yields fewer objects.

#pragma once

#include "host/types.h"

// Call `use` with each tracked object and its class; with `is_again`, where no object has come since the last such
// walk, only with those for which it returned True. False without an interpreter, or if the collector's lists are not
// found.
typedef Bool (*UseTracked)(Addr object, Addr type);
Bool jm_python_each_object(UseTracked use, Bool is_again);

Addr jm_python_type(Addr object); // 0 if not readable

// Call `is_wanted` for each class of the type's method resolution order, itself first, until one matches. True if one
// did.
Bool jm_python_any_base(Addr type, Bool (*is_wanted)(Addr type, void *context), void *context);

// Compare with tp_name: it includes the module for an extension's class but not for a script's.
Bool jm_python_is_named(Addr type, const HChar *name);

// Compare with __module__, which a script's class has.
Bool jm_python_is_of_module(Addr type, const HChar *module);

// The object's own attribute (not its class's); 0 if there is none.
Addr jm_python_attribute(Addr object, const HChar *name);

// Call `use` with each value of a dictionary, or element of a list, tuple, set or deque. Other objects have none.
typedef void (*UseObject)(Addr object, void *context);
void jm_python_each_value(Addr container, UseObject use, void *context);

// The memory in which a list, dictionary, set or deque has its elements, and their number. 0: another object.
Addr jm_python_storage(Addr container, UWord *n);

// Call `use` with each name and value of a module, a class, an object's own attributes, or a function's closure.
typedef void (*UseNamed)(Addr holder, Addr name, Addr value);
void jm_python_each_named(Addr object, Addr type, UseNamed use);

// Copy a name, cut to `size` bytes, empty if it is not readable: of a variable, of a class without its module, and of a
// holder of names, whose sort is returned.
void jm_python_copy_text(Addr object, HChar *to, UInt size);
void jm_python_copy_class(Addr type, HChar *to, UInt size);
const HChar *jm_python_copy_holder(Addr holder, HChar *to, UInt size);

// A value of a dictionary; 0 if the key is missing or it is no dictionary.
Addr jm_python_item(Addr dict, const HChar *key);
