/* SPDX-License-Identifier: Apache-2.0 */
/* The listening socket: a file that no process serves any more is replaced, a served one is not. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/server_private.h"

static bool is_served(const struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool alive = fd >= 0 && (connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 ||
                                errno == EAGAIN);
    if (fd >= 0)
        close(fd);
    return alive;
}

int listener_open(struct api_server *server, struct fault *fault, int *ret_fd)
{
    const char *path = server->options.socket_path;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return fault_set(fault, ENAMETOOLONG, "%s: a socket's path may have at most %zu characters",
            path, sizeof address.sun_path - 1);
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (is_served(&address))
        return fault_set(fault, EADDRINUSE, "%s: another collocd serves it", path);
    struct stat status;
    if (lstat(path, &status) == 0 && S_ISSOCK(status.st_mode))
        unlink(path);

    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        chmod(path, server->options.socket_mode) < 0 || listen(fd, SOMAXCONN) < 0 ||
        lstat(path, &status) < 0) {
        int r = fault_set(fault, errno, "%s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return r;
    }
    memcpy(server->socket_path, address.sun_path, sizeof server->socket_path);
    server->socket_device = status.st_dev;
    server->socket_inode = status.st_ino;
    *ret_fd = fd;
    return 0;
}

void listener_remove_file(const struct api_server *server)
{
    struct stat status;
    if (server->socket_path[0] && lstat(server->socket_path, &status) == 0 &&
        status.st_dev == server->socket_device && status.st_ino == server->socket_inode)
        unlink(server->socket_path);
}
