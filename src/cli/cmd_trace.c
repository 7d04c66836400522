#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/trace_report.h"
#include "sim/cluster.h"
#include "trace/civil_time.h"
#include "trace/log.h"
#include "trace/mapping.h"
#include "trace/own_trace.h"
#include "trace/select.h"
#include "trace/synth.h"

enum {
    TRACE_FROM,
    TRACE_FROM_TIME,
    TRACE_WINDOW,
    TRACE_GPUS,
    TRACE_SAMPLE,
    TRACE_JOBS,
    TRACE_ARRIVAL_SCALE,
    TRACE_PROCESSORS,
    TRACE_KEEP_PARTIAL,
    TRACE_LIKE,
    TRACE_DAYS,
    TRACE_SEED,
    TRACE_TASKS,
    TRACE_TASKS_OUT,
    TRACE_OUTPUT,
    TRACE_OPTIONS
};

static const char *const formats[] = {"philly", "sacct", "swf", NULL};
static const char *const profiles[] = {"helios", "philly", NULL};

static const struct option_spec options[TRACE_OPTIONS] = {
    [TRACE_FROM] = {.name = "from",
                    .kind = OPTION_CHOICE,
                    .argument = "LOG",
                    .choices = formats,
                    .help = "import, info: what wrote the file: Philly's cluster_job_log, sacct --parsable2, or "
                            "Standard Workload Format"},
    [TRACE_FROM_TIME] = {.name = "from-time",
                         .kind = OPTION_TEXT,
                         .argument = "TIME",
                         .help =
                             "import: jobs submitted from then on: \"2017-10-07 08:00\", or \"2d\" after the first"},
    [TRACE_WINDOW] = {.name = "window",
                      .kind = OPTION_DURATION,
                      .argument = "TIME",
                      .min = 1,
                      .max = INT64_MAX / 4,
                      .help = "import: ... and for so long, as \"12h\"; default: to the end"},
    [TRACE_GPUS] = {.name = "gpus",
                    .kind = OPTION_TEXT,
                    .argument = "GPUS",
                    .help = "import, synth: the GPUs there will be, as \"4\" or \"4xA100-40GB\": jobs that need more "
                            "are left out"},
    [TRACE_SAMPLE] = {.name = "sample",
                      .kind = OPTION_TEXT,
                      .argument = "X",
                      .help = "import: keep each job with this probability, 0 to 1"},
    [TRACE_JOBS] = {.name = "jobs",
                    .kind = OPTION_INTEGER,
                    .argument = "N",
                    .min = 1,
                    .max = 100000000,
                    .help = "import: the first so many; synth: how many, default: 1000"},
    [TRACE_ARRIVAL_SCALE] = {.name = "arrival-scale",
                             .kind = OPTION_TEXT,
                             .argument = "X",
                             .help = "import: times between submissions become X times as long"},
    [TRACE_PROCESSORS] = {.name = "processors-per-gpu",
                          .kind = OPTION_INTEGER,
                          .argument = "N",
                          .min = 1,
                          .max = 100000,
                          .help = "import, info: of swf, which counts processors; default: 1"},
    [TRACE_KEEP_PARTIAL] = {.name = "keep-partial",
                            .kind = OPTION_FLAG,
                            .help = "import, info: of a log that breaks off, take the jobs before that"},
    [TRACE_LIKE] = {.name = "like",
                    .kind = OPTION_CHOICE,
                    .argument = "CLUSTER",
                    .choices = profiles,
                    .help = "synth: SenseTime's Helios (the default) or Microsoft's Philly"},
    [TRACE_DAYS] = {.name = "days",
                    .kind = OPTION_TEXT,
                    .argument = "D",
                    .help = "synth: over which the jobs arrive; default: 1"},
    [TRACE_SEED] = {.name = "seed",
                    .kind = OPTION_INTEGER,
                    .argument = "N",
                    .max = INT64_MAX,
                    .help = "import, synth: decides all that is left to chance; default: 0"},
    [TRACE_TASKS] = {.name = "tasks",
                     .alias = "catalogue",
                     .kind = OPTION_FILE,
                     .argument = "FILE",
                     .help = "the catalogue of tasks; default: those of data/traces/tasks.txt"},
    [TRACE_TASKS_OUT] = {.name = "tasks-out",
                         .kind = OPTION_FILE,
                         .argument = "FILE",
                         .help = "import, synth: every job is a task of its own, with its own GPUs and length; they "
                                 "are written here"},
    [TRACE_OUTPUT] = {.name = "output",
                      .letter = 'o',
                      .kind = OPTION_FILE,
                      .argument = "FILE",
                      .help = "import, synth: the trace; default: standard output"},
};

