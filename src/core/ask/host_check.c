/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPUs and main memory of the server, which tasks share besides its GPUs: do they suffice for a
 * task?
 *
 * A task that requests them (or gets the settings' part for each of its GPUs) starts only if that
 * much is left. It keeps them until its attempt ends (state/task_attempt.c). A task without a
 * request is not counted.
 *
 *     32 CPUs; a has 16, b has 12       c needs 8: it waits, "4 of 32 CPUs are free, it needs 8"
 *                                       d, behind c, needs 2: it waits too, or c might starve
 *                                       e names none: it may be backfilled
 *
 * The main queue leaves what it needs to the first task that recovers in the same way.
 *
 * Only counted here: cgroups enforce it (exec/cgroup.h).
 */
#include "core/ask/host_check.h"

#include <errno.h>

#include "base/units.h"
#include "core/state/state.h"

/* After a change of the settings, tasks may have more than there is. */
static int64_t left_of(int64_t all, int64_t used)
{
    return all > used ? all - used : 0;
}

/* What is short of `wanted` once `taken` of what is left has gone; VERDICT_FITS: nothing. */
static struct verdict check_left(const struct core *core, const struct host_resources *taken,
    const struct host_resources *wanted)
{
    const struct host_resources *all = &core->settings.host, *used = &core->host_used;
    int64_t cpus = left_of(all->cpus, used->cpus);
    int64_t bytes = left_of(all->memory_bytes, used->memory_bytes);
    if (all->cpus && wanted->cpus && wanted->cpus > cpus - taken->cpus)
        return (struct verdict){
            .kind = VERDICT_HOST_CPUS, .have = (double)cpus, .limit = wanted->cpus};
    if (all->memory_bytes && wanted->memory_bytes &&
        wanted->memory_bytes > bytes - taken->memory_bytes)
        return (struct verdict){.kind = VERDICT_HOST_MEMORY,
            .have = (double)bytes,
            .limit = (double)wanted->memory_bytes};
    return (struct verdict){.kind = VERDICT_FITS};
}

struct verdict core_check_host(const struct core *core, const struct task *task)
{
    static const struct host_resources nothing;
    return check_left(core, &nothing, &task->request.host);
}

/* What the head lacks, of what the task takes any of, once the task has its part. */
static struct verdict check_both(
    const struct core *core, const struct task *task, const struct task *head)
{
    const struct host_resources *taken = &task->request.host;
    const struct host_resources wanted = {.cpus = taken->cpus ? head->request.host.cpus : 0,
        .memory_bytes = taken->memory_bytes ? head->request.host.memory_bytes : 0};
    return check_left(core, taken, &wanted);
}

bool core_leaves_host_to(const struct core *core, const struct task *task, const struct task *head)
{
    return check_both(core, task, head).kind != VERDICT_FITS;
}

struct verdict core_check_host_turn(const struct core *core, const struct task *task)
{
    const struct task *recovering = core->recovery_queue.first;
    struct verdict turn = {.kind = VERDICT_FITS};
    if (recovering && task->state == TASK_QUEUED)
        turn = check_both(core, task, recovering);
    return turn.kind != VERDICT_FITS ? turn : core_check_host(core, task);
}

int core_check_host_request(
    const struct core *core, const struct host_resources *wanted, struct fault *fault)
{
    const struct host_resources *all = &core->settings.host;
    char text[32], most[32];
    if (all->cpus && wanted->cpus > all->cpus)
        return fault_set(fault, EINVAL, "cpus=%d: tasks can have at most %d CPUs here (host-cpus)",
            wanted->cpus, all->cpus);
    if (all->memory_bytes && wanted->memory_bytes > all->memory_bytes)
        return fault_set(fault, EINVAL,
            "host_memory=%s: tasks can have at most %s of main memory here (host-memory)",
            format_size(wanted->memory_bytes, text, sizeof text),
            format_size(all->memory_bytes, most, sizeof most));
    return 0;
}
