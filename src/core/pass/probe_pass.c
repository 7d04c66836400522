/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begins and ends probes (core/probe.h). All tasks beside the promised one are paused in one pass,
 * and continue in one: there is no order among them. Of several promised tasks the oldest is
 * measured first, which leaves the others unsettled until it has ended. They are paused and not
 * suspended, so their memory stays and none has to wait for its way back.
 */
#include "core/pass/probe_pass.h"

#include "core/ask/probe.h"
#include "core/decide/give_way.h"
#include "core/state/promise.h"
#include "core/state/tasks.h"

/* A task with several GPUs may be met on more than one. */
static int pause_neighbours(
    struct core *core, const struct task *promised, int64_t until_us, int64_t now_us)
{
    int r = 0;
    for (int i = 0; i < promised->n_gpus; i++) {
        const struct gpu_view *gpu = &core->view.gpus[promised->gpus[i]];
        for (int k = 0; k < gpu->n_residents && r == 0; k++) {
            const struct task *task = core_find_task(core, gpu->residents[k].task);
            if (task != promised && task->state == TASK_RUNNING)
                r = core_pause_for_probe(core, task, promised->id, until_us, now_us);
        }
    }
    return r;
}

static int begin_if_due(struct core *core, const struct task *promised, int64_t now_us)
{
    const struct probe_answer probe = core_find_probe(core, promised, now_us);
    return probe.kind == PROBE_DUE
               ? pause_neighbours(core, promised, now_us + probe.stop_us, now_us)
               : 0;
}

int core_schedule_probes(struct core *core, int64_t now_us)
{
    int r = 0;
    for (int i = 0; i < core->n_tasks && core->view.has_promises && r == 0; i++) {
        const struct task *task = core->tasks[i];
        if (core_is_probed(task) && core_is_probe_over(core, task, now_us))
            r = core_continue_task(core, task, now_us);
    }
    for (int i = 0; i < core->n_tasks && core->view.has_promises && r == 0; i++)
        if (core_has_promise(core->tasks[i]))
            r = begin_if_due(core, core->tasks[i], now_us);
    return r;
}
