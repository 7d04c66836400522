/* SPDX-License-Identifier: Apache-2.0 */
/* Forgetting: ended tasks older than the configured time leave the log, and then their folders with
 * their output. */
#include <dirent.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "daemon/daemon.h"

#define FIRST_MS       1000
#define PERIOD_MS      3600000
#define AGAIN_MS       100
#define FORGET_AT_ONCE 200

static int forget(struct daemon *daemon, int *ret_forgotten)
{
    struct fault fault = {0};
    int64_t before_us = clock_wall_us() - daemon->config.history_us;
    int r = store_begin(daemon->store, &fault);
    if (r == 0)
        r = store_forget_before(daemon->store, before_us, FORGET_AT_ONCE, &fault, ret_forgotten);
    if (r == 0)
        r = store_commit(daemon->store, &fault);
    if (r < 0) {
        store_rollback(daemon->store);
        log_warning("old tasks cannot be forgotten: %s", fault.text);
    }
    return r;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    return remove(path);
}

/* A folder of a task that neither lives nor is remembered. */
static bool is_orphan(struct daemon *daemon, const char *name)
{
    json_t *record = NULL;
    int64_t id;
    if (parse_int64(name, 1, INT64_MAX, &id) < 0 || (uint64_t)id >= daemon->next_id ||
        core_task(daemon->core, (uint64_t)id))
        return false;
    int r = store_get_ended(daemon->store, (uint64_t)id, NULL, &record);
    json_decref(record);
    return r == STORE_NONE;
}

static void remove_orphans(struct daemon *daemon)
{
    char path[600], folder[900];
    snprintf(path, sizeof path, "%s/tasks", daemon->config.state_dir);
    DIR *tasks = opendir(path);
    if (!tasks)
        return;
    for (const struct dirent *entry; (entry = readdir(tasks));) {
        if (!is_orphan(daemon, entry->d_name))
            continue;
        snprintf(folder, sizeof folder, "%s/%s", path, entry->d_name);
        nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
    closedir(tasks);
}

static void on_time(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    int forgotten = 0;
    if (!driver_log_is_broken(daemon->driver) && forget(daemon, &forgotten) == 0 && forgotten > 0)
        remove_orphans(daemon);
    uv_timer_start(
        &daemon->history_timer, on_time, forgotten == FORGET_AT_ONCE ? AGAIN_MS : PERIOD_MS, 0);
}

void history_start(struct daemon *daemon)
{
    uv_timer_start(&daemon->history_timer, on_time, FIRST_MS, 0);
}
