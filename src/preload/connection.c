/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's connections to the daemon. There is one per process and one per thread that waits:
 * no reply has to be sorted out.
 *
 * They are in a table, so that the child of a fork finds those of its parent: the library's other
 * state is cleared there (process_state.h). The child closes them before fork() returns in it.
 */
#include "preload/connection.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "preload/passed_fd.h"

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

/* ---- the table ---- */

enum { CONNECTIONS_MAX = 128 }; /* chosen: more threads than wait for memory at a time */

struct connection {
    _Atomic bool is_used;
    _Atomic uint64_t cookie; /* 0: not connected */
    int fd;
};

static struct connection connections[CONNECTIONS_MAX];

/* The kernel's own number of a socket; 0: the descriptor is something else by now. */
static uint64_t cookie_of(int fd)
{
    uint64_t cookie = 0;
    socklen_t size = sizeof(cookie);
    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

static bool is_ours(const struct connection *connection)
{
    uint64_t cookie = atomic_load(&connection->cookie);
    return cookie && cookie_of(connection->fd) == cookie;
}

static struct connection *take_place(void)
{
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        if (!atomic_exchange(&connections[i].is_used, true))
            return &connections[i];
    return NULL;
}

static void leave_place(struct connection *connection)
{
    atomic_store(&connection->cookie, 0);
    atomic_store(&connection->is_used, false);
}

/* ---- forks ---- */

typedef void handler(void);

/* glibc exports the first one only, musl the second. */
#pragma weak __register_atfork
#pragma weak pthread_atfork
int __register_atfork(handler *prepare, handler *parent, handler *child, void *library);
int pthread_atfork(handler *prepare, handler *parent, handler *child);

static _Atomic int only_here = -1; /* a descriptor that children do not keep; -1: none */

void connection_keep_from_children(int fd)
{
    atomic_store(&only_here, fd);
}

static void close_those_of_the_parent(void)
{
    int error = errno;
    int fd = atomic_exchange(&only_here, -1);
    if (fd >= 0)
        close(fd);
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        if (is_ours(&connections[i]))
            close(connections[i].fd);
        leave_place(&connections[i]);
    }
    errno = error;
}

/* Once in a process and its children, which inherit the handler. */
static void handle_forks(void)
{
    static atomic_bool is_handled;
    if (atomic_exchange(&is_handled, true))
        return;
    if (__register_atfork)
        __register_atfork(NULL, NULL, close_those_of_the_parent, NULL);
    else if (pthread_atfork)
        pthread_atfork(NULL, NULL, close_those_of_the_parent);
}

/* ---- one connection ---- */

void connection_read_environment(void)
{
    const char *path = getenv(PRELOAD_SOCKET_VARIABLE);
    size_t length = path ? strlen(path) : 0;
    handle_forks();
    memset(&place, 0, sizeof(place));
    if (path && length < sizeof(place.socket))
        memcpy(place.socket, path, length);
    place.task = number_of(PRELOAD_JOB_VARIABLE);
    if (!place.task)
        place.task = number_of(PRELOAD_TASK_VARIABLE);
    place.attempt = (uint32_t)number_of(PRELOAD_ATTEMPT_VARIABLE);
}

/* Returns a descriptor or -1. */
static int connect_daemon(void)
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

struct connection *connection_open(void)
{
    struct connection *connection = take_place();
    int fd = connection ? connect_daemon() : -1;
    if (fd >= 0) {
        connection->fd = fd;
        atomic_store(&connection->cookie, cookie_of(fd));
        return connection;
    }
    if (connection)
        leave_place(connection);
    return NULL;
}

bool connection_note(int fd)
{
    struct connection *connection = take_place();
    if (!connection)
        return false;
    connection->fd = fd;
    atomic_store(&connection->cookie, cookie_of(fd));
    return true;
}

void connection_close(struct connection *connection)
{
    if (!connection)
        return;
    if (is_ours(connection)) {
        shutdown(connection->fd, SHUT_RDWR);
        close(connection->fd);
    }
    leave_place(connection);
}

bool connection_send(struct connection *connection, struct preload_message *message)
{
    message->task = place.task;
    message->attempt = place.attempt;
    return is_ours(connection) && send(connection->fd, message, sizeof(*message), MSG_NOSIGNAL) ==
                                      (ssize_t)sizeof(*message);
}

/* Returns 1: there may be a message; 0: none came; -1: the descriptor is not ours any more. */
static int wait_for_message(const struct connection *connection, int ms)
{
    struct pollfd poll_for = {.fd = connection->fd, .events = POLLIN};
    if (!is_ours(connection))
        return -1;
    if (ms > 0 && poll(&poll_for, 1, ms) <= 0)
        return 0;
    return is_ours(connection) ? 1 : -1;
}

int connection_receive(
    struct connection *connection, int ms, struct preload_message *ret_message, int *ret_page)
{
    struct iovec part = {.iov_base = ret_message, .iov_len = sizeof(*ret_message)};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    union passed_fd_room room;
    if (ret_page) {
        *ret_page = -1;
        passed_fd_expect(&header, &room);
    }
    int r = wait_for_message(connection, ms);
    if (r <= 0)
        return r;
    ssize_t n = recvmsg(connection->fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (ret_page && n > 0)
        *ret_page = passed_fd_take(&header);
    if (n == (ssize_t)sizeof(*ret_message) && ret_message->magic == PRELOAD_MESSAGE_MAGIC &&
        ret_message->version == PRELOAD_MESSAGE_VERSION)
        return 1;
    if (ret_page && *ret_page >= 0)
        close(*ret_page);
    return -1;
}
