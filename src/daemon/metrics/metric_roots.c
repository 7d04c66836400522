/* SPDX-License-Identifier: Apache-2.0 */
/* Which tasks run now, and the process at the top of each: what the thread reads /proc for. */
#include "base/array.h"
#include "daemon/attempts/attempts_query.h"
#include "daemon/metrics/metric_recorder.h"

size_t metric_list_roots(const struct core *core, const struct attempts *attempts,
    const struct jobs *jobs, struct metric_root **ret_roots)
{
    struct metric_root *roots = NULL;
    size_t count = 0, capacity = 0;
    for (const struct task *task = core_next_task(core, 0); task;
         task = core_next_task(core, task->id)) {
        pid_t shim = attempts_find_shim(attempts, task->id);
        const struct job *job = shim > 0 ? jobs_find(jobs, task->id) : NULL;
        struct reading steps_per_s = job ? job->steps.per_s : READING_NONE;
        if (shim > 0 && ARRAY_APPEND(roots, count, capacity,
                            ((struct metric_root){task->id, shim, steps_per_s})) < 0)
            break;
    }
    *ret_roots = roots;
    return count;
}
