/* SPDX-License-Identifier: Apache-2.0 */
/* Which tasks run now, and the process at the top of each: what the thread reads /proc for. */
#include "base/array.h"
#include "daemon/attempts/attempts_query.h"
#include "daemon/metrics/metric_recorder.h"

size_t metric_list_roots(
    const struct core *core, const struct attempts *attempts, struct metric_root **ret_roots)
{
    struct metric_root *roots = NULL;
    size_t count = 0, capacity = 0;
    for (const struct task *task = core_next_task(core, 0); task;
         task = core_next_task(core, task->id)) {
        pid_t shim = attempts_find_shim(attempts, task->id);
        if (shim > 0 &&
            ARRAY_APPEND(roots, count, capacity, (struct metric_root){task->id, shim}) < 0)
            break;
    }
    *ret_roots = roots;
    return count;
}
