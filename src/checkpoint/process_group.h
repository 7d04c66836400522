/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA processes of one task, suspended or resumed together: all or none. Pure: it says which
 * call to the driver comes next, and takes the result.
 *
 *     process_group_init(&group, GROUP_SUSPENDED);  group.processes[...] = ...;
 *     while (process_group_next(&group, &step) == GROUP_CALL)
 *         ... make the call ...; process_group_take(&group, &step, result, state);
 *
 * Contract:
 * 1. An unknown state is queried before anything is decided. So a group whose daemon or helper was
 *    killed at any instant starts again, with all states unknown, and reaches its goal.
 * 2. No process is checkpointed before all are locked.
 * 3. When a process cannot be suspended, all run again.
 * 4. No process is restored before memory is reserved for all.
 *    A restore that failed is not repeated.
 * 5. With the answer, whatever it is, the helper holds no memory for the group: also none for a
 *    process that was killed meanwhile.
 */
#ifndef COLLOC_CHECKPOINT_PROCESS_GROUP_H
#define COLLOC_CHECKPOINT_PROCESS_GROUP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/process.h"
#include "checkpoint/helper_line.h"

enum {
    GROUP_PROCESSES_MAX = 64, /* of a task, with GPU memory; chosen: 16 GPUs and data loaders */
    GROUP_GPUS_MAX = 16,      /* of a task; NVIDIA's largest servers have 16 (DGX-2) */
    GROUP_HELPER_TRIES = 3,   /* chosen: a helper that dies three times does so always */
};

/* GPU memory of one process on one GPU. */
struct group_memory {
    char gpu[GPU_UUID_SIZE]; /* where it is, or goes when it is restored */
    int64_t bytes;
    bool is_reserved;
};

struct group_process {
    pid_t pid;
    uint64_t born; /* clock ticks since boot */
    enum process_state state;
    struct group_memory memory[GROUP_GPUS_MAX];
    size_t n_memory;
};

static inline struct process_id group_process_id(const struct group_process *process)
{
    return (struct process_id){process->pid, process->born};
}

enum group_goal { GROUP_RUNNING, GROUP_SUSPENDED };

struct process_group {
    struct group_process processes[GROUP_PROCESSES_MAX];
    size_t count;
    enum group_goal goal;
    bool is_undoing;  /* the goal was SUSPENDED; now all are to run again */
    bool has_no_room; /* a reservation failed: all reservations are released */
    bool is_broken;   /* a restore failed */
    bool is_stuck;    /* the driver or the helper says nothing of a process */
    bool was_touched; /* a call was made that changes something */
    int error;        /* CUDA's number or -errno, of the first call that failed; 0: none */
    enum helper_call error_call;
    size_t error_process;
    int helper_losses; /* how often the helper died in a call */
};

/* The next call to the driver. */
struct group_step {
    enum helper_call call;
    size_t process;
    size_t memory; /* of HELPER_RESERVE: which */
};

enum group_answer {
    GROUP_DONE = 0, /* the goal is reached */
    GROUP_CALL,     /* a call is due */
    GROUP_UNDONE,   /* it could not be suspended, `error` says why: all run as before */
    GROUP_NO_ROOM,  /* a GPU has too little memory for a process: all stay suspended */
    GROUP_BROKEN,   /* a process can never be restored: the task must be ended */
    GROUP_STUCK,    /* the driver does not answer: nothing more can be done now */
    GROUP_EMPTY,    /* none of the processes is left */
};

/* Begins with no processes; the caller adds them. */
void process_group_init(struct process_group *group, enum group_goal goal);

/* Adds a process whose state is not known. Returns it, or NULL: there are GROUP_PROCESSES_MAX. */
struct group_process *process_group_add(struct process_group *group, pid_t pid, uint64_t born);

/* Returns what is next; with GROUP_CALL also *ret_step. */
enum group_answer process_group_next(
    const struct process_group *group, struct group_step *ret_step);

/*
 * Takes the result of a step.
 *   result: CUDA's number; or of the helper: -ESRCH (the process is gone), -ETIMEDOUT (killed
 *           because it was stuck), -EPIPE (it died), or another -errno
 *   state:  what HELPER_STATE said; PROCESS_UNKNOWN otherwise
 */
void process_group_take(struct process_group *group, const struct group_step *step, int result,
    enum process_state state);

#endif
