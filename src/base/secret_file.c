/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a secret, such as a password, from a file that other users cannot read. It is read once,
 * and its copy in memory is erased. */
#include "base/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define FILE_MAX 4096 /* bytes; chosen */

/* The open file is examined, not its name: that can be given to another file meanwhile. */
static int open_secret(
    const char *setting, const char *path, enum secret_owner owner, struct fault *fault)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int r = fd < 0 || fstat(fd, &status) < 0
                ? fault_set(fault, errno, "%s: %s: %s", setting, path, strerror(errno))
                : 0;
    if (r == 0 && (!S_ISREG(status.st_mode) || (status.st_mode & 077)))
        r = fault_set(fault, EPERM,
            "%s: %s: must be a file that other users cannot read: chmod 600", setting, path);
    if (r == 0 && owner == SECRET_OF_ROOT && status.st_uid != 0 && status.st_uid != geteuid())
        r = fault_set(fault, EPERM,
            "%s: %s: belongs to user %ld, who can change it: chown it to root, or to the user of "
            "this program",
            setting, path, (long)status.st_uid);
    if (r < 0 && fd >= 0)
        close(fd);
    return r < 0 ? r : fd;
}

int secret_file_read(const char *setting, const char *path, enum secret_owner owner,
    struct fault *fault, char *ret_line, size_t size)
{
    char *text;
    size_t text_size;
    int fd = open_secret(setting, path, owner, fault);
    if (fd < 0)
        return fd;
    int r = file_read_fd(fd, path, FILE_MAX, fault, &text, &text_size);
    close(fd);
    if (r < 0)
        return r;
    size_t length = strcspn(text, "\r\n");
    bool is_plain = length < size;
    for (size_t i = 0; i < length; i++)
        is_plain = is_plain && text[i] >= ' ' && text[i] < 0x7f;
    memset(ret_line, 0, size);
    if (is_plain)
        memcpy(ret_line, text, length);
    explicit_bzero(text, text_size);
    free(text);
    return is_plain ? (int)length
                    : fault_set(fault, EINVAL,
                          "%s: %s: its first line must have at most %zu printable ASCII characters",
                          setting, path, size - 1);
}
