/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the parts of colloc that were installed, or built, together with this program. */
#ifndef COLLOC_BASE_BESIDE_H
#define COLLOC_BASE_BESIDE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Sets the absolute path of this program. Returns false when it is not known. */
bool beside_self(char ret_path[static PATH_MAX]);

/*
 * Finds a file or folder by its position relative to this program, so that a moved installation,
 * one in a DESTDIR and a build folder work.
 *
 * places: `count` folders relative to that of /proc/self/exe ("../sbin", "."), tried in order
 * name:   of the file
 * path:   its absolute path without links; `size` bytes
 *
 * Returns 0, or -ENOENT when no folder has it or its path does not fit.
 */
int beside_find(const char *const *places, size_t count, const char *name, char *path, size_t size);

#endif
