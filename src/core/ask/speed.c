/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The speed of a task beside those that compute on its GPUs now, by the interference model. A task
 * that has taken no memory yet is starting: it does not use the GPU, so the others do not slow it
 * down, nor it them.
 */
#include <math.h>

#include "core/gpu_sharers.h"
#include "core/questions.h"
#include "core/state/state.h"
#include "sharing/interference_cache.h"

/* Also where its memory is not known: it may compute. */
static bool may_compute(const struct resident *resident)
{
    bool is_starting = resident->mem_used_bytes.valid && resident->most_bytes <= 0;
    return !resident->is_stopped && !is_starting;
}

static const struct interference_constants *constants_of(const struct core *core)
{
    return core->view.constants ? core->view.constants : &interference_measured;
}

/* A client of MPS waits for its launches also where no other task is. */
static double speed_alone(const struct core *core, const struct resident *own)
{
    struct sharer sharer;
    if (own->sharing == SHARING_STREAMS || !own->expect.smact.valid)
        return 1;
    gpu_sharer_set(&sharer, &own->expect, own->sharing, own->thread_percent);
    return 1 / interference_alone(constants_of(core), 1, 1, &sharer);
}

static struct speed_now speed_on(
    const struct core *core, const struct gpu_view *gpu, const struct resident *own)
{
    struct sharer sharers[GPU_SHARERS_MAX];
    double speeds[GPU_SHARERS_MAX];
    int n = 0, place = 0;
    bool has_external = reading_assume(gpu->external_processes, 0) > 0;
    bool is_known = !has_external;
    double alone = speed_alone(core, own);
    if (gpu->n_residents > GPU_SHARERS_MAX)
        return (struct speed_now){READING_NONE, alone, .is_shared = true};
    for (int i = 0; i < gpu->n_residents; i++) {
        const struct resident *resident = &gpu->residents[i];
        if (!may_compute(resident))
            continue;
        if (resident == own)
            place = n;
        is_known &= resident->expect.smact.valid;
        gpu_sharer_set(
            &sharers[n++], &resident->expect, resident->sharing, resident->thread_percent);
    }
    if (n <= 1 && !has_external)
        return (struct speed_now){reading_of(alone), alone, .is_shared = false};
    if (!is_known)
        return (struct speed_now){READING_NONE, alone, .is_shared = true};
    interference_speeds_cached(constants_of(core), sharers, n, speeds);
    return (struct speed_now){reading_of(speeds[place]), alone, .is_shared = true};
}

struct learned_delay core_learned_delay(const struct core *core, enum sharing sharing)
{
    return core->learned_delays[sharing];
}

struct speed_now core_speed_now(const struct core *core, const struct task *task)
{
    struct speed_now now = {reading_of(1), 1, .is_shared = false};
    if (task->state != TASK_RUNNING)
        return (struct speed_now){reading_of(0), 1, .is_shared = false};
    for (int i = 0; i < task->n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[task->gpus[i]];
        const struct resident *own = gpu_view_resident(gpu, task->id);
        if (!own || !may_compute(own))
            continue;
        struct speed_now here = speed_on(core, gpu, own);
        now.is_shared |= here.is_shared;
        now.alone = fmin(now.alone, here.alone);
        now.speed = !here.speed.valid || !now.speed.valid
                        ? READING_NONE
                        : reading_of(fmin(now.speed.value, here.speed.value));
    }
    return now;
}
