/* SPDX-License-Identifier: Apache-2.0 */
/* The library's connections to the daemon. There is one per process and one per thread that waits:
 * no reply has to be sorted out. */
#include "preload/connection.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* From the environment. */
static struct {
    char socket[sizeof(((struct sockaddr_un *)NULL)->sun_path)]; /* empty: none that fits */
    uint64_t task;                                               /* 0: none */
    uint32_t attempt;
} place;

/* A decimal number in the environment; 0: none. */
static uint64_t number_of(const char *variable)
{
    const char *text = getenv(variable);
    uint64_t number = 0;
    for (; text && *text >= '0' && *text <= '9'; text++)
        number = number * 10 + (uint64_t)(*text - '0');
    return number;
}

void connection_read_environment(void)
{
    const char *path = getenv(PRELOAD_SOCKET_VARIABLE);
    size_t length = path ? strlen(path) : 0;
    memset(&place, 0, sizeof(place));
    if (path && length < sizeof(place.socket))
        memcpy(place.socket, path, length);
    place.task = number_of(PRELOAD_TASK_VARIABLE);
    place.attempt = (uint32_t)number_of(PRELOAD_ATTEMPT_VARIABLE);
}

int connection_open(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!place.socket[0] || !place.task)
        return -1;
    memcpy(address.sun_path, place.socket, sizeof(address.sun_path));
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

bool connection_send(int socket, struct preload_message *message)
{
    message->task = place.task;
    message->attempt = place.attempt;
    return send(socket, message, sizeof(*message), MSG_NOSIGNAL) == (ssize_t)sizeof(*message);
}

/* The last descriptor that came; there is room for one only. */
static int descriptor_in(struct msghdr *header)
{
    struct cmsghdr *control = CMSG_FIRSTHDR(header);
    int fd = -1;
    if (control && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS &&
        control->cmsg_len == CMSG_LEN(sizeof(fd)))
        memcpy(&fd, CMSG_DATA(control), sizeof(fd));
    return fd;
}

int connection_receive(int socket, int ms, struct preload_message *ret_message, int *ret_page)
{
    struct pollfd poll_for = {.fd = socket, .events = POLLIN};
    struct iovec part = {.iov_base = ret_message, .iov_len = sizeof(*ret_message)};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr header = {.msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = ret_page ? control.room : NULL,
        .msg_controllen = ret_page ? sizeof(control.room) : 0};
    if (ms > 0 && poll(&poll_for, 1, ms) <= 0)
        return 0;
    ssize_t n = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (ret_page)
        *ret_page = n > 0 ? descriptor_in(&header) : -1;
    if (n == (ssize_t)sizeof(*ret_message) && ret_message->magic == PRELOAD_MESSAGE_MAGIC &&
        ret_message->version == PRELOAD_MESSAGE_VERSION)
        return 1;
    if (ret_page && *ret_page >= 0)
        close(*ret_page);
    return -1;
}
