/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between libcolloc-preload.so in a task's process and the daemon (docs/preload.md).
 *
 * The socket is a Unix socket of type SOCK_SEQPACKET; each message is one packet, a struct
 * preload_message in the machine's byte order. A process opens one connection when it first uses
 * CUDA and keeps it; each thread that has to wait for memory opens one for the length of its wait.
 *
 *     process                       daemon
 *     HELLO task, attempt      ->
 *                              <-   WELCOME, with the descriptor of its page (page.h)
 *                              <-   ROOM place, bytes: with the descriptor of memory for the copy
 *                                   that the next order of the carrier makes (copy_place.h)
 *
 *     WAIT bytes, GPU, held    ->
 *                              <-   BOUND bound_ms: wait at most so long
 *                              <-   RETRY: try the allocation again
 *     WAIT (it failed again)   ->
 *                              <-   FAIL: return the true error
 */
#ifndef COLLOC_PRELOAD_PROTOCOL_H
#define COLLOC_PRELOAD_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#define PRELOAD_MESSAGE_MAGIC   0x50434c43u
#define PRELOAD_MESSAGE_VERSION 1

/* Where the library finds the daemon and itself. */
#define PRELOAD_SOCKET_VARIABLE  "COLLOC_PRELOAD_SOCKET"
#define PRELOAD_TASK_VARIABLE    "COLLOC_TASK_ID"
#define PRELOAD_ATTEMPT_VARIABLE "COLLOC_ATTEMPT_NUMBER"
/* Of a job of Slurm, in place of a task's number: programs may ask whether they run in a task. */
#define PRELOAD_JOB_VARIABLE "COLLOC_PRELOAD_JOB"
/* The library itself, where Slurm's plugin finds its path (src/spank). */
#define PRELOAD_LIBRARY_VARIABLE "COLLOC_PRELOAD_LIBRARY"
/* "1": the library carries the process's memory when the daemon orders it (docs/carrier.md). */
#define PRELOAD_CARRIER_VARIABLE "COLLOC_PRELOAD_CARRIER"

enum preload_kind {
    PRELOAD_HELLO = 1,
    PRELOAD_WAIT,
    PRELOAD_WELCOME,
    PRELOAD_BOUND,
    PRELOAD_RETRY,
    PRELOAD_FAIL,
    PRELOAD_ROOM,
};

/* The reason of a WAIT. */
enum preload_reason {
    PRELOAD_NO_REASON,
    PRELOAD_NEEDS_MEMORY,  /* an allocation failed on a GPU without enough free memory */
    PRELOAD_NEEDS_CONTEXT, /* so did the creation of a context; `bytes` is its usual size */
    PRELOAD_OVER_CAP,      /* the allocation would pass the page's cap_bytes */
};

struct preload_message {
    uint32_t magic;
    uint8_t version;
    uint8_t kind;   /* enum preload_kind */
    uint8_t reason; /* enum preload_reason, of a WAIT; enum preload_place, of a ROOM */
    uint8_t reserved;
    uint64_t task;
    uint32_t attempt;
    uint32_t ordinal;    /* of the GPU in the process */
    uint64_t bytes;      /* of the allocation, or of the room */
    uint64_t held_bytes; /* by the process on that GPU; of a ROOM: where it begins in the file */
    uint64_t bound_ms;   /* of a BOUND */
    unsigned char gpu_uuid[16];
};

_Static_assert(sizeof(struct preload_message) == 64, "part of the protocol");

/*
 * Writes a message with its magic and version.
 *
 * kind: of the message; all other fields are zero.
 */
struct preload_message preload_message_of(enum preload_kind kind);

/*
 * Checks a packet that a task's process sent.
 *
 * data, size: any bytes.
 *
 * Returns 0 with the message, which is a HELLO or a WAIT with all fields in range; -EBADMSG: not of
 * this protocol, or out of range; -EPROTO: of another version.
 */
int preload_request_decode(const void *data, size_t size, struct preload_message *ret_message);

#endif
