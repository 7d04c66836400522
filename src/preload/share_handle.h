/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How two processes with this library share a block (block_table.h) by the calls of legacy CUDA
 * IPC, which the driver refuses for mapped memory.
 *
 *     exporter  cuIpcGetMemHandle     writes a struct share_handle in place of the driver's handle
 *     program   sends the 64 bytes to another process, as it likes
 *     importer  cuIpcOpenMemHandle    finds the exporter's socket by the handle, and sends it back
 *     exporter  (exports.c)           answers with a file descriptor of the memory
 *     importer  (imports.c)           maps that memory
 *
 * The socket is an abstract one of Unix, so that it leaves no file behind and ends with its
 * process; both processes are in one network namespace. Anybody can read its name in /proc and
 * connect, so each side checks that the other one is a process of the same user, and the importer
 * shows a secret that only the handle has.
 */
#ifndef COLLOC_PRELOAD_SHARE_HANDLE_H
#define COLLOC_PRELOAD_SHARE_HANDLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "preload/driver_abi.h"

/* Random numbers of the exporting process. */
struct share_key {
    uint64_t socket;    /* in the name of its socket */
    uint64_t secret[2]; /* only in handles */
};

struct share_handle {
    char magic[16];
    struct share_key key;
    uint64_t serial; /* of the block; never used again in its process */
    uint64_t reserved[2];
};

_Static_assert(sizeof(struct share_handle) == sizeof(CUipcMemHandle), "it takes the other's place");

/* What the exporter answers, with the descriptor if `result` is CUDA_SUCCESS. */
struct share_answer {
    int32_t result;
    uint32_t reserved;
    uint64_t mapped_bytes, bytes; /* of the block (block_table.h) */
};

/* Makes the handle of a block. */
struct share_handle share_handle_of(const struct share_key *key, uint64_t serial);

/* Returns whether the library has made the handle; then with it. */
bool share_handle_read(const CUipcMemHandle *handle, struct share_handle *ret_handle);

/* Returns whether both handles mean the same block. */
bool share_handle_is(const struct share_handle *one, const struct share_handle *other);

/* Returns the length of the address of an exporter's socket. */
socklen_t share_socket_address(const struct share_key *key, struct sockaddr_un *ret_address);

/* Returns whether the process at the other end of a socket is one of this user. */
bool share_peer_is_own_user(int fd);

#endif
