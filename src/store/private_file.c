/* SPDX-License-Identifier: Apache-2.0 */
/* A database holds what only some users may read: the daemon gives out the parts of it. */
#include "store/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"

enum { MODE = 0600 };

int private_file_make(const char *path, struct fault *fault)
{
    static const char *const endings[] = {"-wal", "-shm"};
    char other[PATH_MAX + 16];
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, MODE);
    int r = fd < 0 || fchmod(fd, MODE) < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(endings); i++) {
        snprintf(other, sizeof other, "%s%s", path, endings[i]);
        r = chmod(other, MODE) < 0 && errno != ENOENT ? -errno : 0;
    }
    return r < 0 ? fault_set(fault, -r, "%s: %s", path, strerror(-r)) : 0;
}
