/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of `colloc simulate`, as CSV. Times are written with at most three decimals; figures
 * that are not known are left empty.
 */
#include "trace/own_trace.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/columns.h"
#include "base/units.h"
#include "sim/arrivals.h"
#include "sim/event_line.h"

static FILE *open_output(const char *path, struct fault *fault)
{
    FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
    if (!file)
        fault_set(fault, errno, "%s: %s", path, strerror(errno));
    return file;
}

static int close_output(FILE *file, const char *path, struct fault *fault)
{
    int failed = ferror(file) | (file == stdout ? fflush(file) : fclose(file));
    return failed ? fault_set(fault, EIO, "%s: could not all be written: %s", path, strerror(errno))
                  : 0;
}

static void print_arrival(FILE *file, const char *time, const char *task, const char *user)
{
    fprintf(file, "%s,", time);
    columns_print(file, task);
    if (user)
        fputc(',', file);
    if (user)
        columns_print(file, user);
    fputc('\n', file);
}

int own_trace_write(const char *path, const struct job_list *jobs,
    const struct sim_task *const *tasks, bool own, struct fault *fault)
{
    char time[32], name[32];
    bool has_users = jobs->users.n > 0;
    FILE *file = open_output(path, fault);
    if (!file)
        return -EIO;
    fprintf(file, has_users ? "submit_s,task,user\n" : "submit_s,task\n");
    for (size_t i = 0; i < jobs->n; i++) {
        event_line_format_time(jobs->jobs[i].submit_us, time, sizeof time);
        snprintf(name, sizeof name, "j%zu", i + 1);
        print_arrival(file, time, own ? name : tasks[i]->name,
            has_users ? intern_get(&jobs->users, jobs->jobs[i].user) : NULL);
    }
    return close_output(file, path, fault);
}

/* A figure that may be unknown. */
static void write_figure(FILE *file, double value)
{
    if (isnan(value))
        fprintf(file, ",");
    else
        fprintf(file, ",%g", value);
}

static void write_demand(FILE *file, const struct demand *demand)
{
    write_figure(file, demand->smact);
    write_figure(file, demand->gract);
    write_figure(file, demand->smocc);
    write_figure(file, demand->dram);
    write_figure(file, demand->power_w);
}

static int64_t memory_mib(const struct log_job *job, const struct sim_task *task, int64_t gpu_bytes)
{
    double part = job->part > 0 ? (double)job->part : 1;
    return job->is_shards ? llround((double)gpu_bytes * part / (double)MIB)
                          : task->memory_bytes / MIB;
}

int own_tasks_write(const char *path, const struct job_list *jobs,
    const struct sim_task *const *tasks, int64_t gpu_bytes, struct fault *fault)
{
    FILE *file = open_output(path, fault);
    if (!file)
        return -EIO;
    fprintf(file, "task,gpus,solo_s,memory_mib,smact,gract,smocc,dram,power_w\n");
    for (size_t i = 0; i < jobs->n; i++) {
        const struct log_job *job = &jobs->jobs[i];
        const struct demand of_part = {.gract = NAN,
                                .smact = job->part,
                                .smocc = NAN,
                                .dram = NAN,
                                .power_w = NAN},
                            *demand = job->part > 0 && !job->is_shards ? &of_part
                                                                       : &tasks[i]->demand;
        char length[32];
        fprintf(file, "j%zu,%d,%s,%" PRId64, i + 1, job->gpus,
            event_line_format_time(job->length_us, length, sizeof length),
            memory_mib(job, tasks[i], gpu_bytes));
        write_demand(file, demand);
        fputc('\n', file);
    }
    return close_output(file, path, fault);
}

int own_trace_read(
    const char *path, const struct catalogue *catalogue, struct job_list *list, struct fault *fault)
{
    struct arrivals arrivals;
    struct arrival arrival;
    int r = arrivals_open(&arrivals, path, catalogue, fault), more = 0;
    while (r == 0 && (more = arrivals_next(&arrivals, fault, &arrival)) == 1) {
        struct log_job job = {.submit_us = arrival.time_us,
            .length_us = llround(arrival.task->solo_s * (double)SECOND_US),
            .gpus = arrival.task->gpus,
            .user = intern_text(&list->users, intern_get(&arrivals.users, arrival.user))};
        if (job.user < 0 || job_list_add(list, &job) < 0)
            r = fault_set(fault, ENOMEM, "out of memory");
    }
    arrivals_close(&arrivals);
    return r < 0 ? r : more;
}
