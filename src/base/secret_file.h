/* SPDX-License-Identifier: Apache-2.0 */
/* Files with a secret that a setting names: of one line, which other users must not be able to
 * read. */
#ifndef COLLOC_BASE_SECRET_FILE_H
#define COLLOC_BASE_SECRET_FILE_H

#include <stddef.h>

#include "base/fault.h"

enum secret_owner {
    SECRET_OF_ANYBODY, /* the owner of the file may choose the secret */
    SECRET_OF_ROOT,    /* root, or the user of this process */
};

/*
 * Reads the first line.
 *
 * setting:  its name, for the fault
 * path:     of a regular file that is not readable for group and others, or a link to one
 * ret_line: `size` bytes; the line with a NUL and NULs behind it
 *
 * Returns its length, or -errno with a fault, which has nothing of the file; -EINVAL for a line
 * that is too long or has other bytes than printable ASCII.
 */
int secret_file_read(const char *setting, const char *path, enum secret_owner owner,
    struct fault *fault, char *ret_line, size_t size);

#endif
