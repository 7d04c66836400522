/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc trace import`, `synth` and `info`, from their options to src/trace.
 *
 *     import   log -> list of jobs -> period, sample, sizes -> arrival times scaled -> tasks of the
 *              catalogue that are like the jobs -> trace
 *     synth    distributions of a cluster -> list of jobs -> as above
 *     info     log or trace -> its statistics
 *
 * A job of a log has a length and GPUs, but no memory or activity. So it becomes a task of the
 * catalogue with the same number of GPUs and about the same length (src/trace/mapping.h); with
 * --tasks-out it becomes a new task, which keeps its length.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/print.h"
#include "cli/trace_report.h"
#include "cli/trace_run.h"
#include "trace/civil_time.h"
#include "trace/own_trace.h"
#include "trace/select.h"
#include "trace/synth.h"

/* ---- import ---- */

/* A date, or a time after the first submission of the log. */
static int read_from_time(
    const struct trace_run *run, struct fault *fault, struct selection *selection)
{
    const char *text = trace_value(run, TRACE_FROM_TIME)->text;
    if (!text || parse_duration(text, &selection->from_us) == 0)
        return 0;
    selection->from_is_date = civil_time_parse(text, &selection->from_us) == 0;
    return selection->from_is_date
               ? 0
               : fault_set(fault, EINVAL,
                     "--from-time=%.60s: invalid time: give a date such as "
                     "\"2017-10-07 08:00\", or a time after the first submission "
                     "such as 2d",
                     text);
}

static int read_selection(
    const struct trace_run *run, struct fault *fault, struct selection *ret_selection)
{
    *ret_selection = (struct selection){
        .window_us = trace_value(run, TRACE_WINDOW)->number,
        .jobs_max = trace_value(run, TRACE_JOBS)->number,
        .seed = (uint64_t)trace_value(run, TRACE_SEED)->number,
    };
    int r = read_from_time(run, fault, ret_selection);
    if (r == 0)
        r = trace_gpus(run, fault, &ret_selection->gpus_max);
    if (r == 0)
        r = trace_number(run, TRACE_SAMPLE, 0, 1, 1, fault, &ret_selection->sample);
    if (r == 0)
        r = trace_number(
            run, TRACE_ARRIVAL_SCALE, 0, 1000, 1, fault, &ret_selection->arrival_scale);
    return r;
}

/* An empty selection is a fault that says which period the log has: usually the date is wrong. */
static int select_jobs(
    struct trace_run *run, const struct selection *selection, struct fault *fault)
{
    char first[40], last[40];
    struct job_list *jobs = &run->log.jobs;
    if (job_list_sort(jobs) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    if (jobs->n == 0)
        return fault_set(fault, EINVAL, "%s: of %" PRId64 " jobs, none ran on a GPU and ended",
            run->name, run->log.counts.read);
    civil_time_format(jobs->jobs[0].submit_us, first, sizeof first);
    civil_time_format(jobs->jobs[jobs->n - 1].submit_us, last, sizeof last);
    if (jobs_select(jobs, selection, &run->log.counts) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    if (jobs->n == 0)
        return fault_set(fault, EINVAL,
            "%s: no job matches the options: its jobs were submitted from %s to %s", run->name,
            first, last);
    return 0;
}

/* The report comes last and says how many jobs were left out, and why. */
int trace_import(struct trace_run *run, struct fault *fault)
{
    struct selection selection;
    const struct cluster_log_format *format = trace_format(run);
    if (!format)
        return fault_set(fault, EINVAL,
            "trace import: the first line shows no known format: add --from=philly, helios, "
            "alibaba, sacct or swf");
    int r = read_selection(run, fault, &selection);
    if (r == 0)
        r = trace_read_log(run, format, fault);
    if (r == 0)
        r = select_jobs(run, &selection, fault);
    if (r == 0)
        r = trace_write(run, fault);
    if (r == 0)
        report_kept(run->name, &run->log.counts, &run->log.jobs, trace_wants_json(run));
    if (r == 0)
        print_error(
            "memory and activity of the jobs are not in the log: they are those of tasks of "
            "the catalogue");
    return r;
}

/* ---- synth ---- */

/* How much work was made: above 100 % tasks share GPUs, or wait longer and longer. */
static void say_load(const struct synth_request *request, const struct job_list *jobs)
{
    double gpu_s = 0, share = synth_share(request->profile, request->gpus_max);
    for (size_t i = 0; i < jobs->n; i++)
        gpu_s += jobs->jobs[i].gpus * ((double)jobs->jobs[i].length_us / (double)SECOND_US);
    if (!request->gpus_max)
        return;
    if (share < 1 - 1e-9)
        print_error("%.1f %% of the jobs of %s need more than %d GPUs: these are skipped",
            100 * (1 - share), request->profile->name, request->gpus_max);
    print_error(
        "these jobs, each alone on its GPUs, would keep %d GPUs busy for %.1f %% of %g days",
        request->gpus_max, 100 * gpu_s / (request->days * 86400 * request->gpus_max),
        request->days);
}

/* A cluster's statistics give lengths, sizes and arrival times; the seed makes them repeatable. */
int trace_synth(struct trace_run *run, struct fault *fault)
{
    const struct option_value *like = trace_value(run, TRACE_LIKE),
                              *jobs = trace_value(run, TRACE_JOBS);
    struct synth_request request = {
        .profile = synth_profile_find(like->set ? like->text : "helios"),
        .jobs = option_number_or(jobs, 1000),
        .seed = (uint64_t)trace_value(run, TRACE_SEED)->number,
    };
    if (!trace_value(run, TRACE_TASKS_OUT)->set)
        return fault_set(
            fault, EINVAL, "trace synth: no catalogue file given: add --tasks-out=FILE");
    int r = trace_number(run, TRACE_DAYS, 1e-3, 36500, 1, fault, &request.days);
    if (r == 0)
        r = trace_gpus(run, fault, &request.gpus_max);
    if (r == 0 && synth_make(&request, &run->log.jobs) < 0)
        r = fault_set(fault, ENOMEM, "out of memory");
    if (r == 0)
        r = trace_write(run, fault);
    if (r == 0)
        say_load(&request, &run->log.jobs);
    return r;
}

/* ---- info ---- */

static bool is_dated(const struct job_list *jobs)
{
    return jobs->jobs[0].submit_us >=
           365 * DAY_US; /* otherwise it is counted from the log's begin */
}

static int read_own(struct trace_run *run, struct fault *fault)
{
    int r = trace_catalogue(run, fault);
    return r < 0 ? r : own_trace_read(run->name, &run->catalogue, &run->log.jobs, fault);
}

/* Of a foreign log, and of a trace of colloc's own. */
int trace_info(struct trace_run *run, struct fault *fault)
{
    struct job_statistics statistics;
    struct job_list *jobs = &run->log.jobs;
    const struct cluster_log_format *format = trace_format(run);
    bool is_log = format;
    int r = is_log ? trace_read_log(run, format, fault) : read_own(run, fault);
    if (r < 0)
        return r;
    if (jobs->n == 0)
        return fault_set(fault, EINVAL, "%s: no jobs that ran on GPUs", run->name);
    if (job_list_sort(jobs) < 0 || job_statistics_make(jobs, &statistics) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    report_statistics(jobs, &statistics, is_log && is_dated(jobs), trace_wants_json(run));
    if (is_log && !trace_wants_json(run))
        report_kept(run->name, &run->log.counts, jobs, false);
    job_statistics_fini(&statistics);
    return 0;
}
