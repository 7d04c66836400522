/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the CSV tables. The timeline gets a row when a GPU's figures differ from those of its last
 * row, and only when time moves on: tasks that start or end at the same time cause one row.
 */
#include "sim/records.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/columns.h"
#include "base/units.h"

static double to_seconds(int64_t us)
{
    return (double)us / (double)SECOND_US;
}

/* ---- GPUs over time ---- */

static struct gpu_moment moment_of(const struct simulated_gpus *gpus, int gpu)
{
    const struct gpu_rates *now = &gpus->gpus[gpu];
    return (struct gpu_moment){
        .smact = now->smact, .power_w = now->power_w, .tasks = now->n_residents};
}

static bool same_figures(const struct gpu_moment *a, const struct gpu_moment *b)
{
    return a->mem_used_bytes == b->mem_used_bytes && a->smact == b->smact &&
           a->power_w == b->power_w && a->tasks == b->tasks;
}

static void write_moment(FILE *out, int64_t time_us, int gpu, const struct gpu_moment *moment)
{
    fprintf(out, "%.6f,%d,%" PRId64 ",%.4f,%.1f,%d\n", to_seconds(time_us), gpu,
        moment->mem_used_bytes / MIB, moment->smact, moment->power_w, moment->tasks);
}

/* The places of a GPU follow each other. */
static void write_changes(struct timeline *timeline, bool all)
{
    const struct simulated_gpus *gpus = timeline->gpus;
    int place = 0;
    for (int gpu = 0; gpu < gpus->cluster->n_gpus; gpu++) {
        struct gpu_moment now = moment_of(gpus, gpu);
        for (; place < gpus->cluster->n_places && gpus->cluster->places[place].gpu == gpu; place++)
            now.mem_used_bytes += gpus->places[place].own_memory.used_bytes;
        if (all || !same_figures(&now, &timeline->last[gpu]))
            write_moment(timeline->out, timeline->now_us, gpu, &now);
        timeline->last[gpu] = now;
    }
}

int timeline_init(struct timeline *timeline, FILE *out, const struct simulated_gpus *gpus)
{
    *timeline = (struct timeline){.out = out, .gpus = gpus};
    timeline->last = calloc((size_t)gpus->cluster->n_gpus, sizeof *timeline->last);
    if (!timeline->last)
        return -ENOMEM;
    fprintf(out, "time_s,gpu,mem_used_mib,smact,power_w,tasks\n");
    write_changes(timeline, true);
    return 0;
}

void timeline_fini(struct timeline *timeline)
{
    free(timeline->last);
}

void timeline_advance(struct timeline *timeline, int64_t now_us)
{
    if (now_us <= timeline->now_us)
        return;
    write_changes(timeline, false);
    timeline->now_us = now_us;
}

/* ---- tasks ---- */

void task_rows_begin(FILE *out)
{
    fprintf(out, "id,task,gpus,state,submit_s,start_s,end_s,wait_s,exec_s,jct_s,attempts,oom\n");
}

void task_rows_add(FILE *out, const struct task *ended, const char *name)
{
    fprintf(out, "%" PRIu64 ",", ended->id);
    columns_print_text(out, name);
    fprintf(out, ",%d,%s,%.6f,%.6f,%.6f,%.6f,%.6f,%.6f,%d,%d\n", ended->request.gpus,
        task_state_name(ended->state), to_seconds(ended->submitted_us),
        to_seconds(ended->started_us), to_seconds(ended->ended_us), to_seconds(ended->waited_us),
        to_seconds(ended->executed_us), to_seconds(ended->ended_us - ended->submitted_us),
        ended->attempts, ended->oom_count);
}
