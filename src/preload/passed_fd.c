/* SPDX-License-Identifier: Apache-2.0 */
/* SCM_RIGHTS for one descriptor. The padding of CMSG_SPACE has room for a second one, which would
 * come unseen and stay open: only CMSG_LEN is offered to the kernel. */
#include "preload/passed_fd.h"

#include <string.h>

void passed_fd_attach(struct msghdr *message, union passed_fd_room *room, int fd)
{
    memset(room, 0, sizeof *room);
    message->msg_control = room->bytes;
    message->msg_controllen = sizeof room->bytes;
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
}

void passed_fd_expect(struct msghdr *message, union passed_fd_room *room)
{
    message->msg_control = room->bytes;
    message->msg_controllen = CMSG_LEN(sizeof(int));
}

int passed_fd_take(struct msghdr *message)
{
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    int fd = -1;
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof fd))
        memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return fd;
}
