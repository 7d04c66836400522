/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread answers one request after the other: a descriptor of a block's memory takes the driver
 * some 50 us, and the socket's queue has room for others. The descriptor is made for each request
 * and closed at once: one that is kept would hold the memory in children of fork().
 */
#include "preload/exports.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload/block_mapping.h"
#include "preload/connection.h"
#include "preload/context_work.h"
#include "preload/futex.h"
#include "preload/gate.h"
#include "preload/passed_fd.h"
#include "preload/threads.h"

enum {
    QUEUE = 64,         /* chosen: importers that ask at the same time */
    REQUEST_WAIT_S = 1, /* chosen: it is sent at once */
    PAUSE_MS = 10,      /* chosen: when there are no descriptors */
    BIND_TRIES = 4,     /* chosen: names are random */
};

/* ---- a request ---- */

/* Under the gate: it is a call into the driver. */
static CUresult export_memory(
    struct process_state *state, uint64_t serial, struct share_answer *answer, int *ret_fd)
{
    struct preload_page *page = gate_enter(state);
    futex_lock(&state->lock);
    const struct block *block = blocks_shared(&state->carrier.blocks, serial);
    CUresult r = block ? mapping_export(block, ret_fd) : CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS) {
        answer->mapped_bytes = block->mapped_bytes;
        answer->bytes = block->bytes;
    }
    futex_unlock(&state->lock);
    gate_leave(page);
    return r;
}

static void send_answer(int fd, const struct share_answer *answer, int memory)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)answer, .iov_len = sizeof *answer};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    union passed_fd_room room;
    if (memory >= 0)
        passed_fd_attach(&message, &room, memory);
    sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void answer_request(struct process_state *state, int fd)
{
    const struct timeval limit = {.tv_sec = REQUEST_WAIT_S};
    struct share_answer answer = {.result = CUDA_ERROR_INVALID_VALUE};
    CUipcMemHandle bytes;
    struct share_handle handle;
    int memory = -1;
    if (!share_peer_is_own_user(fd) ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) < 0 ||
        recv(fd, &bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return;
    if (share_handle_read(&bytes, &handle) && exports_made(state, &handle))
        answer.result = export_memory(state, handle.serial, &answer, &memory);
    send_answer(fd, &answer, memory);
    if (memory >= 0)
        close(memory);
}

/* ---- the thread ---- */

/* It ends when the program has closed the socket. */
static void *serve_requests(void *argument)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};
    struct process_state *state = argument;
    prctl(PR_SET_NAME, "colloc-share");
    context_enter(state->carrier.context);
    for (;;) {
        int fd = accept4(state->exports.listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            answer_request(state, fd);
            close(fd);
        } else if (errno == EBADF || errno == ENOTSOCK || errno == EINVAL) {
            return NULL;
        } else {
            nanosleep(&pause, NULL);
        }
    }
}

/* Returns a socket that listens by the key's name, or -1. */
static int listen_by(struct share_key *key)
{
    struct sockaddr_un address;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    for (int i = 0; fd >= 0 && i < BIND_TRIES; i++) {
        if (syscall(SYS_getrandom, key, sizeof *key, 0) != (long)sizeof *key)
            break;
        socklen_t length = share_socket_address(key, &address);
        if (bind(fd, (const struct sockaddr *)&address, length) == 0 && listen(fd, QUEUE) == 0)
            return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

/* With the lock. */
static bool begin_exports(struct process_state *state)
{
    struct exports *exports = &state->exports;
    pthread_t thread;
    if (atomic_load(&exports->has_begun))
        return true;
    exports->listener = listen_by(&exports->key);
    if (exports->listener < 0)
        return false;
    if (!connection_note(exports->listener) || !thread_begin(&thread, serve_requests, state)) {
        close(exports->listener);
        return false;
    }
    atomic_store(&exports->has_begun, 1);
    return true;
}

/* ---- handles ---- */

bool exports_made(const struct process_state *state, const struct share_handle *handle)
{
    return atomic_load(&state->exports.has_begun) &&
           memcmp(&handle->key, &state->exports.key, sizeof handle->key) == 0;
}

/* With the lock. */
static CUresult share_block(
    struct process_state *state, struct block *block, struct share_handle *ret_handle)
{
    if (!begin_exports(state))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!block->serial) {
        block->serial = ++state->exports.serial;
        blocks_keep(&state->carrier.blocks, block->at, block->mapped_bytes);
        carrier_publish(state, process_page(state));
    }
    *ret_handle = share_handle_of(&state->exports.key, block->serial);
    return CUDA_SUCCESS;
}

bool exports_handle(CUdeviceptr at, struct share_handle *ret_handle, CUresult *ret_r)
{
    struct process_state *state = process_state_peek();
    if (!state || !state->carrier.blocks.count)
        return false;
    struct preload_page *page = gate_enter(state);
    futex_lock(&state->lock);
    struct block *block = blocks_around(&state->carrier.blocks, at);
    if (block)
        *ret_r = share_block(state, block, ret_handle);
    futex_unlock(&state->lock);
    gate_leave(page);
    return block;
}
