/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon adds to a task's environment: its GPUs, and how it shares them. */
#ifndef COLLOC_DAEMON_ATTEMPTS_TASK_ENVIRONMENT_H
#define COLLOC_DAEMON_ATTEMPTS_TASK_ENVIRONMENT_H

#include <jansson.h>

#include "core/core.h"

enum { ENVIRONMENT_ADDED_MAX = 56 }; /* chosen: more than any task gets */

/* All zero is empty. `list` ends in NULL; its texts live as long as this. */
struct environment {
    const char *list[ENVIRONMENT_ADDED_MAX + 1];
    char *text[ENVIRONMENT_ADDED_MAX];
    int count;
};

/*
 * All functions below add variables and return 0, or -ENOMEM when memory is out or there are more
 * than ENVIRONMENT_ADDED_MAX. `submitted`: the user's variables, "NAME=VALUE", ending in NULL.
 */

/* Adds "NAME=VALUE" made from a format. */
int environment_add(struct environment *environment, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * The task's number and GPUs.
 *
 * by_index: CUDA counts the GPUs as NVML does: CUDA_VISIBLE_DEVICES has indices, which every
 *           program understands; otherwise UUIDs
 */
int environment_name_gpus(struct environment *environment, const struct cluster_view *view,
    const struct task *task, bool by_index);

/*
 * Of a task of an array: COLLOC_ARRAY_ID, _INDEX, _COUNT, _MIN and _MAX, and the same by Slurm's
 * names, which scripts read whatever they were submitted with.
 *
 * detail: of its SUBMIT
 */
int environment_name_array(
    struct environment *environment, const struct task *task, const json_t *detail);

/* What Slurm sets of a script with #SBATCH lines: SLURM_JOB_ID and the like. The client has marked
 * it by COLLOC_SLURM_SCRIPT. */
int environment_name_for_slurm(struct environment *environment, const struct cluster_view *view,
    const struct task *task, const char *const *submitted);

/* Names the port of a service in COLLOC_PORT. `detail`: of its submission. */
int environment_name_port(struct environment *environment, const json_t *detail);

/*
 * Defaults for what the user does not set. Python's output is not buffered, so that `colloc logs
 * -f` shows it at once. Where other tasks may share the GPU, TensorFlow and JAX do not allocate all
 * of it when they start.
 */
int environment_set_defaults(
    struct environment *environment, const struct task *task, const char *const *submitted);

/* The daemon's socket, for what colloc starts in the task, unless the user names one. */
int environment_name_socket(
    struct environment *environment, const char *socket, const char *const *submitted);

/* Puts a folder before the others of the user's PATH. */
int environment_lead_path(
    struct environment *environment, const char *folder, const char *const *submitted);

/* Of a task with a tracker: the daemon's socket, and COLLOC_TRACKED, so that no other tracker is
 * started. */
int environment_mark_tracked(
    struct environment *environment, const char *socket, const char *const *submitted);

/*
 * How the ranks of a distributed training find each other, unless the user sets it: MASTER_ADDR and
 * MASTER_PORT, torchrun's own variables for the port and for a rank on each GPU, and
 * COLLOC_GPU_COUNT. WORLD_SIZE and RANK are not set: a script that starts its ranks itself, or has
 * but one, would wait for others.
 *
 * port: 0: none was free; the variables of the port are left out
 */
int environment_set_rendezvous(struct environment *environment, const struct task *task, int port,
    const char *const *submitted);

/* The variable by which tasks of a daemon over pretend GPUs (COLLOC_EMULATOR) find those. */
int environment_pass_emulator(struct environment *environment);

/* An MPS client's server and limits, as its placement has them. */
int environment_join_mps(
    struct environment *environment, const struct task *task, const char *pipe_dir);

/*
 * Frameworks' own limits on memory, for a time-sliced task with a known memory requirement:
 * PyTorch's (of its caching allocator) added to what the user sets, and JAX's unless the user sets
 * that. TensorFlow has no such variable.
 *
 * margin_bytes: allowed beyond the requirement
 */
int environment_limit_frameworks(struct environment *environment, const struct cluster_view *view,
    const struct task *task, int64_t margin_bytes, const char *const *submitted);

/*
 * What the preloaded library needs (docs/preload.md); libraries that the user preloads come after
 * it.
 *
 * library: its path
 * socket:  of the daemon's end
 * attempt: from 1
 */
int environment_preload(struct environment *environment, const char *library, const char *socket,
    int attempt, const char *const *submitted);

/* Releases the variables. */
void environment_fini(struct environment *environment);

#endif
