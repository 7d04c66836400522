/* SPDX-License-Identifier: Apache-2.0 */
/* `oom_kill` in memory.events of this process's cgroup, or in /proc/vmstat for the machine. */
#include "exec/oom_counter.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static int64_t find_count(const char *path)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    char line[128];
    int64_t count = -1;
    while (count < 0 && fgets(line, sizeof line, file))
        if (sscanf(line, "oom_kill %" SCNd64, &count) != 1)
            count = -1;
    fclose(file);
    return count;
}

static int64_t read_own_group(void)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        return -1;
    char line[PATH_MAX], path[PATH_MAX + 64];
    int64_t count = -1;
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "0::", 3) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.events", line + 3);
        count = find_count(path);
    }
    fclose(file);
    return count;
}

int64_t oom_counter_read(void)
{
    int64_t count = read_own_group();
    return count >= 0 ? count : find_count("/proc/vmstat");
}