/* One run. */
struct making {
    const struct invocation *invocation;
    const char *name;   /* of what was read */
    struct job_log log; /* of info and synth, its jobs alone */
    struct catalogue catalogue;
};

static const struct option_value *value_of(const struct making *making, int option)
{
    return &making->invocation->values[option];
}

static bool wants_json(const struct making *making)
{
    return making->invocation->common[COMMON_JSON].number;
}

static int number_of(const struct making *making, int option, double min, double max, double otherwise,
                     struct fault *fault, double *ret_value)
{
    const char *text = value_of(making, option)->text;
    *ret_value = otherwise;
    if (!text || parse_double(text, min, max, ret_value) == 0)
        return 0;
    return fault_set(fault, EINVAL, "--%s=%.60s: a number from %g to %g is needed", options[option].name, text, min,
                     max);
}

/* "4" or what `simulate --gpus` takes; 0 when nothing is said. */
static int read_gpus(const struct making *making, struct fault *fault, int *ret_gpus)
{
    const char *text = value_of(making, TRACE_GPUS)->text;
    int64_t count;
    struct cluster cluster;
    *ret_gpus = 0;
    if (!text)
        return 0;
    int r = parse_int64(text, 1, CLUSTER_GPUS_MAX, &count);
    if (r == 0)
        *ret_gpus = (int)count;
    if (r == -ERANGE)
        return fault_set(fault, EINVAL, "--gpus=%.60s: there must be 1 to %d", text, CLUSTER_GPUS_MAX);
    if (r != -EINVAL)
        return r;
    struct gpu_kinds *kinds = calloc(1, sizeof *kinds);
    if (!kinds)
        return fault_set(fault, ENOMEM, "out of memory");
    r = gpu_kinds_init(kinds, fault);
    if (r == 0) {
        r = cluster_parse(kinds, text, fault, &cluster);
        *ret_gpus = cluster.n_gpus;
        cluster_fini(&cluster);
    }
    free(kinds);
    return fault_prefix(r < 0 ? fault : NULL, r, "--gpus=%.60s", text);
}

static int read_catalogue(struct making *making, struct fault *fault)
{
    static const struct catalogue_settings settings = {"none", NAN}; /* unknown activity stays unknown */
    return catalogue_read(value_of(making, TRACE_TASKS)->text, &settings, fault, &making->catalogue);
}

/* ---- reading logs ---- */

/* A log that breaks off is a mistake, unless what stands before will do. */
static int break_off(const struct making *making, struct fault *fault)
{
    struct fault where = *fault;
    if (value_of(making, TRACE_KEEP_PARTIAL)->number) {
        complain("%s: what follows is missing", where.text);
        return 0;
    }
    if (making->log.jobs.n)
        fault_set(fault, EBADMSG, "%.400s; --keep-partial takes the %zu jobs before that", where.text,
                  making->log.jobs.n);
    return -EBADMSG;
}

static int read_log(struct making *making, struct fault *fault)
{
    const struct option_value *processors = value_of(making, TRACE_PROCESSORS);
    making->log.processors_per_gpu = processors->set ? (int)processors->number : 1;
    int r = job_log_read(log_format_find(value_of(making, TRACE_FROM)->text), making->name, &making->log, fault);
    if (r == -EBADMSG)
        r = break_off(making, fault);
    if (r == 0 && making->log.tally.left_out[LEFT_OUT_NOT_UNDERSTOOD])
        complain("%s (the first job that is not understood)", making->log.first_mistake.text);
    return r;
}

