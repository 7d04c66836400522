/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps a task on the CPUs near its GPUs. A process whose CPUs are of another NUMA node than its
 * GPU copies its data through the connection of the processors. The affinity is a hint for the
 * scheduler of the kernel: a program may set another one (taskset, numactl, torch's own binding),
 * which a cpuset would forbid.
 */
#include "exec/near_cpus.h"

#include <errno.h>
#include <stdlib.h>

/* A number at the beginning of the text, which is set behind it. Returns it, or -1. */
static long take_number(const char **text)
{
    char *end;
    if (**text < '0' || **text > '9')
        return -1;
    errno = 0;
    long number = strtol(*text, &end, 10);
    *text = end;
    return errno ? -1 : number;
}

int near_cpus_parse(const char *list, cpu_set_t *ret_set)
{
    CPU_ZERO(ret_set);
    for (;;) {
        long first = take_number(&list), last = first;
        if (*list == '-' && list++)
            last = take_number(&list);
        if (first < 0 || last < first)
            return -EINVAL;
        for (long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++)
            CPU_SET((int)cpu, ret_set);
        if (!*list)
            break;
        if (*list++ != ',')
            return -EINVAL;
    }
    return CPU_COUNT(ret_set) ? 0 : -EINVAL;
}

int near_cpus_bind(const char *list, int64_t needed)
{
    cpu_set_t near, allowed, both;
    int r = near_cpus_parse(list, &near);
    if (r < 0)
        return r;
    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        return -errno;
    CPU_AND(&both, &near, &allowed);
    if (CPU_COUNT(&both) == 0 || CPU_COUNT(&both) < needed)
        return 0;
    return sched_setaffinity(0, sizeof both, &both) < 0 ? -errno : 0;
}
