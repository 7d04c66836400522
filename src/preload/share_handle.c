/* SPDX-License-Identifier: Apache-2.0 */
/* The form of a handle, and what both ends of its socket ask. */
#include "preload/share_handle.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* Random bytes, so that no handle of the driver begins so. */
static const char share_magic[16] = {'c', 'o', 'l', 'l', 'o', 'c', '\x8e', '\x1d', '\xb7', '\x62',
    '\xf3', '\x09', '\xa4', '\x5c', '\xd1', '\x01'};

struct share_handle share_handle_of(const struct share_key *key, uint64_t serial)
{
    struct share_handle handle = {.key = *key, .serial = serial};
    memcpy(handle.magic, share_magic, sizeof share_magic);
    return handle;
}

bool share_handle_read(const CUipcMemHandle *handle, struct share_handle *ret_handle)
{
    memcpy(ret_handle, handle, sizeof *ret_handle);
    return memcmp(ret_handle->magic, share_magic, sizeof share_magic) == 0;
}

bool share_handle_is(const struct share_handle *one, const struct share_handle *other)
{
    return memcmp(one, other, sizeof *one) == 0;
}

/* An abstract name begins with a NUL, and the length of the address ends it. */
socklen_t share_socket_address(const struct share_key *key, struct sockaddr_un *ret_address)
{
    static const char beginning[] = "colloc-share-";
    static const char digits[] = "0123456789abcdef";
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    char *name = ret_address->sun_path + 1;
    size_t length = sizeof beginning - 1;
    memcpy(name, beginning, length);
    for (int shift = 60; shift >= 0; shift -= 4)
        name[length++] = digits[key->socket >> shift & 15];
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

bool share_peer_is_own_user(int fd)
{
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && size == sizeof peer &&
           peer.uid == geteuid();
}