static bool is_dated(const struct job_list *jobs)
{
    return jobs->jobs[0].submit_us >= 365 * 86400 * SECOND_US; /* otherwise it is counted from the log's begin */
}

/* ---- import ---- */

static int read_from_time(const struct making *making, struct fault *fault, struct selection *selection)
{
    const char *text = value_of(making, TRACE_FROM_TIME)->text;
    if (!text || parse_duration(text, &selection->from_us) == 0)
        return 0;
    selection->from_is_date = civil_time_parse(text, &selection->from_us) == 0;
    return selection->from_is_date ? 0
                                   : fault_set(fault, EINVAL,
                                               "--from-time=%.60s: a date \"2017-10-07 08:00\" is needed, or a time "
                                               "after the first submission, as \"2d\"",
                                               text);
}

static int read_selection(const struct making *making, struct fault *fault, struct selection *ret_selection)
{
    *ret_selection = (struct selection){
        .window_us = value_of(making, TRACE_WINDOW)->number,
        .jobs_max = value_of(making, TRACE_JOBS)->number,
        .seed = (uint64_t)value_of(making, TRACE_SEED)->number,
    };
    int r = read_from_time(making, fault, ret_selection);
    if (r == 0)
        r = read_gpus(making, fault, &ret_selection->gpus_max);
    if (r == 0)
        r = number_of(making, TRACE_SAMPLE, 0, 1, 1, fault, &ret_selection->sample);
    if (r == 0)
        r = number_of(making, TRACE_ARRIVAL_SCALE, 0, 1000, 1, fault, &ret_selection->arrival_scale);
    return r;
}

