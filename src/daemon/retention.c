/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forgets old tasks. Each hour, ended tasks that are older than the configured time are removed
 * from the log, some hundred in a transaction so that the loop runs in between. Then their folders,
 * with their output, are removed: each folder of a task that is neither live nor in the log.
 */
#include "daemon/retention.h"

#include <dirent.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/units.h"

#define FIRST_MS       1000    /* after the start; chosen */
#define PERIOD_MS      3600000 /* chosen: records are kept for days */
#define AGAIN_MS       100     /* chosen: the loop serves requests meanwhile */
#define FORGET_AT_ONCE 200     /* records; chosen: a turn of the loop stays short */

struct retention {
    struct retention_options parts;
    uv_timer_t timer;
};

static int forget_tasks(struct retention *retention, int *ret_forgotten)
{
    struct fault fault = {0};
    int64_t before_us = clock_wall_us() - retention->parts.config->history_us;
    int r = store_begin(retention->parts.store, &fault);
    if (r == 0)
        r = store_forget_before(
            retention->parts.store, before_us, FORGET_AT_ONCE, &fault, ret_forgotten);
    if (r == 0)
        r = store_commit(retention->parts.store, &fault);
    if (r < 0) {
        store_rollback(retention->parts.store);
        log_warning("old tasks cannot be forgotten: %s", fault.text);
    }
    return r;
}

/* A folder of a task that is neither live nor in the log. */
static bool is_orphan(struct retention *retention, const char *name)
{
    json_t *record = NULL;
    int64_t id;
    if (parse_int64(name, 1, INT64_MAX, &id) < 0 ||
        (uint64_t)id >= jobs_next_id(retention->parts.jobs) ||
        core_task(retention->parts.core, (uint64_t)id))
        return false;
    int r = store_get_ended(retention->parts.store, (uint64_t)id, NULL, &record);
    json_decref(record);
    return r == STORE_NONE;
}

static void remove_orphans(struct retention *retention)
{
    char path[600], folder[900];
    snprintf(path, sizeof path, "%s/tasks", retention->parts.config->state_dir);
    DIR *tasks = opendir(path);
    if (!tasks)
        return;
    for (const struct dirent *entry; (entry = readdir(tasks));) {
        if (!is_orphan(retention, entry->d_name))
            continue;
        snprintf(folder, sizeof folder, "%s/%s", path, entry->d_name);
        file_remove_folder(folder);
    }
    closedir(tasks);
}

static void on_time(uv_timer_t *timer)
{
    struct retention *retention = timer->data;
    int forgotten = 0;
    if (!driver_log_is_broken(retention->parts.driver) &&
        forget_tasks(retention, &forgotten) == 0 && forgotten > 0)
        remove_orphans(retention);
    uv_timer_start(
        &retention->timer, on_time, forgotten == FORGET_AT_ONCE ? AGAIN_MS : PERIOD_MS, 0);
}

struct retention *retention_create(const struct retention_options *options)
{
    struct retention *retention = calloc(1, sizeof *retention);
    if (!retention)
        return NULL;
    retention->parts = *options;
    uv_timer_init(options->loop, &retention->timer);
    retention->timer.data = retention;
    uv_timer_start(&retention->timer, on_time, FIRST_MS, 0);
    return retention;
}

void retention_close(struct retention *retention)
{
    if (retention && !uv_is_closing((uv_handle_t *)&retention->timer))
        uv_close((uv_handle_t *)&retention->timer, NULL);
}

void retention_destroy(struct retention *retention)
{
    free(retention);
}
