/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a data set, plain or as .xz. */
#ifndef COLLOC_MEMNET_ARCHIVE_H
#define COLLOC_MEMNET_ARCHIVE_H

#include <stddef.h>

#include "base/fault.h"

enum { ARCHIVE_MAX = 1 << 30 }; /* bytes of one file, unpacked */

/*
 * FOLDER/NAME, or else FOLDER/NAME.xz unpacked (several streams one behind the other are one file).
 * The caller frees *ret_text, which ends in a NUL that *ret_size does not count. 0, or with a fault
 * -ENOENT, -EINVAL (damaged), -EFBIG, -ENOMEM and what reading gives.
 */
int archive_read(
    const char *folder, const char *name, struct fault *fault, char **ret_text, size_t *ret_size);

#endif
