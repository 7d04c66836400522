/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of colloc that were installed, or built, together with this program. */
#ifndef COLLOC_BASE_BESIDE_H
#define COLLOC_BASE_BESIDE_H

#include <stddef.h>

/*
 * Finds a file or folder by its place relative to this program: an installation that was moved, or
 * is in a DESTDIR, and a build folder are found as they are.
 *
 * places: relative to the folder of /proc/self/exe ("../sbin"), tried in order; "." is the folder
 * itself.
 * count:  of `places`.
 * name:   of the file there.
 * path:   its absolute path, without links, when it is found; `size` bytes.
 *
 * Returns 0, or -ENOENT when it is at none of the places or its path does not fit.
 */
int beside_find(const char *const *places, size_t count, const char *name, char *path, size_t size);

#endif
