/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the number of processes that the kernel has killed for lack of host memory: `oom_kill` in
 * memory.events of this process's cgroup, or in /proc/vmstat for the machine. */
#include "exec/oom_counter.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/units.h"
#include "exec/cgroup.h"

#define VMSTAT_MAX ((size_t)MIB)

static struct reading read_machine(void)
{
    char *text;
    size_t size;
    if (file_read("/proc/vmstat", VMSTAT_MAX, NULL, &text, &size) < 0)
        return READING_NONE;
    int64_t count = cgroup_parse_value(text, "oom_kill");
    free(text);
    return count >= 0 ? reading_of((double)count) : READING_NONE;
}

static struct reading read_own_group(void)
{
    char mount[CGROUP_PATH_SIZE], own[CGROUP_PATH_SIZE], path[2 * CGROUP_PATH_SIZE];
    if (!cgroup_find_own(mount, own))
        return READING_NONE;
    snprintf(path, sizeof path, "%s%s", mount, own);
    return cgroup_oom_kills(path);
}

struct reading oom_counter_read(void)
{
    struct reading count = read_own_group();
    return count.valid ? count : read_machine();
}
