/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exporter is asked outside of the gate: it may itself wait at one, and this process must be
 * able to leave its GPU meanwhile. What the exporter sends is trusted no further than the driver
 * checks it: a wrong size is one that the driver does not map.
 *
 * A close waits for the GPU's work before it unmaps, as a free does (carried_memory.c); while a
 * stream is captured it only marks the block, which then goes with a later call.
 */
#include "preload/imports.h"

#include <unistd.h>

#include "preload/allocation.h"
#include "preload/block_mapping.h"
#include "preload/context_work.h"
#include "preload/futex.h"
#include "preload/gate.h"
#include "preload/passed_fd.h"

enum {
    CONNECT_WAIT_S = 10, /* chosen: the exporter's thread is awake within milliseconds */
    ANSWER_WAIT_S = 60,  /* chosen: the exporter waits while its gate is closed, 30 s at most where
                            a way out fails (carrier.c) */
};

/* ---- the exporter's answer ---- */

/* Returns a socket, or -1. */
static int connect_exporter(const struct share_key *key)
{
    const struct timeval to_connect = {.tv_sec = CONNECT_WAIT_S};
    const struct timeval to_answer = {.tv_sec = ANSWER_WAIT_S};
    struct sockaddr_un address;
    socklen_t length = share_socket_address(key, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &to_connect, sizeof to_connect) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &to_answer, sizeof to_answer) == 0 &&
        connect(fd, (const struct sockaddr *)&address, length) == 0 && share_peer_is_own_user(fd))
        return fd;
    close(fd);
    return -1;
}

/* Returns whether an answer came whole. */
static bool receive_answer(int fd, struct share_answer *ret_answer, int *ret_memory)
{
    struct iovec part = {.iov_base = ret_answer, .iov_len = sizeof *ret_answer};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    union passed_fd_room room;
    passed_fd_expect(&message, &room);
    ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    *ret_memory = n < 0 ? -1 : passed_fd_take(&message);
    return n == (ssize_t)sizeof *ret_answer;
}

static CUresult fetch_memory(
    const struct share_handle *handle, struct share_answer *ret_answer, int *ret_memory)
{
    int fd = connect_exporter(&handle->key);
    *ret_memory = -1;
    if (fd < 0)
        return CUDA_ERROR_INVALID_HANDLE;
    bool is_whole = send(fd, handle, sizeof *handle, MSG_NOSIGNAL) == (ssize_t)sizeof *handle &&
                    receive_answer(fd, ret_answer, ret_memory);
    close(fd);
    if (is_whole && ret_answer->result == CUDA_SUCCESS && *ret_memory >= 0)
        return CUDA_SUCCESS;
    if (*ret_memory >= 0)
        close(*ret_memory);
    return is_whole && ret_answer->result != CUDA_SUCCESS ? ret_answer->result
                                                          : CUDA_ERROR_INVALID_HANDLE;
}

/* ---- the table ---- */

static struct import *find_open(
    struct imports *imports, const struct share_handle *handle, CUcontext context)
{
    for (uint32_t i = 0; i < imports->end; i++) {
        struct import *import = &imports->item[i];
        if (import->references && !import->is_dead && import->context == context &&
            share_handle_is(&import->handle, handle))
            return import;
    }
    return NULL;
}

static struct import *find_at(struct imports *imports, CUdeviceptr at)
{
    for (uint32_t i = 0; i < imports->end; i++)
        if (imports->item[i].references && !imports->item[i].is_dead &&
            imports->item[i].block.at == at)
            return &imports->item[i];
    return NULL;
}

static struct import *find_unused(struct imports *imports)
{
    for (uint32_t i = 0; i < imports->end; i++)
        if (!imports->item[i].references)
            return &imports->item[i];
    return imports->end < IMPORTS_MAX ? &imports->item[imports->end++] : NULL;
}

static void forget_import(struct imports *imports, struct import *import)
{
    *import = (struct import){0};
    while (imports->end && !imports->item[imports->end - 1].references)
        imports->end--;
}

/* Returns whether it is open, which then has one reference more. */
static bool open_again(struct process_state *state, const struct share_handle *handle,
    CUcontext context, CUdeviceptr *ret_at)
{
    futex_lock(&state->lock);
    struct import *import = find_open(&state->imports, handle, context);
    if (import) {
        import->references++;
        *ret_at = import->block.at;
    }
    futex_unlock(&state->lock);
    return import;
}

/* Returns whether there was room. Another thread may have opened it meanwhile: that one counts. */
static bool note_import(
    struct process_state *state, const struct import *fresh, CUdeviceptr *ret_at, bool *ret_is_new)
{
    struct imports *imports = &state->imports;
    futex_lock(&state->lock);
    struct import *import = find_open(imports, &fresh->handle, fresh->context);
    *ret_is_new = !import;
    if (import)
        import->references++;
    else if ((import = find_unused(imports)))
        *import = *fresh;
    if (import)
        *ret_at = import->block.at;
    futex_unlock(&state->lock);
    return import;
}

