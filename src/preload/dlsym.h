/* SPDX-License-Identifier: Apache-2.0 */
/* dlsym as the program would have it without the library, and the library's own in its place. */
#ifndef COLLOC_PRELOAD_DLSYM_H
#define COLLOC_PRELOAD_DLSYM_H

#include <stdbool.h>

#include "preload/hook_table.h"

/* dlsym of the C library. */
any_function *dlsym_real(void *handle, const char *name);

/* Returns the first definition after the library's, or NULL. */
any_function *dlsym_next(const char *name);

/* Returns whether the address lies in a file named libcuda.so*. */
bool dlsym_is_drivers(any_function *function);

/* Returns whether the code lies in a file whose name begins so. */
bool dlsym_lies_in(const void *code, const char *file);

/* Returns whether it is NCCL's. */
bool dlsym_is_nccl(const void *code);

/*
 * Returns what other objects define by this name, however they were loaded: what the object of
 * `caller` defines itself, else the first; NULL: none does.
 *   ret_is_only: there is one definition
 */
any_function *dlsym_loaded(const char *name, const void *caller, bool *ret_is_only);

#endif
