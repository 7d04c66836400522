/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines between the daemon and colloc-checkpoint, its helper program: one request on a line,
 * then one reply on a line.
 *
 *     gpus                                    0 41 - 13000 GPU-8f...,GPU-03...
 *     inspect 4711 0                          0 310 - 88123 nccl traced
 *     state 4711 88123                        0 2 running
 *     lock 4711 88123 10000                   801 310 - CUDA_ERROR_NOT_SUPPORTED
 *     checkpoint 4711 88123                   0 3617900 -
 *     reserve 4711 88123 GPU-03... 7841251328
 *     lend 4711 88123 GPU-03... 7841251328
 *     restore 4711 88123 GPU-8f...>GPU-03...
 *     release 4711 88123
 *     unlock 4711 88123
 *
 * A process is named by its pid and its start (clock ticks since boot, proc_pid_stat(5)), so that a
 * pid that was used again is not touched. A reply is a result, the microseconds that the call took,
 * the state of the process or "-", and a text. A result is CUDA's number, or a negative errno of
 * the helper: -ESRCH (no such process any more), -EINVAL (the request), -ENOENT (no libcuda),
 * -ENODEV (no GPU), -ENOSYS (the driver is too old).
 */
#ifndef COLLOC_CHECKPOINT_HELPER_LINE_H
#define COLLOC_CHECKPOINT_HELPER_LINE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/text.h"

enum {
    HELPER_LINE_MAX = 8192, /* with the line's end */
    HELPER_MOVES_MAX = 64,  /* GPUs of a machine */
    GPU_UUID_SIZE = 41,     /* "GPU-" and 36 characters, and the NUL */
};

#define HELPER_NONSENSE "colloc-checkpoint answered with nonsense"

enum helper_call {
    HELPER_GPUS,    /* the driver's CUDA version, and which GPUs there are */
    HELPER_INSPECT, /* what /proc shows of a process, whose start need not be known (0) */
    HELPER_STATE,   /* waits while a copy is under way */
    HELPER_LOCK,    /* CUDA calls of the process wait from now on */
    HELPER_SUSPEND, /* its GPU memory goes to the host */
    HELPER_RESERVE, /* takes memory on a GPU for the process, until its restore or release */
    HELPER_RESUME,  /* frees what is reserved for the process, and at once restores it */
    HELPER_RELEASE,
    HELPER_UNLOCK,
    HELPER_LEND, /* takes memory on a GPU and sends its descriptor (lent_memory.h) */
    HELPER_CALLS
};

struct gpu_move {
    char from[GPU_UUID_SIZE], to[GPU_UUID_SIZE];
};

struct helper_request {
    enum helper_call call;
    pid_t pid;
    uint64_t born;                           /* its start, in clock ticks since boot */
    int64_t timeout_ms;                      /* of a lock */
    int64_t bytes;                           /* to reserve or to lend, */
    char gpu[GPU_UUID_SIZE];                 /* on this GPU */
    struct gpu_move moves[HELPER_MOVES_MAX]; /* of a restore */
    size_t n_moves;
};

/* States of a process: the driver's, and further ones. */
enum process_state {
    PROCESS_UNKNOWN,
    PROCESS_RUNNING,
    PROCESS_LOCKED,
    PROCESS_SUSPENDED,
    PROCESS_FAILED, /* it can never be restored */
    PROCESS_GONE,
};

struct helper_reply {
    int result;
    int64_t took_us;
    enum process_state state; /* PROCESS_UNKNOWN: not queried */
    char text[HELPER_LINE_MAX];
};

/* Returns the name of a call ("lock"). */
const char *helper_call_name(enum helper_call call);

/* Is it a GPU's UUID as NVML and this protocol write it: "GPU-" and 36 hexadecimal digits and
 * dashes? */
bool gpu_uuid_is_valid(struct span text);

/* Write a line with its end. Return its length, or 0 when it does not fit. */
size_t helper_request_write(const struct helper_request *request, char *line, size_t size);
size_t helper_reply_write(const struct helper_reply *reply, char *line, size_t size);

/*
 * Reads the text of a reply to HELPER_GPUS, "13000 GPU-8f...,GPU-03...", of any bytes.
 *
 * Returns 0, with the driver's CUDA version and the number of GPUs; or -EINVAL: it is something
 * else.
 */
int helper_gpus_read(struct span text, int *ret_version, size_t *ret_n_gpus);

/* Read a line without its end, of any bytes. Return 0 or -EINVAL. */
int helper_request_read(struct span line, struct helper_request *ret_request);
int helper_reply_read(struct span line, struct helper_reply *ret_reply);

#endif
