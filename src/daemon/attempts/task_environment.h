/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon adds to a task's environment: its GPUs, and how it shares them. */
#ifndef COLLOC_DAEMON_ATTEMPTS_TASK_ENVIRONMENT_H
#define COLLOC_DAEMON_ATTEMPTS_TASK_ENVIRONMENT_H

#include "daemon/daemon.h"

enum { ENVIRONMENT_ADDED_MAX = 16 };

/* All zero is empty. `list` ends in NULL; its texts live as long as this. */
struct environment {
    const char *list[ENVIRONMENT_ADDED_MAX + 1];
    char *text[ENVIRONMENT_ADDED_MAX];
    int count;
};

/* Adds "NAME=VALUE" made from a format. 0, or -ENOMEM when there is no memory or no room. */
int environment_add(struct environment *environment, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * The task's number and GPUs. CUDA_VISIBLE_DEVICES has indices, which every program understands,
 * where CUDA counts the GPUs as NVML does; UUIDs where it may not: MIG, a lost card, or an MPS
 * server (`by_mps`) of some of the cards only.
 */
int environment_name_gpus(struct environment *environment, const struct daemon *daemon,
    const struct task *task, bool by_mps);

/*
 * Defaults for what `submitted` ("NAME=VALUE", ending in NULL) does not set. Python's output is
 * not buffered, so that `colloc logs -f` shows it. TensorFlow and JAX do not take the whole GPU at
 * their start where others may share it. 0 or -ENOMEM.
 */
int environment_set_defaults(
    struct environment *environment, const struct task *task, const char *const *submitted);

/* What tasks of a daemon over pretend GPUs (COLLOC_EMULATOR) find those by. 0 or -ENOMEM. */
int environment_pass_emulator(struct environment *environment);

/* An MPS client's server and limits, as its placement has them. */
int environment_join_mps(
    struct environment *environment, const struct task *task, const char *pipe_dir);

/*
 * Frameworks' own limits on memory, for a task that shares by streams: PyTorch's (of its caching
 * allocator) added to what `submitted` sets, and JAX's unless it sets that. TensorFlow has no such
 * variable. Does nothing when the need is not known or the setting says no.
 */
int environment_limit_frameworks(struct environment *environment, const struct daemon *daemon,
    const struct task *task, const char *const *submitted);

void environment_fini(struct environment *environment);

#endif
