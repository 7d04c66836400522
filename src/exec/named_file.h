/* SPDX-License-Identifier: Apache-2.0 */
/* Opening files that a user named. */
#ifndef COLLOC_EXEC_NAMED_FILE_H
#define COLLOC_EXEC_NAMED_FILE_H

#include <sys/types.h>

/*
 * As open(2), without following the kernel's magic links: /dev/stdout and /proc/self/fd/N would be
 * an open file of the process that opens them, whatever the folders above that file forbid. Waits
 * for the file system, which may be for ever: to be called in a helper process that is the user.
 * Returns a descriptor or -errno; -ELOOP for a magic link.
 */
int named_file_open(const char *path, int flags, mode_t mode);

/* As strerror, for what named_file_open returned. */
const char *named_file_error(int errnum);

#endif
