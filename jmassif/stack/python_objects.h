// SPDX-License-Identifier: GPL-2.0-or-later
//
// The objects of a running interpreter: those that its garbage collector follows, their classes and attributes. They
// are read from the program's memory while it stands still: nothing of it runs, and nothing is changed. As with frames
// (python.h) every read is checked, and what cannot be right yields fewer objects.

#ifndef JM_PYTHON_OBJECTS_H
#define JM_PYTHON_OBJECTS_H

#include "base/compat.h"

// Calls `use` with each object that the collector follows, and its class. False: there is no interpreter, or it cannot
// be found out where it keeps them.
Bool jm_python_each_object(void (*use)(Addr object, Addr type));

Addr jm_python_type(Addr object); // 0: not to be read

// The classes of a class's method resolution order, itself first; False from `is_wanted` goes on. Returns whether one
// was.
Bool jm_python_any_base(Addr type, Bool (*is_wanted)(Addr type, void *context), void *context);

// Its name as it stands in tp_name: with the module for a class of an extension, without for one of a script.
Bool jm_python_is_named(Addr type, const HChar *name);

// A script's class says in which module it was made.
Bool jm_python_is_of_module(Addr type, const HChar *module);

// Whether it is a str, of these ASCII characters.
Bool jm_python_is_text(Addr object, const HChar *text);

// The attribute that an object itself has; 0: none.
Addr jm_python_attribute(Addr object, const HChar *name);

// Calls `use` with each value of a dictionary, or element of a list or tuple. Nothing, if it is none of these.
typedef void (*UseObject)(Addr object, void *context);
void jm_python_each_value(Addr container, UseObject use, void *context);

// A value of a dictionary; 0: none, or it is no dictionary.
Addr jm_python_item(Addr dict, const HChar *key);

#endif
