/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a child process: a part of the program's, and what is added. */
#ifndef COLLOC_BASE_ENVIRONMENT_H
#define COLLOC_BASE_ENVIRONMENT_H

#include <stdbool.h>

/*
 * Makes an environment.
 *
 * beginnings: of entries, such as "CUDA_MPS_" or "PATH="; ended by NULL
 * keeps:      take over the entries that have one of these beginnings; false: all others
 * added:      entries that follow; ended by NULL
 *
 * Returns an array for free(), ended by NULL, whose entries are borrowed; NULL when memory is out.
 */
char **environment_make(const char *const *beginnings, bool keeps, char *const *added);

#endif
