/* SPDX-License-Identifier: Apache-2.0 */
/* Creates memory that other processes can map, and hands it over. */
#include "checkpoint/lent_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The granularity of cuMemCreate on today's GPUs; sizes are rounded up to it. */
static const int64_t GRAIN = INT64_C(2) << 20;

static int send_descriptor(int fd)
{
    char byte = 0;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    const struct msghdr message = {.msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.room,
        .msg_controllen = sizeof control.room};
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    return sendmsg(LENT_MEMORY_SOCKET, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1 ? 0 : -errno;
}

int lent_memory_send(const struct cuda_driver *driver, int device, int64_t bytes)
{
    const struct cuda_allocation allocation = {
        .type = 1, .handle_types = CUDA_HANDLE_DESCRIPTOR, .location_type = 1, .device = device};
    size_t size = (size_t)((bytes + GRAIN - 1) / GRAIN * GRAIN);
    uint64_t handle;
    int fd = -1, r = driver->memory_create(&handle, size, &allocation, 0);
    if (r != 0)
        return r;
    r = driver->memory_export(&fd, handle, CUDA_HANDLE_DESCRIPTOR, 0);
    driver->memory_release(handle);
    if (r != 0)
        return r;
    r = send_descriptor(fd);
    close(fd);
    return r;
}
