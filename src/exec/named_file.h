/* SPDX-License-Identifier: Apache-2.0 */
/* Opens files that a user named. */
#ifndef COLLOC_EXEC_NAMED_FILE_H
#define COLLOC_EXEC_NAMED_FILE_H

#include <sys/types.h>

/*
 * Opens a file as open(2) does, but follows no magic link of the kernel: /dev/stdout and
 * /proc/self/fd/N would be an open file of the calling process, even if the user may not reach it.
 * May wait for the file system without end: call it in a helper process with the user's rights.
 *
 * Returns a descriptor; -ELOOP for a magic link; or another -errno.
 */
int named_file_open(const char *path, int flags, mode_t mode);

/* Returns the text of strerror, and a better one for a magic link. `errnum`: positive. */
const char *named_file_error(int errnum);

#endif
