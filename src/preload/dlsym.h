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

#endif
