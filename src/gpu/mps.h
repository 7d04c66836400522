/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's Multi-Process Service: one control daemon for a group of GPUs, identified by its pipe
 * directory. After NVIDIA's "Multi-Process Service" guide (docs.nvidia.com/deploy/mps).
 *
 * A task becomes a client by CUDA_MPS_PIPE_DIRECTORY set to the pipe directory and
 * CUDA_VISIBLE_DEVICES by UUID, or by index if the server has all cards. The control daemon
 * outlives collocd, which finds it again by the same directory. A healthy daemon starts and stops
 * within milliseconds; the limits below are for a daemon that hangs.
 */
#ifndef COLLOC_GPU_MPS_H
#define COLLOC_GPU_MPS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/fault.h"

#define MPS_START_LIMIT_US (5 * SECOND_US) /* chosen: far above what a start takes */
#define MPS_STOP_LIMIT_US  (SECOND_US / 2) /* chosen */
#define MPS_QUERY_LIMIT_US (2 * SECOND_US) /* chosen: a loaded server starts programs slowly */

enum mps_answer {
    MPS_NOT_INSTALLED = 1, /* nvidia-cuda-mps-control is not on PATH */
    MPS_ALREADY_ALIVE,     /* an earlier one serves this pipe directory */
    MPS_STILL_ENDING,      /* it was sent quit and still waits for clients */
};

/*
 * Starts a control daemon. Creates both directories, with the mode of /tmp since clients and
 * servers create files there, and removes what a dead control daemon left in the pipe directory.
 *
 * uuids: `count` GPUs that it serves
 *
 * Returns 0, MPS_ALREADY_ALIVE, MPS_NOT_INSTALLED (with a sentence for the user in `fault`), or a
 * fault: -ENAMETOOLONG (no capacity for its sockets' names), -EPERM (a directory belongs to another
 * user), -ETIMEDOUT, -EIO (with its message).
 */
int mps_start(const char *pipe_dir, const char *log_dir, const char *const *uuids, size_t count,
    struct fault *fault);

/* Returns the pid of `owner`'s control daemon that serves the pipe directory, or 0. */
pid_t mps_find(const char *pipe_dir, uid_t owner);

/*
 * The same for another user's pipe directory, relative to an open folder that this user cannot
 * move. Neither links nor mounts are followed out of it, since they may lead to a file system that
 * hangs.
 */
pid_t mps_find_below(int folder, const char *pipe_dir, uid_t owner);

/* Sends quit to the control daemon and waits for its end, at most twice MPS_STOP_LIMIT_US. Returns
 * 0 (also when none is alive), MPS_STILL_ENDING, MPS_NOT_INSTALLED, or -errno with a fault. */
int mps_stop(const char *pipe_dir, struct fault *fault);

/* A client of one of the control daemon's servers. */
struct mps_client {
    pid_t server, pid;
};

/* Lists up to `capacity` clients of this user's control daemon. Returns their number, or -errno. */
int mps_list_clients(
    const char *pipe_dir, struct mps_client *list, size_t capacity, struct fault *fault);

/*
 * Makes the server finish or drop the client's work. From then on every CUDA call of the client
 * fails, and killing the client does not harm other clients.
 *
 * Returns 0, or -errno: the driver cannot (before CUDA 12), or the client has ended.
 */
int mps_terminate_client(
    const char *pipe_dir, const struct mps_client *client, struct fault *fault);

#endif
