/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket between a training and the MPS control daemon, and the environment that both read. One
 * connection carries one command line and its answer:
 *
 *     training                 control daemon
 *     enlist             ->
 *                        <-    4711 100        the server's pid, percentage of the SMs
 */
#include "emulator/mps_channel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/units.h"

const char *mps_pipe_directory(void)
{
    const char *path = getenv("CUDA_MPS_PIPE_DIRECTORY");
    return path && *path ? path : "/tmp/nvidia-mps";
}

int mps_path(const char *name, char *buffer, size_t size)
{
    int n = snprintf(buffer, size, "%s/%s", mps_pipe_directory(), name);
    return n >= 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}

static int open_socket(struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int r = mps_path("control", address->sun_path, sizeof(address->sun_path));
    if (r < 0)
        return r;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd < 0 ? -errno : fd;
}

static int close_failed(int fd)
{
    int r = -errno;

    close(fd);
    return r;
}

/* A socket that a killed daemon left behind is replaced. */
int mps_listen(void)
{
    struct sockaddr_un address;
    int fd = open_socket(&address);

    if (fd < 0)
        return fd;
    unlink(address.sun_path);
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        chmod(address.sun_path, 0666) < 0 || listen(fd, SOMAXCONN) < 0)
        return close_failed(fd);
    return fd;
}

int mps_connect(void)
{
    struct sockaddr_un address;
    int fd = open_socket(&address);

    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return close_failed(fd);
    return fd;
}

/* The daemon closes the connection behind its answer, so the end of the stream is the end of it. */
int mps_request(const char *command, char *answer, size_t size)
{
    size_t used = 0;
    ssize_t n = 1;
    int fd = mps_connect();

    if (fd < 0)
        return fd;
    int r = file_write_fd(fd, command, strlen(command));
    while (r == 0 && n > 0 && used < size - 1) {
        n = read(fd, answer + used, size - 1 - used);
        if (n < 0 && errno != EINTR)
            r = -errno;
        used += n > 0 ? (size_t)n : 0;
    }
    answer[used] = '\0';
    close(fd);
    return r;
}

static double own_share(void)
{
    const char *text = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    double percent;

    return text && parse_double(text, 1, 100, &percent) == 0 ? percent / 100 : 1;
}

int64_t mps_memory_limit(void)
{
    const char *text = getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
    long long value;
    char unit;

    if (!text || sscanf(text, "0=%lld%c", &value, &unit) != 2)
        return 0;
    return value * (unit == 'G' ? GIB : unit == 'K' ? KIB : MIB);
}

/* 807 is CUDA_ERROR_MPS_SERVER_NOT_READY: the server takes no clients now. */
int mps_enlist(pid_t *ret_server, double *ret_share)
{
    char answer[64];
    double percent;
    int server;

    if (mps_request("enlist\n", answer, sizeof(answer)) < 0)
        return 0;
    if (strcmp(answer, "807\n") == 0)
        return -EAGAIN;
    if (sscanf(answer, "%d %lf", &server, &percent) != 2)
        return 0;
    *ret_server = server;
    *ret_share = own_share() < percent / 100 ? own_share() : percent / 100;
    return 1;
}
