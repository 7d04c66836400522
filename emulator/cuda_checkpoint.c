/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checkpoint functions of the emulated libcuda: they find the entry of a pid and wait;
 * suspension.h does the rest. As in NVIDIA's driver, each call hangs if the process is stopped (the
 * driver runs code in the process itself), and a query of the state hangs while a copy is under
 * way. A caller must survive both.
 */
#include <time.h>

#include "base/process.h"
#include "emulator/cuda_interface.h"

static void sleep_ms(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static bool is_stopped(int pid)
{
    struct process_stat stat;
    return process_read_stat(pid, &stat) == 0 && stat.state == 'T';
}

/* Enters the world for a process that can answer. */
static CUresult enter_for_process(int pid, struct world **ret_world, struct process **ret_process)
{
    struct world *world = cuda_world();

    if (!world)
        return CUDA_NOT_INITIALIZED;
    while (is_stopped(pid))
        sleep_ms();
    world_enter(world);
    *ret_world = world;
    *ret_process = suspension_find(world, pid);
    if (*ret_process)
        return CUDA_OK;
    world_leave(world);
    return CUDA_OPERATING_SYSTEM;
}

/* Waits for the process's copy to end. Returns CUDA_OPERATING_SYSTEM when the process has died. */
static CUresult await_copy(int pid)
{
    struct world *world;
    struct process *p;
    CUresult r = CUDA_OK;

    for (bool waits = true; waits && r == CUDA_OK;) {
        r = enter_for_process(pid, &world, &p);
        if (r == CUDA_OK) {
            waits = p->copy.is_under_way;
            world_leave(world);
        }
        if (r == CUDA_OK && waits)
            sleep_ms();
    }
    return r;
}

CUresult cuCheckpointProcessGetState(int pid, int *state)
{
    struct world *world;
    struct process *p;

    if (!state)
        return CUDA_INVALID_VALUE;
    CUresult r = await_copy(pid);
    if (r == CUDA_OK)
        r = enter_for_process(pid, &world, &p);
    if (r == CUDA_OK) {
        *state = (int)p->cuda_state;
        if (world->checkpoint_is_mute && p->cuda_state == CUDA_LOCKED)
            r = CUDA_UNKNOWN;
        world_leave(world);
    }
    return r;
}

static bool is_zero(const void *at, size_t size)
{
    const char *bytes = at;

    for (size_t i = 0; i < size; i++)
        if (bytes[i])
            return false;
    return true;
}

CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args)
{
    struct world *world;
    struct process *p;

    if (args && (args->reserved0 || !is_zero(args->reserved1, sizeof(args->reserved1))))
        return CUDA_INVALID_VALUE;
    CUresult r = enter_for_process(pid, &world, &p);
    if (r == CUDA_OK) {
        r = suspension_lock(world, p);
        world_leave(world);
    }
    return r;
}

CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *args)
{
    struct world *world;
    struct process *p;

    if (args && !is_zero(args, sizeof(*args)))
        return CUDA_INVALID_VALUE;
    CUresult r = enter_for_process(pid, &world, &p);
    if (r == CUDA_OK) {
        r = suspension_unlock(world, p);
        world_leave(world);
    }
    return r;
}

CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *args)
{
    struct world *world;
    struct process *p;

    if (args && !is_zero(args, sizeof(*args)))
        return CUDA_INVALID_VALUE;
    CUresult r = enter_for_process(pid, &world, &p);
    if (r == CUDA_OK) {
        r = world->checkpoint_fails ? CUDA_UNKNOWN : suspension_checkpoint(world, p);
        world_leave(world);
    }
    while (((volatile struct world *)cuda_world())->checkpoint_hangs)
        sleep_ms();
    return r == CUDA_OK ? await_copy(pid) : r;
}

/* Returns false when a UUID is unknown. A GPU that no pair names is -1. */
static bool read_pairs(
    const struct world *world, const CUcheckpointRestoreArgs *args, int *ret_moves)
{
    for (int i = 0; i < GPUS_MAX; i++)
        ret_moves[i] = -1;
    for (unsigned i = 0; i < args->gpuPairsCount; i++) {
        int from = cuda_find_gpu(world, &args->gpuPairs[i].oldUuid);
        int to = cuda_find_gpu(world, &args->gpuPairs[i].newUuid);
        if (from < 0 || to < 0)
            return false;
        ret_moves[from] = to;
    }
    return true;
}

CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args)
{
    struct world *world;
    struct process *p;
    int moves[GPUS_MAX];
    bool has_moves = args && args->gpuPairsCount;

    if (args && !is_zero(args->reserved, sizeof(args->reserved)))
        return CUDA_INVALID_VALUE;
    CUresult r = enter_for_process(pid, &world, &p);
    if (r != CUDA_OK)
        return r;
    if (has_moves && !read_pairs(world, args, moves))
        r = CUDA_INVALID_VALUE;
    else
        r = suspension_restore(world, p, has_moves ? moves : NULL);
    world_leave(world);
    return r == CUDA_OK ? await_copy(pid) : r;
}
