// SPDX-License-Identifier: GPL-2.0-or-later
//
// Objects of a running interpreter that its garbage collector tracks, their classes and attributes. They are read from
// the program's memory while it stands still; no program code runs and nothing is changed. As with frames (python.h)
// every read is checked, and implausible data yields fewer objects.

#pragma once

#include "host/types.h"

// Call `use` with each tracked object and its class. False without an interpreter, or if the collector's lists are not
// found.
Bool jm_python_each_object(void (*use)(Addr object, Addr type));

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

// Call `use` with each value of a dictionary, or element of a list or tuple. Other objects have none.
typedef void (*UseObject)(Addr object, void *context);
void jm_python_each_value(Addr container, UseObject use, void *context);

// A value of a dictionary; 0 if the key is missing or it is no dictionary.
Addr jm_python_item(Addr dict, const HChar *key);
