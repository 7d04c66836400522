/* SPDX-License-Identifier: Apache-2.0 */
/* Older versions had the samples of GPUs in STATE_DIR/samples, too: one file for each GPU. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/metrics/metric_recorder.h"

#define SUFFIX ".series"

void metric_remove_old_samples(const char *state_dir)
{
    char folder[600], path[900];
    int n = 0;
    snprintf(folder, sizeof folder, "%s/samples", state_dir);
    DIR *dir = opendir(folder);
    if (!dir)
        return;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        const char *suffix = strrchr(entry->d_name, '.');
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (suffix && strcmp(suffix, SUFFIX) == 0)
            n += unlink(path) == 0;
    }
    closedir(dir);
    if (rmdir(folder) == 0 || n > 0)
        log_info("%s: removed %d files of an older version: samples are in metrics.db", folder, n);
}
