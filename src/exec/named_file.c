/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens files that a user named, in a process that is this user. openat2(2) resolves the path: it
 * can refuse magic links. A kernel before 5.6, or a sandbox that does not know the call, gets a
 * plain open(2).
 */
#include "exec/named_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int named_file_open(const char *path, int flags, mode_t mode)
{
    struct open_how how = {.flags = (unsigned)flags,
        .mode = flags & O_CREAT ? mode : 0,
        .resolve = RESOLVE_NO_MAGICLINKS};
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        fd = open(path, flags, mode);
    return fd < 0 ? -errno : fd;
}

const char *named_file_error(int errnum)
{
    return errnum == ELOOP
               ? "is a link to an open file of a process (or links form a loop): name the file itself"
               : strerror(errnum);
}
