/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection between a user's terminal and that of a task. Packets over SOCK_SEQPACKET. The
 * name of a link cannot be guessed. Another user can read it in /proc/net/unix, and is refused by
 * SO_PEERCRED: at both ends, since that user could also listen under the name of a relay that has
 * ended.
 */
#include "terminal/link.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define NAME_PREFIX "colloc-terminal-"

enum { NAME_DIGITS = 32 };

int link_make_name(char name[LINK_NAME_SIZE])
{
    uint64_t random[2];
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return -errno;
    snprintf(name, LINK_NAME_SIZE, NAME_PREFIX "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    return 0;
}

bool link_is_name(const char *name)
{
    size_t prefix = strlen(NAME_PREFIX);
    return strncmp(name, NAME_PREFIX, prefix) == 0 && strlen(name) == prefix + NAME_DIGITS &&
           strspn(name + prefix, "0123456789abcdef") == NAME_DIGITS;
}

/* A name in the abstract namespace begins with NUL and has no end but the address's size. */
static socklen_t make_address(const char *name, struct sockaddr_un *address)
{
    size_t size = strlen(name);
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path + 1, name, size);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + size);
}

static bool is_same_user(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

static int open_socket(int type)
{
    return socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static int listen_by(int type, const char *name, struct fault *fault)
{
    struct sockaddr_un address;
    socklen_t size = make_address(name, &address);
    int fd = open_socket(type);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0 && listen(fd, 4) == 0)
        return fd;
    int r = fault_set(fault, errno, "cannot listen for terminals: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return r;
}

int link_accept(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (is_same_user(fd))
        return fd;
    close(fd);
    return -EPERM;
}

static int connect_by(int type, const char *name, struct fault *fault)
{
    struct sockaddr_un address;
    socklen_t size = make_address(name, &address);
    int fd = open_socket(type);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, size) == 0) {
        if (is_same_user(fd))
            return fd;
        close(fd);
        return fault_set(fault, EPERM, "another user listens in place of the task's terminal");
    }
    int error = errno;
    if (fd >= 0)
        close(fd);
    return fault_set(fault, error, "cannot reach the task's terminal: %s", strerror(error));
}

int link_listen(const char *name, struct fault *fault)
{
    return listen_by(SOCK_SEQPACKET, name, fault);
}

int link_connect(const char *name, struct fault *fault)
{
    return connect_by(SOCK_SEQPACKET, name, fault);
}

int link_listen_stream(const char *name, struct fault *fault)
{
    return listen_by(SOCK_STREAM, name, fault);
}

int link_connect_stream(const char *name, struct fault *fault)
{
    return connect_by(SOCK_STREAM, name, fault);
}

int link_send(int fd, enum link_packet packet, const void *data, size_t size)
{
    char buffer[1 + LINK_DATA_MAX];
    if (size > LINK_DATA_MAX)
        return -EMSGSIZE;
    buffer[0] = (char)packet;
    if (size)
        memcpy(buffer + 1, data, size);
    return send(fd, buffer, size + 1, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static bool is_packet(char packet, size_t size)
{
    switch (packet) {
    case LINK_DATA:
        return true;
    case LINK_SIZE:
        return size == sizeof(struct link_size);
    case LINK_EXIT:
        return size == sizeof(struct link_exit);
    case LINK_DETACH:
    case LINK_TAKEN:
        return size == 0;
    default:
        return false;
    }
}

int link_receive(int fd, struct link_message *ret_message)
{
    char buffer[1 + LINK_DATA_MAX + 1]; /* one more, to see that a packet is too long */
    ssize_t n = recv(fd, buffer, sizeof buffer, 0);
    /* Said once, and before the packets that came earlier, when the other end has closed without
     * reading all of ours. */
    if (n < 0 && errno == ECONNRESET)
        n = recv(fd, buffer, sizeof buffer, 0);
    if (n < 0)
        return errno == ECONNRESET ? 0 : -errno;
    if (n == 0)
        return 0;
    if (n > 1 + LINK_DATA_MAX || !is_packet(buffer[0], (size_t)n - 1))
        return -EPROTO;
    ret_message->packet = (enum link_packet)buffer[0];
    ret_message->size = (size_t)n - 1;
    memcpy(ret_message->data, buffer + 1, (size_t)n - 1);
    return 1;
}
