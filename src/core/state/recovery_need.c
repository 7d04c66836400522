/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task that runs out of GPU memory has shown that it requires more than was left to it: what it
 * held, and what was free beside that. So its first retry may share a GPU on which more than that
 * is free; only if it fails as well does the task get GPUs to itself.
 *
 * Example, with a margin of 2 GiB: a neighbour holds 24 of 40 GiB, and the task fails when it has
 * taken nearly all of the other 16. It starts again where 18 GiB are free, or on an idle GPU. If it
 * fails there too, it waits for an idle GPU.
 *
 * Where the queue stops for a recovery (setting `recovery`), the first retry has to find its GPUs
 * idle as well, as in the dissertation's system; other tasks may join it there.
 *
 * With the setting recovery-step the rule is the dissertation's (section 7.2): each retry but the
 * last requires the free memory at the start of the former attempt, and a step more for each crash.
 *
 * Samples are not in the log: a task whose crash is older than the daemon recovers alone.
 */
#include "core/state/recovery_need.h"

#include <math.h>

#include "base/units.h"

/* What a retry needs beyond what the task could get, if the margin is less. Chosen: above what the
 * free memory of a GPU varies by while its tasks stay the same. */
#define MORE_BYTES (1 * GIB)

/* The last attempt has its GPUs to itself, whatever is free elsewhere. */
static bool is_last(const struct core *core, const struct task *task)
{
    return task->oom_count >= core->settings.recoveries_max;
}

/* By the dissertation: the free memory at the start, or the requirement, and a step more for every
 * crash. */
static double stepped_bytes(const struct core *core, const struct task *task)
{
    const struct need *need = &task->request.need;
    double before = task->run->free_bytes.value;
    if (need->kind >= NEED_ESTIMATED && (double)need->bytes > before)
        before = (double)need->bytes;
    return before + (double)core->settings.recovery_step_bytes * task->oom_count;
}

static inline bool retries_beside_others(const struct core *core, const struct task *task)
{
    return task->oom_count == 1 && !is_last(core, task) && !core->settings.recovery_step_bytes &&
           core->settings.recovery != RECOVERY_STOP_QUEUE && task->run->reached_bytes.valid;
}

bool core_retries_beside_others(const struct core *core, const struct task *task)
{
    return retries_beside_others(core, task);
}

struct recovery_need core_recovery_need(const struct core *core, const struct task *task)
{
    struct recovery_need need = {0};
    if (task->oom_count == 0)
        return need;
    if (retries_beside_others(core, task))
        need.free_bytes = task->run->reached_bytes.value +
                          fmax((double)core->settings.conditions.margin_bytes, (double)MORE_BYTES);
    else if (core->settings.recovery_step_bytes && !is_last(core, task) &&
             task->run->free_bytes.valid)
        need.free_bytes = stepped_bytes(core, task);
    need.is_alone = need.free_bytes <= 0;
    return need;
}

/* What the other tasks and processes of a GPU leave to the resident, and at least what it was seen
 * to hold. Not valid when its memory was never seen. */
static struct reading left_to(const struct gpu_view *gpu, const struct resident *resident)
{
    struct reading free_bytes = gpu_view_free_bytes(gpu);
    double left = reading_assume(free_bytes, 0) + reading_assume(resident->mem_used_bytes, 0);
    return resident->most_bytes > 0 ? reading_of(fmax(left, resident->most_bytes)) : READING_NONE;
}

/* It may have failed on the GPU that left it least. */
void core_note_reached(const struct core *core, struct task *task)
{
    struct reading least = READING_NONE;
    for (int i = 0; i < task->n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[task->gpus[i]];
        const struct resident *resident = gpu_view_resident(gpu, task->id);
        struct reading left = resident ? left_to(gpu, resident) : READING_NONE;
        if (left.valid && (!least.valid || left.value < least.value))
            least = left;
    }
    task->run->reached_bytes = least;
}
