/* SPDX-License-Identifier: Apache-2.0 */
/* `oom_kill` in memory.events of this process's cgroup, or in /proc/vmstat for the machine. */
#include "exec/oom_counter.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static struct reading find_count(const char *path)
{
    struct reading count = READING_NONE;
    FILE *file = fopen(path, "re");
    if (!file)
        return count;
    char line[128];
    while (!count.valid && fgets(line, sizeof line, file))
        count.valid = sscanf(line, "oom_kill %lf", &count.value) == 1;
    fclose(file);
    return count;
}

static struct reading read_own_group(void)
{
    struct reading count = READING_NONE;
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        return count;
    char line[PATH_MAX], path[PATH_MAX + 64];
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

struct reading oom_counter_read(void)
{
    struct reading count = read_own_group();
    return count.valid ? count : find_count("/proc/vmstat");
}
