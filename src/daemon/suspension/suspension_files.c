/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of the part in the state folder: a record for each task off its GPUs, and the learned
 * speed of copies. The core uses that speed, too. It gets it by an event, which is in the log, so
 * that a replayed log decides the same.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "checkpoint/kernel_module.h"
#include "daemon/suspension/suspension_state.h"

static const size_t FILE_MAX = MIB;

/* Chosen: single copies differ by this much, and the log stays small. */
static const double REPORT_PART = 0.1;

/* A way of the core, and its copies. */
struct reported_way {
    enum suspension_way way;
    enum copy_way out, back;
};

static void record_path(const struct suspension *s, uint64_t task, char *path, size_t size)
{
    snprintf(path, size, "%s/suspended/%llu", s->parts.config->state_dir, (unsigned long long)task);
}

static void speed_path(const struct suspension *s, char *path, size_t size)
{
    snprintf(path, size, "%s/copy-speed", s->parts.config->state_dir);
}

int suspension_count_stops(const struct task *task)
{
    return task->run->yield.suspensions + task->run->yield.moves;
}

/* Returns whether there is a record of this order: a record of an earlier suspension of the attempt
 * has a lower number. */
bool suspension_load_record(struct suspension *s, const struct task *task)
{
    char path[600], *data;
    size_t size;
    record_path(s, task->id, path, sizeof path);
    if (file_read(path, FILE_MAX, NULL, &data, &size) < 0)
        return false;
    int r = suspension_record_read((struct span){data, size}, &s->record);
    free(data);
    if (r < 0)
        log_error("%s: damaged", path);
    bool is_this = task->state == TASK_RESUMING || task->state == TASK_SUSPENDED ||
                   s->record.number == suspension_count_stops(task);
    return r == 0 && s->record.attempt == task->attempts && is_this;
}

int suspension_save_record(const struct suspension *s, uint64_t task)
{
    char path[600];
    record_path(s, task, path, sizeof path);
    char *text = suspension_record_write(&s->record);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    int r = text ? file_make_folders(path, 0700) : -ENOMEM;
    *slash = '/';
    if (r == 0)
        r = file_write_atomic(path, text, strlen(text), 0600);
    free(text);
    return r;
}

void suspension_remove_record(const struct suspension *s, uint64_t task)
{
    char path[600];
    record_path(s, task, path, sizeof path);
    unlink(path);
}

void suspension_load_module(struct suspension *s)
{
    char *data;
    size_t size;
    if (file_read(KERNEL_MODULE_VERSION_FILE, FILE_MAX, NULL, &data, &size) < 0)
        return;
    s->may_hang_host = kernel_module_may_hang((struct span){data, size});
    free(data);
}

void suspension_load_speed(struct suspension *s)
{
    char path[600], *data;
    size_t size;
    s->speed = copy_speed_default();
    speed_path(s, path, sizeof path);
    if (file_read(path, FILE_MAX, NULL, &data, &size) < 0)
        return;
    s->speed = copy_speed_read((struct span){data, size});
    free(data);
}

void suspension_save_speed(const struct suspension *s)
{
    char path[600], text[COPY_SPEED_TEXT_SIZE];
    speed_path(s, path, sizeof path);
    size_t size = copy_speed_write(&s->speed, text, sizeof text);
    if (size && file_write_atomic(path, text, size, 0600) < 0)
        log_debug("%s: cannot be written", path);
}

static bool is_speed_changed(int64_t learned_us, int64_t known_us)
{
    return fabs((double)(learned_us - known_us)) > REPORT_PART * (double)known_us;
}

/* The cost on a GPU; gpu -1: on those of which nothing was learned. Not only what was learned: a
 * log of an older version may have one cost for both ways. */
static void report_cost(struct suspension *s, int gpu, const struct reported_way *way)
{
    const char *uuid = gpu >= 0 ? core_view(s->parts.core)->gpus[gpu].id.uuid : NULL;
    const struct suspension_cost *known = core_stop_cost(s->parts.core, gpu, way->way);
    int64_t fixed_us = copy_speed_expect_us(&s->speed, uuid, way->out, 0);
    struct suspension_cost cost = {.fixed_us = fixed_us,
        .suspend_us_per_gib = copy_speed_expect_us(&s->speed, uuid, way->out, GIB) - fixed_us,
        .resume_us_per_gib = copy_speed_expect_us(&s->speed, uuid, way->back, GIB) -
                             copy_speed_expect_us(&s->speed, uuid, way->back, 0)};
    struct event event = driver_event(s->parts.driver, EVENT_SUSPENSION_COST, 0);
    event.suspension_cost.way = way->way;
    event.suspension_cost.of_gpu = gpu + 1;
    event.suspension_cost.cost = cost;
    if (is_speed_changed(cost.suspend_us_per_gib, known->suspend_us_per_gib) ||
        is_speed_changed(cost.resume_us_per_gib, known->resume_us_per_gib))
        driver_feed(s->parts.driver, &event, NULL);
}

void suspension_report_speed(struct suspension *s)
{
    static const struct reported_way ways[] = {
        {SUSPENSION_BY_DRIVER, COPY_TO_HOST, COPY_TO_GPU},
        {SUSPENSION_BY_CARRIER, CARRY_TO_HOST, CARRY_TO_GPU},
        {SUSPENSION_TO_NEIGHBOUR, CARRY_TO_NEIGHBOUR, CARRY_FROM_NEIGHBOUR},
    };
    const struct cluster_view *view = core_view(s->parts.core);
    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        report_cost(s, -1, &ways[i]);
        for (int gpu = 0; gpu < view->n_gpus; gpu++)
            if (copy_speed_is_known(&s->speed, view->gpus[gpu].id.uuid, ways[i].out) ||
                copy_speed_is_known(&s->speed, view->gpus[gpu].id.uuid, ways[i].back))
                report_cost(s, gpu, &ways[i]);
    }
}
