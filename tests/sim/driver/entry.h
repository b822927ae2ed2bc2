/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How an API function is defined: DRIVER_API(name, since, (parameters), (arguments)) { body }
 * makes the exported function, which takes the lock around the body, and a hidden twin that does
 * the same at another address, and enters both into a table that the linker collects and
 * cuGetProcAddress reads. `since` is the CUDA version, as cuGetProcAddress counts, that brought
 * this form of the function. Other forms of it (_v2, _ptsz) call its body, do_name. */
#ifndef JMSIM_ENTRY_H
#define JMSIM_ENTRY_H

#include "driver.h"

#define EXPORT __attribute__((visibility("default")))

struct entry {
    const char *name;
    void *exported, *twin;
    long since;
} __attribute__((aligned(32)));

#define DRIVER_API(name, since, parameters, arguments)                                                                 \
    static CUresult do_##name parameters;                                                                              \
    EXPORT CUresult name parameters                                                                                    \
    {                                                                                                                  \
        sim_lock();                                                                                                    \
        CUresult result = do_##name arguments;                                                                         \
        sim_unlock();                                                                                                  \
        return result;                                                                                                 \
    }                                                                                                                  \
    static CUresult twin_##name parameters                                                                             \
    {                                                                                                                  \
        sim_lock();                                                                                                    \
        CUresult result = do_##name arguments;                                                                         \
        sim_unlock();                                                                                                  \
        return result;                                                                                                 \
    }                                                                                                                  \
    static struct entry entry_##name                                                                                   \
        __attribute__((section("jmsim_entries"), used)) = {#name, (void *)name, (void *)twin_##name, since};           \
    static CUresult do_##name parameters

#endif
