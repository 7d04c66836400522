/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that need no GPU (`--gpus=0`) wait for none: they have their own queue, by priority and
 * time of submission. Its head starts as soon as the CPUs and the main memory that it requests are
 * free, and the others after it. A task that requests neither starts at once.
 *
 *     32 CPUs, all GPUs in use; a (1 GPU, 24 CPUs) is the head of the main queue
 *     b (no GPU, 8 CPUs)        starts
 *     c (no GPU, 4 CPUs)        waits: a could not start if it had them
 *
 * So tasks without a GPU take nothing that the head of the main queue, or a task that recovers,
 * will need: many small ones would else hold a large one off for ever.
 */
#include "core/pass/host_pass.h"

#include "core/ask/host_check.h"
#include "core/ask/queue_head.h"
#include "core/ask/servable.h"
#include "core/decide/effects.h"
#include "core/decide/place.h"

/* Chosen, to keep a pass short: the tasks that a pass starts; the next pass starts the others. A
 * pass looks at all waiting tasks: one that requests nothing may be behind any number of others.
 */
#define HOST_STARTS_MAX 256

static bool may_start(const struct core *core, const struct task *task)
{
    const struct task *head = core_head_of_queue(core);
    return core_check_host_turn(core, task).kind == VERDICT_FITS &&
           !(head && core_leaves_host_to(core, task, head));
}

static bool requests_nothing(const struct task *task)
{
    return task->request.host.cpus == 0 && task->request.host.memory_bytes == 0;
}

int core_schedule_host(struct core *core, int64_t now_us)
{
    struct task *next;
    bool is_blocked = false;
    int r = 0, left = HOST_STARTS_MAX;
    for (struct task *task = core->host_queue.first; task && r == 0 && left; task = next) {
        next = task->next;
        if (!requests_nothing(task)) {
            if (is_blocked || !core_can_be_served(core, task))
                continue; /* since the settings changed, it may request more than there is */
            is_blocked = !may_start(core, task);
            if (is_blocked)
                continue;
        }
        r = core_place_task(core, task, NULL, now_us);
        left--;
    }
    return r;
}
