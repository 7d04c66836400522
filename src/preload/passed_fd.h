/* SPDX-License-Identifier: Apache-2.0 */
/* A file descriptor beside a message on a socket of Unix. */
#ifndef COLLOC_PRELOAD_PASSED_FD_H
#define COLLOC_PRELOAD_PASSED_FD_H

#include <sys/socket.h>

union passed_fd_room {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};

/* Sends a descriptor with a message. The room lives as long as the message. */
void passed_fd_attach(struct msghdr *message, union passed_fd_room *room, int fd);

/* Makes a message receive a descriptor, and one only: the kernel closes others. */
void passed_fd_expect(struct msghdr *message, union passed_fd_room *room);

/* Returns the descriptor that came, or -1. */
int passed_fd_take(struct msghdr *message);

#endif
