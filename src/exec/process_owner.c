/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the attempt of a process. Most processes of a task descend from its shim. A process that a
 * server starts for the task does not, such as a container that dockerd starts, or a training that
 * a fork server with loaded libraries forks. Such a server puts it into the task's cgroup
 * (COLLOC_CGROUP) or one below, where it is also limited and ended with the task:
 *
 *     /colloc/1f0c9a77-12.1/docker-5e0b...    is task 12's, while its attempt 1 runs
 *
 *     /colloc.slice/colloc-1f0c9a77_12.1.slice/docker-5e0b....scope    too (container_slice.h)
 *
 * The home of these cgroups belongs to root, who alone can move processes there: a user cannot
 * charge a process to another user's task. A cgroup of such a name elsewhere does not count.
 */
#include "exec/process_owner.h"

#include <stdbool.h>

#include "exec/cgroup.h"
#include "exec/tree.h"

static int find_by_cgroup(pid_t pid, const struct attempt_roots *roots)
{
    char own[CGROUP_PATH_SIZE];
    uint64_t task;
    int attempt;
    bool is_attempt = cgroup_find_of(pid, own) &&
                      (cgroup_parse_attempt(
                           own, roots->cgroup_home, roots->state_dir, &task, &attempt) ||
                          cgroup_parse_slice(own, roots->state_dir, &task, &attempt));
    for (size_t i = 0; is_attempt && i < roots->count; i++)
        if (roots->tasks[i] == task && roots->attempts[i] == attempt)
            return (int)i;
    return -1;
}

int process_owner_find(pid_t pid, const struct attempt_roots *roots)
{
    int found = tree_find_root(pid, roots->shims, roots->count);
    return found < 0 && roots->count > 0 && roots->cgroup_home ? find_by_cgroup(pid, roots) : found;
}
