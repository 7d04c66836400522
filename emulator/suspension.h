/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effect of the driver's checkpoint functions on an emulated process: its states, the copies of
 * its memory to the host and back, and the pitfalls met on an H200 (docs/emulator.md,
 * "Suspension").
 *
 *     RUNNING -- lock --> LOCKED -- checkpoint (a copy) --> CHECKPOINTED
 *             <-- unlock --     <-- restore (a copy) ----        '-- restore, no room --> FAILED
 *
 * Contract:
 * 1. All functions are called between world_enter and world_leave.
 * 2. A copy goes on when the process that asked for it is killed, as the driver makes it in the
 *    suspended process itself.
 */
#ifndef COLLOC_EMULATOR_SUSPENSION_H
#define COLLOC_EMULATOR_SUSPENSION_H

#include "emulator/world.h"

/* The results of the functions below: CUDA's numbers. */
enum cuda_result {
    CUDA_OK = 0,
    CUDA_INVALID_VALUE = 1,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NOT_INITIALIZED = 3,
    CUDA_NO_DEVICE = 100,
    CUDA_INVALID_DEVICE = 101,
    CUDA_INVALID_CONTEXT = 201,
    CUDA_OPERATING_SYSTEM = 304,
    CUDA_ILLEGAL_STATE = 401,
    CUDA_NOT_FOUND = 500,
    CUDA_NOT_READY = 600,
    CUDA_LAUNCH_FAILED = 719,
    CUDA_NOT_SUPPORTED = 801,
    CUDA_MPS_SERVER_NOT_READY = 807,
    CUDA_UNKNOWN = 999,
};

/* Returns the process with this pid that uses CUDA, or NULL. */
struct process *suspension_find(struct world *world, pid_t pid);

/* Ends the copies that are due. Returns whether a process changed its state. For world_enter. */
bool suspension_settle(struct world *world);

/* Returns CUDA_OK, ILLEGAL_STATE or NOT_SUPPORTED (an MPS client, a profiler). */
int suspension_lock(struct world *world, struct process *p);

/* Returns CUDA_OK or ILLEGAL_STATE. */
int suspension_unlock(struct world *world, struct process *p);

/*
 * Begins to copy the process's memory to the host.
 *
 * Returns CUDA_OK; ILLEGAL_STATE; NOT_SUPPORTED (managed memory); OUT_OF_MEMORY (it runs on a MIG
 * instance); or OPERATING_SYSTEM: the host's memory is short, the kernel has killed the process.
 */
int suspension_checkpoint(struct world *world, struct process *p);

/*
 * Takes GPU memory for the process and begins to copy its memory back.
 *
 * moves: for each GPU the GPU where its processes go on, a permutation; NULL: nothing is moved.
 *
 * Returns CUDA_OK; ILLEGAL_STATE; INVALID_VALUE (no permutation) or OUT_OF_MEMORY (no room), and
 * the process has FAILED; OPERATING_SYSTEM: it had failed before.
 */
int suspension_restore(struct world *world, struct process *p, const int *moves);

#endif
