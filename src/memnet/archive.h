/* SPDX-License-Identifier: Apache-2.0 */
/* Reads files of a data set, plain or packed as .xz. */
#ifndef COLLOC_MEMNET_ARCHIVE_H
#define COLLOC_MEMNET_ARCHIVE_H

#include <stddef.h>

#include "base/fault.h"

enum { ARCHIVE_MAX = 1 << 30 }; /* bytes of one file, unpacked */

/*
 * Reads FOLDER/NAME, or else unpacks FOLDER/NAME.xz (concatenated streams are one file).
 *
 * ret_text: the caller frees it; a NUL follows that *ret_size does not count
 *
 * Returns 0, or with a fault -ENOENT, -EINVAL (damaged), -EFBIG, -ENOMEM or an error of reading.
 */
int archive_read(
    const char *folder, const char *name, struct fault *fault, char **ret_text, size_t *ret_size);

#endif