/* ---- the end ---- */

static bool take_dead(struct process_state *state, struct import *ret_import)
{
    struct imports *imports = &state->imports;
    bool found = false;
    futex_lock(&state->lock);
    for (uint32_t i = 0; i < imports->end && !found; i++) {
        if (!imports->item[i].is_dead)
            continue;
        *ret_import = imports->item[i];
        forget_import(imports, &imports->item[i]);
        atomic_fetch_sub(&imports->n_dead, 1);
        found = true;
    }
    futex_unlock(&state->lock);
    return found;
}

static CUresult end_import(struct import *import)
{
    CUresult r = context_synchronise(import->context);
    return r == CUDA_SUCCESS ? mapping_destroy(&import->block) : r;
}

static void bury_dead(struct process_state *state)
{
    struct import import;
    if (!atomic_load_explicit(&state->imports.n_dead, memory_order_relaxed))
        return;
    while (!atomic_load(&state->captures) && take_dead(state, &import))
        end_import(&import);
}

/* With the lock. Returns whether it goes now, with *ret_import. */
static bool close_one(struct process_state *state, struct import *import, struct import *ret_import)
{
    if (--import->references)
        return false;
    *ret_import = *import;
    if (!atomic_load(&state->captures)) {
        forget_import(&state->imports, import);
        return true;
    }
    import->references = 1;
    import->is_dead = true;
    atomic_fetch_add(&state->imports.n_dead, 1);
    return false;
}

bool imports_close(CUdeviceptr at, CUresult *ret_r)
{
    struct process_state *state = process_state_peek();
    struct import last;
    bool goes = false;
    if (!state || !state->imports.end)
        return false;
    struct preload_page *page = gate_enter(state);
    futex_lock(&state->lock);
    struct import *import = find_at(&state->imports, at);
    if (import)
        goes = close_one(state, import, &last);
    futex_unlock(&state->lock);
    *ret_r = goes ? end_import(&last) : CUDA_SUCCESS;
    bury_dead(state);
    gate_leave(page);
    return import;
}

void imports_forget_context(struct process_state *state, uint64_t context)
{
    struct imports *imports = &state->imports;
    struct preload_page *page = gate_enter(state);
    for (uint32_t i = 0; context && i < IMPORTS_MAX; i++) {
        struct import ended = {0};
        futex_lock(&state->lock);
        bool is_end = i >= imports->end;
        if (!is_end && (uint64_t)(uintptr_t)imports->item[i].context == context) {
            ended = imports->item[i];
            atomic_fetch_sub(&imports->n_dead, ended.is_dead);
            imports->item[i] = (struct import){0};
        }
        futex_unlock(&state->lock);
        if (ended.references)
            mapping_destroy(&ended.block);
        if (is_end)
            break;
    }
    gate_leave(page);
}

/* ---- opening ---- */

/* Under the gate. */
static CUresult map_import(struct process_state *state, const struct share_answer *answer,
    int memory, struct import *fresh, CUdeviceptr *ret_at)
{
    bool is_new = true;
    CUresult r = mapping_import(
        allocation_current_device(), memory, answer->mapped_bytes, answer->bytes, &fresh->block);
    if (r != CUDA_SUCCESS)
        return r;
    fresh->references = 1;
    bool is_noted = note_import(state, fresh, ret_at, &is_new);
    if (!is_noted || !is_new)
        mapping_destroy(&fresh->block);
    return is_noted ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult imports_open(const struct share_handle *handle, unsigned flags, CUdeviceptr *ret_at)
{
    struct process_state *state = process_state_get();
    struct import fresh = {.handle = *handle};
    struct share_answer answer;
    int memory;
    if (flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return CUDA_ERROR_INVALID_VALUE;
    if (!state)
        return CUDA_ERROR_OUT_OF_MEMORY;
    fresh.context = (CUcontext)(uintptr_t)allocation_current_context();
    if (!fresh.context || exports_made(state, handle))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (open_again(state, handle, fresh.context, ret_at))
        return CUDA_SUCCESS;
    CUresult r = fetch_memory(handle, &answer, &memory);
    if (r != CUDA_SUCCESS)
        return r;
    struct preload_page *page = gate_enter(state);
    bury_dead(state);
    r = map_import(state, &answer, memory, &fresh, ret_at);
    gate_leave(page);
    close(memory);
    return r;
}

bool imports_find(
    struct process_state *state, CUdeviceptr address, struct block *ret_block, CUcontext *ret)
{
    struct imports *imports = &state->imports;
    bool found = false;
    if (!imports->end)
        return false;
    futex_lock(&state->lock);
    for (uint32_t i = 0; i < imports->end && !found; i++) {
        const struct import *import = &imports->item[i];
        found = import->references && !import->is_dead &&
                address - import->block.at < import->block.bytes;
        if (found) {
            *ret_block = import->block;
            *ret = import->context;
        }
    }
    futex_unlock(&state->lock);
    return found;
}
