/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suspension of emulated processes. The state is in the process's entry. A copy has an end in
 * emulated time, and the first process that enters the world after it completes the change: so a
 * caller that is killed while it waits changes nothing.
 *
 * The seconds per GiB are those of an H200 with driver 580.159.04: 7.3 GiB in 3.6 s, back in 1.5.
 */
#include "emulator/suspension.h"

#include <math.h>
#include <signal.h>
#include <string.h>

#include "base/units.h"
#include "emulator/memory.h"

static const double CHECKPOINT_S_PER_GIB = 0.5;
static const double RESTORE_S_PER_GIB = 0.2;

struct process *suspension_find(struct world *world, pid_t pid)
{
    for (int i = 0; i < world->process_end; i++) {
        struct process *p = &world->processes[i];
        if (p->present && p->role == ROLE_TRAINING && p->pid == pid)
            return p;
    }
    return NULL;
}

static void set_state(struct process *p, enum cuda_state state)
{
    p->cuda_state = state;
    world_wake(p);
}

/* Completes the copies whose time is over. Every call that enters the world begins with this. */
bool suspension_settle(struct world *world)
{
    bool changed = false;

    for (int i = 0; i < world->process_end; i++) {
        struct process *p = &world->processes[i];
        if (!p->present || !p->copy.is_under_way || world_now_s(world) < p->copy.end_s)
            continue;
        p->copy.is_under_way = false;
        p->off_gpu = p->copy.then == CUDA_CHECKPOINTED;
        set_state(p, p->copy.then);
        changed = true;
    }
    return changed;
}

/* A locked process has finished its work on the GPU and begins no more; its memory stays. */
int suspension_lock(struct world *world, struct process *p)
{
    if (p->mps_server || p->has_profiler)
        return CUDA_NOT_SUPPORTED;
    if (p->cuda_state != CUDA_RUNNING)
        return CUDA_ILLEGAL_STATE;
    set_state(p, CUDA_LOCKED);
    world_solve(world);
    return CUDA_OK;
}

int suspension_unlock(struct world *world, struct process *p)
{
    if (p->cuda_state != CUDA_LOCKED || p->copy.is_under_way)
        return CUDA_ILLEGAL_STATE;
    set_state(p, CUDA_RUNNING);
    world_solve(world);
    return CUDA_OK;
}

/* Also what lies on the host. */
static int64_t memory_held(const struct process *p)
{
    int64_t sum = 0;

    for (int i = 0; i < p->segment_count; i++)
        sum += p->segments[i].size;
    return sum;
}

/* Memory of suspended processes lies in the host's memory, from the beginning of the copy on. */
static int64_t host_memory_used(const struct world *world)
{
    int64_t sum = 0;

    for (int i = 0; i < world->process_end; i++) {
        const struct process *p = &world->processes[i];
        if (p->present && (p->off_gpu || p->copy.is_under_way))
            sum += memory_held(p);
    }
    return sum;
}

static void begin_copy(
    const struct world *world, struct process *p, enum cuda_state then, double s_per_gib)
{
    double gib = (double)memory_held(p) / GIB;

    p->copy = (struct copy){true, then, world_now_s(world) + gib * s_per_gib};
}

/* The driver's answers in the order in which it gives them: a process in the wrong state, with
 * managed memory, on a MIG instance, or one whose memory does not fit into the host's: the last is
 * killed, as by the kernel. */
int suspension_checkpoint(struct world *world, struct process *p)
{
    int64_t host_bytes = host_memory_used(world) + memory_held(p);

    if (p->cuda_state != CUDA_LOCKED || p->copy.is_under_way)
        return CUDA_ILLEGAL_STATE;
    if (p->has_managed)
        return CUDA_NOT_SUPPORTED;
    if (p->seats[0].unit != 0)
        return CUDA_OUT_OF_MEMORY;
    if (world->host_memory_bytes && host_bytes > world->host_memory_bytes) {
        kill(p->pid, SIGKILL);
        return CUDA_OPERATING_SYSTEM;
    }
    begin_copy(world, p, CUDA_CHECKPOINTED, CHECKPOINT_S_PER_GIB);
    return CUDA_OK;
}

/* Two GPUs cannot become one: every GPU is named once. */
static bool is_permutation(const int *moves, int count)
{
    bool taken[GPUS_MAX] = {false};

    for (int i = 0; i < count; i++) {
        if (moves[i] < 0 || moves[i] >= count || taken[moves[i]])
            return false;
        taken[moves[i]] = true;
    }
    return true;
}

/* Allocates all of its segments again: on a GPU with linear memory they get other addresses. */
static int take_back(struct world *world, struct process *p)
{
    struct segment segments[SEGMENTS_MAX];
    int count = p->segment_count, r = 0;

    memcpy(segments, p->segments, sizeof(segments));
    p->segment_count = 0;
    p->off_gpu = false;
    for (int i = 0; i < count && r == 0; i++)
        r = memory_take(world, p, segments[i].seat, segments[i].size);
    if (r < 0) {
        p->off_gpu = true;
        p->segment_count = count;
        memcpy(p->segments, segments, sizeof(segments));
    }
    return r;
}

static void move_to(struct process *p, const int *moves)
{
    for (int i = 0; i < p->seat_count; i++)
        p->seats[i].gpu = moves[p->seats[i].gpu];
    for (int i = 0; i < p->segment_count; i++)
        p->segments[i].seat.gpu = moves[p->segments[i].seat.gpu];
}

/* Another process takes memory in the moment in which it was freed for the restore. */
static void take_before(struct world *world, const struct process *p)
{
    for (int i = 0; i < p->seat_count; i++) {
        struct gpu *gpu = &world->gpus[p->seats[i].gpu];
        gpu->foreign_bytes += gpu->restore_bytes;
        gpu->restore_bytes = 0;
    }
}

/* A restore that fails leaves the process FAILED for good: its memory is nowhere any more. */
int suspension_restore(struct world *world, struct process *p, const int *moves)
{
    if (p->cuda_state == CUDA_FAILED)
        return CUDA_OPERATING_SYSTEM;
    if (p->cuda_state != CUDA_CHECKPOINTED || p->copy.is_under_way)
        return CUDA_ILLEGAL_STATE;
    if (moves && !is_permutation(moves, world->gpu_count)) {
        set_state(p, CUDA_FAILED);
        return CUDA_INVALID_VALUE;
    }
    if (moves)
        move_to(p, moves);
    take_before(world, p);
    if (take_back(world, p) < 0) {
        set_state(p, CUDA_FAILED);
        return CUDA_OUT_OF_MEMORY;
    }
    begin_copy(world, p, CUDA_LOCKED, RESTORE_S_PER_GIB);
    return CUDA_OK;
}
