/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's Multi-Process Service: one control daemon for a group of GPUs, told by its pipe
 * directory. After NVIDIA's "Multi-Process Service" guide (docs.nvidia.com/deploy/mps).
 *
 * A task shares through it with CUDA_MPS_PIPE_DIRECTORY set to the pipe directory and
 * CUDA_VISIBLE_DEVICES by UUID, or by index where the server has all cards. The daemon outlives us;
 * whoever comes back finds it by the same directory. A healthy start or stop takes some milliseconds; the limits below are for sick ones
 * (stop: twice, once to be heard and once to see it end).
 */
#ifndef COLLOC_GPU_MPS_H
#define COLLOC_GPU_MPS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/fault.h"

#define MPS_START_LIMIT_US (5 * SECOND_US)
#define MPS_STOP_LIMIT_US  (SECOND_US / 2)
#define MPS_ASK_LIMIT_US   (SECOND_US / 2)

enum mps_answer {
    MPS_NOT_INSTALLED = 1, /* no nvidia-cuda-mps-control on PATH: share by streams */
    MPS_ALREADY_ALIVE,     /* an earlier one serves this pipe directory and is used again */
    MPS_STILL_ENDING,      /* told to quit, still waiting for clients */
};

/*
 * Starts the control daemon for the GPUs with these UUIDs. Makes both directories (open to all
 * users, as clients and their servers make files there, but nobody removes another's) and clears
 * what a dead daemon left in the pipe directory. 0, MPS_ALREADY_ALIVE, MPS_NOT_INSTALLED (the fault
 * holds the sentence for people), or a fault: -ENAMETOOLONG (its sockets would not fit), -EPERM (a
 * directory is not ours), -ETIMEDOUT, -EIO (in its own words).
 */
int mps_start(const char *pipe_dir, const char *log_dir, const char *const *uuids, size_t count,
    struct fault *fault);

/* The control daemon of `owner` that serves the pipe directory, or 0. Two small reads. */
pid_t mps_find(const char *pipe_dir, uid_t owner);

/*
 * The same for a pipe directory of another, given from an open folder that he cannot move: nothing
 * is followed out of it, neither a link nor a mount, which may lead to what never answers.
 */
pid_t mps_find_below(int folder, const char *pipe_dir, uid_t owner);

/* Tells it to quit and waits for its end. 0 also when none was alive; MPS_STILL_ENDING,
 * MPS_NOT_INSTALLED, or a fault.
 */
int mps_stop(const char *pipe_dir, struct fault *fault);

/* A process that shares through one of the daemon's servers. */
struct mps_client {
    pid_t server, pid;
};

/* Fills in up to `room` clients of our own daemon's servers. How many, or -errno. */
int mps_list_clients(
    const char *pipe_dir, struct mps_client *list, size_t room, struct fault *fault);

/*
 * Has the server finish or drop the client's work and close it: from then on every CUDA call of the
 * client fails, and it can be killed without harm to the others. 0, or -errno: a driver that does
 * not know how (before CUDA 12) or a client that is gone.
 */
int mps_terminate_client(
    const char *pipe_dir, const struct mps_client *client, struct fault *fault);

#endif