static int select_jobs(struct making *making, const struct selection *selection, struct fault *fault)
{
    char first[40], last[40];
    struct job_list *jobs = &making->log.jobs;
    if (job_list_sort(jobs) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    if (jobs->n == 0)
        return fault_set(fault, EINVAL, "%s: of %" PRId64 " jobs none has run on a GPU and ended", making->name,
                         making->log.tally.read);
    civil_time_format(jobs->jobs[0].submit_us, first, sizeof first);
    civil_time_format(jobs->jobs[jobs->n - 1].submit_us, last, sizeof last);
    if (jobs_select(jobs, selection, &making->log.tally) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    if (jobs->n == 0)
        return fault_set(fault, EINVAL, "%s: no job is left; they were submitted from %s to %s", making->name, first,
                         last);
    return 0;
}

/* Says which task each job is; *ret_tasks is for the caller to free. */
static int map_jobs(const struct making *making, struct fault *fault, const struct sim_task ***ret_tasks)
{
    const struct job_list *jobs = &making->log.jobs;
    bool own = value_of(making, TRACE_TASKS_OUT)->set;
    struct mapping mapping;
    size_t other = 0;
    *ret_tasks = calloc(jobs->n, sizeof **ret_tasks);
    if (!*ret_tasks || mapping_init(&mapping, &making->catalogue, (uint64_t)value_of(making, TRACE_SEED)->number) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    for (size_t i = 0; i < jobs->n; i++) {
        const struct log_job *job = &jobs->jobs[i];
        const struct sim_task *task = own ? mapping_any(&mapping, job->gpus) : mapping_nearest(&mapping, job);
        (*ret_tasks)[i] = task;
        other += task->gpus != job->gpus;
    }
    mapping_fini(&mapping);
    if (other && !own)
        complain("%zu jobs became tasks with another number of GPUs: the catalogue has none with theirs", other);
    return 0;
}

static int write_trace(struct making *making, struct fault *fault)
{
    const struct sim_task **tasks = NULL;
    const char *output = value_of(making, TRACE_OUTPUT)->text, *tasks_out = value_of(making, TRACE_TASKS_OUT)->text;
    int r = read_catalogue(making, fault);
    if (r == 0)
        r = map_jobs(making, fault, &tasks);
    if (r == 0)
        r = own_trace_write(output ? output : "-", &making->log.jobs, tasks, tasks_out != NULL, fault);
    if (r == 0 && tasks_out)
        r = own_tasks_write(tasks_out, &making->log.jobs, tasks, fault);
    free(tasks);
    return r;
}

static int import(struct making *making, struct fault *fault)
{
    struct selection selection;
    if (!value_of(making, TRACE_FROM)->set)
        return fault_set(fault, EINVAL, "trace import: --from is missing: philly, sacct or swf");
    int r = read_selection(making, fault, &selection);
    if (r == 0)
        r = read_log(making, fault);
    if (r == 0)
        r = select_jobs(making, &selection, fault);
    if (r == 0)
        r = write_trace(making, fault);
    if (r == 0)
        report_kept(making->name, &making->log.tally, &making->log.jobs, wants_json(making));
    return r;
}

/* ---- synth ---- */

static void say_load(const struct synth_request *request, const struct job_list *jobs)
{
    double gpu_s = 0, share = synth_share(request->profile, request->gpus_max);
    for (size_t i = 0; i < jobs->n; i++)
        gpu_s += jobs->jobs[i].gpus * ((double)jobs->jobs[i].length_us / (double)SECOND_US);
    if (!request->gpus_max)
        return;
    if (share < 1 - 1e-9)
        complain("%.1f %% of the jobs of %s need more than %d GPUs: none of these is made", 100 * (1 - share),
                 request->profile->name, request->gpus_max);
    complain("these jobs, each alone on its GPUs, would keep %d GPUs busy for %.1f %% of %g days", request->gpus_max,
             100 * gpu_s / (request->days * 86400 * request->gpus_max), request->days);
}

static int synth(struct making *making, struct fault *fault)
{
    const struct option_value *like = value_of(making, TRACE_LIKE), *jobs = value_of(making, TRACE_JOBS);
    struct synth_request request = {
        .profile = synth_profile_find(like->set ? like->text : "helios"),
        .jobs = jobs->set ? jobs->number : 1000,
        .seed = (uint64_t)value_of(making, TRACE_SEED)->number,
    };
    if (!value_of(making, TRACE_TASKS_OUT)->set)
        return fault_set(fault, EINVAL, "trace synth: --tasks-out=FILE is missing: where to describe the tasks");
    int r = number_of(making, TRACE_DAYS, 1e-3, 36500, 1, fault, &request.days);
    if (r == 0)
        r = read_gpus(making, fault, &request.gpus_max);
    if (r == 0 && synth_make(&request, &making->log.jobs) < 0)
        r = fault_set(fault, ENOMEM, "out of memory");
    if (r == 0)
        r = write_trace(making, fault);
    if (r == 0)
        say_load(&request, &making->log.jobs);
    return r;
}

/* ---- info ---- */

static int read_own(struct making *making, struct fault *fault)
{
    int r = read_catalogue(making, fault);
    return r < 0 ? r : own_trace_read(making->name, &making->catalogue, &making->log.jobs, fault);
}

static int info(struct making *making, struct fault *fault)
{
    struct job_statistics statistics;
    struct job_list *jobs = &making->log.jobs;
    bool is_log = value_of(making, TRACE_FROM)->set;
    int r = is_log ? read_log(making, fault) : read_own(making, fault);
    if (r < 0)
        return r;
    if (jobs->n == 0)
        return fault_set(fault, EINVAL, "%s: no jobs that ran on GPUs", making->name);
    if (job_list_sort(jobs) < 0 || job_statistics_make(jobs, &statistics) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    report_statistics(jobs, &statistics, is_log && is_dated(jobs), wants_json(making));
    if (is_log && !wants_json(making))
        report_kept(making->name, &making->log.tally, jobs, false);
    job_statistics_fini(&statistics);
    return 0;
}

/* ---- the command ---- */

#define BIT(option) (UINT32_C(1) << (option))

static const struct action {
    const char *name;
    bool reads, writes; /* a file; a trace */
    uint32_t options;
    int (*run)(struct making *making, struct fault *fault);
} actions[] = {
    {"import", true, true,
     BIT(TRACE_FROM) | BIT(TRACE_FROM_TIME) | BIT(TRACE_WINDOW) | BIT(TRACE_GPUS) | BIT(TRACE_SAMPLE) |
         BIT(TRACE_JOBS) | BIT(TRACE_ARRIVAL_SCALE) | BIT(TRACE_PROCESSORS) | BIT(TRACE_KEEP_PARTIAL) |
         BIT(TRACE_SEED) | BIT(TRACE_TASKS) | BIT(TRACE_TASKS_OUT) | BIT(TRACE_OUTPUT),
     import},
    {"synth", false, true,
     BIT(TRACE_LIKE) | BIT(TRACE_JOBS) | BIT(TRACE_DAYS) | BIT(TRACE_GPUS) | BIT(TRACE_SEED) | BIT(TRACE_TASKS) |
         BIT(TRACE_TASKS_OUT) | BIT(TRACE_OUTPUT),
     synth},
    {"info", true, false, BIT(TRACE_FROM) | BIT(TRACE_PROCESSORS) | BIT(TRACE_KEEP_PARTIAL) | BIT(TRACE_TASKS), info},
};

static int find_action(const struct invocation *invocation, struct fault *fault, const struct action **ret_action)
{
    const char *name = invocation->operands[0];
    *ret_action = NULL;
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (strcmp(actions[i].name, name) == 0)
            *ret_action = &actions[i];
    if (!*ret_action)
        return fault_set(fault, EINVAL, "trace %.60s: there are import, synth and info", name);
    return 0;
}

static int check_words(const struct invocation *invocation, const struct action *action, struct fault *fault)
{
    for (int i = 0; i < TRACE_OPTIONS; i++)
        if (invocation->values[i].set && !(action->options & BIT(i)))
            return fault_set(fault, EINVAL, "trace %s: takes no --%s; colloc help trace says what does", action->name,
                             options[i].name);
    if (action->reads && invocation->operand_count != 2)
        return fault_set(fault, EINVAL, "trace %s: needs the name of a file; - is standard input", action->name);
    if (!action->reads && invocation->operand_count != 1)
        return fault_set(fault, EINVAL, "trace %s: reads no file", action->name);
    const char *output = invocation->values[TRACE_OUTPUT].text;
    if (action->writes && invocation->common[COMMON_JSON].number && (!output || strcmp(output, "-") == 0))
        return fault_set(fault, EINVAL, "trace %s: --json is for standard output: the trace needs -o FILE",
                         action->name);
    return 0;
}

static int run(const struct invocation *invocation)
{
    const struct action *action;
    struct fault fault = {0};
    struct making making = {.invocation = invocation, .name = invocation->operands[1]};
    int r = find_action(invocation, &fault, &action);
    if (r == 0)
        r = check_words(invocation, action, &fault);
    if (r == 0)
        r = action->run(&making, &fault);
    if (r < 0)
        complain("%s", fault.text);
    catalogue_fini(&making.catalogue);
    job_log_fini(&making.log);
    return r < 0 ? EXIT_USAGE : EXIT_OK;
}

const struct command command_trace = {
    .name = "trace",
    .usage = "import|synth|info [OPTION...] [FILE]",
    .summary = "make traces for simulate from logs of other clusters, or at random; say what a trace is like",
    .description =
        "`import` reads a log (Philly's cluster_job_log, the output of sacct --parsable2, or Standard Workload Format) "
        "and writes a trace for `colloc simulate`. Jobs that never ran, had not ended or had no GPU are left out and "
        "counted on standard error. Each job becomes the task of the catalogue that has as many GPUs and takes most "
        "nearly as long; with --tasks-out it keeps its own GPUs and length, and takes only memory and activity from a "
        "task of the catalogue that has as many GPUs.\n\n"
        "`synth` makes a trace up whose GPUs and lengths are distributed as published of a cluster; docs/trace.md has "
        "the figures.\n\n"
        "`info` says how many jobs a trace (or, with --from, a log) has, how long they take and on how many GPUs.\n\n"
        "For example:\n\n"
        "sacct -aPX -S 2024-01-01 -o JobID,Submit,Elapsed,State,AllocTRES > jobs.txt\n\n"
        "colloc trace import --from=sacct --gpus=4 -o T.csv jobs.txt\n\n"
        "colloc simulate --trace=T.csv --gpus=4xA100-40GB",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_FILE,
    .min_operands = 1,
    .max_operands = 2,
    .run = run,
};
