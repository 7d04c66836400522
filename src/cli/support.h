/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the parts of colloc that are folders of files: trainings, Python modules. */
#ifndef COLLOC_CLI_SUPPORT_H
#define COLLOC_CLI_SUPPORT_H

#include <stddef.h>

/*
 * Finds a folder: beside this program, where colloc was installed, or in the source tree from which
 * it was built.
 *
 * name: "workloads" or "python".
 * path: the result; `size` bytes.
 *
 * Returns 0 or -ENOENT.
 */
int support_find(const char *name, char *path, size_t size);

#endif
