/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory limit of a task's cgroup is for the task's own memory. While the task is off its GPUs,
 * the driver keeps their memory in its processes, too, which the limit would not allow:
 *
 *     host-memory-share: 64 GiB    task: 9 GiB, GPU memory 70 GiB    suspended: 79 GiB
 *
 * What goes to host memory of the daemon's (rooms/room_pool.h) does not count there.
 * So the limit is raised before the task is suspended, and restored when it runs again. The record
 * has the former limit, so that each of these steps may be repeated, also by another daemon.
 */
#include <string.h>

#include "base/log.h"
#include "daemon/attempts/attempts_query.h"
#include "daemon/suspension/suspension_state.h"
#include "exec/cgroup.h"

/* Chosen: for the driver's allocations besides the copies. */
enum { MARGIN_DIVISOR = 16 };

static bool find_cgroup(const struct suspension *s, char path[CGROUP_PATH_SIZE])
{
    path[0] = '\0';
    return attempts_find_cgroup(s->parts.attempts, s->orders->task, path, CGROUP_PATH_SIZE);
}

static void set_limit(const struct suspension *s, int64_t bytes)
{
    char path[CGROUP_PATH_SIZE];
    const struct cgroup_limits limits = {.memory_bytes = bytes};
    int r = bytes && find_cgroup(s, path) ? cgroup_limit_attempt(path, &limits) : 0;
    if (r < 0)
        log_warning("task %llu: the memory limit of its cgroup cannot be set to %lld bytes: %s",
            (unsigned long long)s->orders->task, (long long)bytes, strerror(-r));
}

void suspension_note_memory_limit(struct suspension *s)
{
    s->record.memory_max_bytes = find_cgroup(s, s->cgroup) ? cgroup_memory_max(s->cgroup) : 0;
}

void suspension_lend_memory(const struct suspension *s)
{
    int64_t bytes = s->record.memory_max_bytes;
    if (!bytes)
        return;
    if (s->record.is_carried)
        bytes -= (int64_t)suspension_room_bytes(s);
    for (size_t i = 0; i < s->record.n_processes; i++)
        for (size_t k = 0; k < s->record.processes[i].n_memory; k++)
            bytes += s->record.processes[i].memory[k].bytes;
    if (bytes < s->record.memory_max_bytes) /* a page may claim anything */
        bytes = s->record.memory_max_bytes;
    set_limit(s, bytes + bytes / MARGIN_DIVISOR);
}

/* `colloc update` may have changed the limit of a suspended task. */
void suspension_return_memory(const struct suspension *s)
{
    const struct task *task = suspension_find_task(s, s->orders->task);
    int64_t named_bytes = task ? task->request.host.memory_bytes : 0;
    if (task)
        set_limit(s, named_bytes ? named_bytes : s->record.memory_max_bytes);
}
