/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc trace`: imports, generates and describes traces for the simulator, and exports the
 * daemon's records.
 *
 *     import   a log of another cluster -> a trace (and a catalogue of its tasks)
 *     synth    random jobs like those of a published cluster -> a trace
 *     info     lengths, sizes and arrivals of a trace or log
 *     export   what collocd recorded -> Chrome's trace format, for Perfetto
 *
 * The actions share one table of options. A second table says which action takes which of them, and
 * an option that has no effect on the action is refused.
 */
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "cli/print.h"
#include "cli/trace_format.h"
#include "cli/trace_run.h"

static const char *const profiles[] = {"helios", "philly", NULL};

const struct option_spec trace_options[TRACE_OPTIONS] = {
    [TRACE_FROM] = OPTION("from", CHOICE, "LOG", .choices = trace_formats,
        .help = "import, info: format of FILE: philly (its cluster_job_log), helios (its "
                "cluster_log.csv), acme (trace_seren.csv, trace_kalos.csv), alibaba (its "
                "pai_task_table.csv of 2020), alibaba-2023, alibaba-2025, alibaba-2026, "
                "alibaba-spot (docs/trace.md), sacct (output of sacct --parsable2) or swf "
                "(Standard Workload Format); default: as its first line shows"),
    [TRACE_JOB_TABLE] = OPTION("job-table", FILE, "FILE",
        .help = "import, info: second table of an alibaba log: of 2020 its pai_job_table.csv, for "
                "users and times of submission; of 2026 its asi_opensource_job_execution_summary, "
                "for lengths and delays; default: a job is submitted when its first task starts"),
    [TRACE_WHERE] = OPTION("where", TEXT, "COLUMN=VALUE",
        .help = "import, info: only rows of a table with this value, such as job_type=Spot or "
                "Partition=gpu"),
    [TRACE_FROM_TIME] = OPTION("from-time", TEXT, "TIME",
        .help = "import: only jobs submitted at this time or later: \"2017-10-07 "
                "08:00\", or \"2d\" after the first job"),
    [TRACE_WINDOW] = OPTION("window", DURATION, "TIME", .min = 1, .max = INT64_MAX / 4,
        .help = "import: only jobs submitted within this period after --from-time, such as "
                "12h; default: to the end"),
    [TRACE_GPUS] = OPTION("gpus", TEXT, "GPUS",
        .help = "import, synth: GPUs of the simulation, such as 4 or 4xA100-40GB; jobs "
                "that need more are skipped"),
    [TRACE_SAMPLE] = OPTION(
        "sample", TEXT, "X", .help = "import: keep each job with this probability, 0 to 1"),
    [TRACE_JOBS] = OPTION("jobs", INTEGER, "N", .min = 1, .max = 100000000,
        .help = "import: largest number of jobs, the first ones; default: all; synth: number "
                "of jobs; default: 1000"),
    [TRACE_ARRIVAL_SCALE] = OPTION("arrival-scale", TEXT, "X",
        .help = "import: multiply the times between submissions by X; default: 1"),
    [TRACE_PROCESSORS] = OPTION("processors-per-gpu", INTEGER, "N", .min = 1, .max = 100000,
        .help = "import, info: GPUs for each processor of an swf log, which has no GPUs; "
                "default: 1"),
    [TRACE_KEEP_PARTIAL] = FLAG_OPTION("keep-partial",
        .help = "import, info: of an incomplete log, use the jobs before the first error"),
    [TRACE_LIKE] = OPTION("like", CHOICE, "CLUSTER", .choices = profiles,
        .help = "synth: cluster whose published distributions are used: helios (SenseTime) "
                "or philly (Microsoft); default: helios"),
    [TRACE_DAYS] = OPTION(
        "days", TEXT, "D", .help = "synth: number of days over which the jobs arrive; default: 1"),
    [TRACE_SEED] = OPTION("seed", INTEGER, "N", .max = INT64_MAX,
        .help = "import, synth: seed of the random numbers; default: 0"),
    [TRACE_TASKS] = OPTION("tasks", FILE, "FILE", .alias = "catalogue",
        .help = "catalogue of tasks; default: data/traces/tasks.txt, which is built in"),
    [TRACE_TASKS_OUT] = OPTION("tasks-out", FILE, "FILE",
        .help = "import, synth: make each job its own task, with its own GPUs and run time, "
                "and write their catalogue to this file"),
    [TRACE_GPU_MEMORY] = OPTION("gpu-memory", SIZE, "SIZE", .min = (int64_t)1 << 20,
        .max = (int64_t)1 << 50, .needs_unit = true, .default_text = "40GiB",
        .help = "import: with --tasks-out, memory of the GPUs whose shards (gres/shard) the jobs "
                "had: 57 of 80 shards become 57/80 of it; default: {default}"),
    [TRACE_SINCE] = OPTION("since", TEXT, "WHEN",
        .help = "export: from this time on: a date (2026-11-20, \"2026-11-20 16:00\"), a time of "
                "today (16:00), or a time before now (2h, 7d); default: 24h"),
    [TRACE_UNTIL] = OPTION(
        "until", TEXT, "WHEN", .help = "export: until this time (as for --since); default: now"),
    [TRACE_OUTPUT] = OPTION("output", FILE, "FILE", .letter = 'o',
        .help = "import, synth, export: file for the trace; default: standard output"),
};

#define BIT(option) (UINT32_C(1) << (option))

static const struct action {
    const char *name;
    bool reads, writes; /* it reads a file; it writes a trace */
    uint32_t options;
    int (*run)(const struct trace_run *run, struct fault *fault);
} actions[] = {
    {"import", true, true,
        BIT(TRACE_FROM) | BIT(TRACE_FROM_TIME) | BIT(TRACE_WINDOW) | BIT(TRACE_GPUS) |
            BIT(TRACE_SAMPLE) | BIT(TRACE_JOBS) | BIT(TRACE_ARRIVAL_SCALE) | BIT(TRACE_PROCESSORS) |
            BIT(TRACE_JOB_TABLE) | BIT(TRACE_WHERE) | BIT(TRACE_KEEP_PARTIAL) | BIT(TRACE_SEED) |
            BIT(TRACE_TASKS) | BIT(TRACE_TASKS_OUT) | BIT(TRACE_GPU_MEMORY) | BIT(TRACE_OUTPUT),
        trace_import},
    {"synth", false, true,
        BIT(TRACE_LIKE) | BIT(TRACE_JOBS) | BIT(TRACE_DAYS) | BIT(TRACE_GPUS) | BIT(TRACE_SEED) |
            BIT(TRACE_TASKS) | BIT(TRACE_TASKS_OUT) | BIT(TRACE_OUTPUT),
        trace_synth},
    {"info", true, false,
        BIT(TRACE_FROM) | BIT(TRACE_PROCESSORS) | BIT(TRACE_JOB_TABLE) | BIT(TRACE_KEEP_PARTIAL) |
            BIT(TRACE_WHERE) | BIT(TRACE_TASKS),
        trace_info},
    {"export", false, true, BIT(TRACE_SINCE) | BIT(TRACE_UNTIL) | BIT(TRACE_OUTPUT), trace_export},
};

static int find_action(
    const struct invocation *invocation, struct fault *fault, const struct action **ret_action)
{
    const char *name = invocation->operands[0];
    *ret_action = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
        if (strcmp(actions[i].name, name) == 0)
            *ret_action = &actions[i];
    if (!*ret_action)
        return fault_set(
            fault, EINVAL, "trace: unknown action %.60s: give import, synth, info or export", name);
    return 0;
}

/* The actions share one table of options. An option that an action does not take is refused, not
 * ignored. */
static int check_words(
    const struct invocation *invocation, const struct action *action, struct fault *fault)
{
    for (int i = 0; i < TRACE_OPTIONS; i++)
        if (invocation->values[i].set && !(action->options & BIT(i)))
            return fault_set(fault, EINVAL,
                "trace %s: --%s is not an option of this action (see `colloc help "
                "trace`)",
                action->name, trace_options[i].name);
    if (invocation->common[COMMON_SOCKET].set && action->run != trace_export)
        return fault_set(
            fault, EINVAL, "trace %s: --socket: this action asks no daemon", action->name);
    if (action->reads && invocation->operand_count != 2)
        return fault_set(fault, EINVAL,
            "trace %s: no file given: give its name, or - for standard input", action->name);
    if (!action->reads && invocation->operand_count != 1)
        return fault_set(
            fault, EINVAL, "trace %s: unexpected file: this action reads none", action->name);
    const char *output = invocation->values[TRACE_OUTPUT].text;
    if (action->writes && invocation->common[COMMON_JSON].number &&
        (!output || strcmp(output, "-") == 0))
        return fault_set(fault, EINVAL,
            "trace %s: --json prints its report on standard output: give a file for "
            "the trace with -o",
            action->name);
    return 0;
}

static int run(const struct invocation *invocation)
{
    const struct action *action;
    struct fault fault = {0};
    const struct trace_run trace = {.invocation = invocation, .name = invocation->operands[1]};
    int r = find_action(invocation, &fault, &action);
    if (r == 0)
        r = check_words(invocation, action, &fault);
    if (r == 0)
        r = action->run(&trace, &fault);
    if (r < 0)
        print_error("%s", fault.text);
    return r < 0 ? EXIT_USAGE : r;
}

const struct command command_trace = {
    .name = "trace",
    .usage = "import|synth|info|export [OPTION...] [FILE]",
    .summary = "import, generate, describe and export traces of tasks",
    .description =
        "`import` reads a log (of Philly, Helios, Acme, four clusters of Alibaba, the "
        "output of sacct --parsable2, or Standard Workload Format; docs/trace.md has "
        "their files) and writes a trace for `colloc simulate`. Jobs that never ran, had not ended or had no GPU are skipped and "
        "counted on standard error. Each job becomes the task of the catalogue with "
        "the same number of GPUs and the nearest run time. With --tasks-out it keeps "
        "its own GPUs and run time, and memory and activity that the log measured; what it "
        "did not comes from a task of the catalogue with the same number of GPUs.\n\n"
        "`synth` generates a trace with the published distributions of GPUs and run "
        "times of a cluster, and the catalogue of its tasks (--tasks-out is "
        "required); docs/trace.md has the figures.\n\n"
        "`info` prints how many jobs a trace or a log has, their run "
        "times and numbers of GPUs.\n\n"
        "`export` writes what the daemon recorded as Chrome trace JSON, which "
        "https://ui.perfetto.dev and chrome://tracing open: a process for each GPU with "
        "its memory, SM activity and power, a thread for each task with its attempts, "
        "suspensions and moves, and the queue.\n\n"
        "For example:\n\n"
        "sacct -aPX -S 2024-01-01 -o JobID,Submit,Elapsed,State,AllocTRES > "
        "jobs.txt\n\n"
        "colloc trace import --from=sacct --gpus=4 -o T.csv jobs.txt\n\n"
        "colloc simulate --trace=T.csv --gpus=4xA100-40GB\n\n"
        "colloc trace export --since=2h -o night.json",
    COMMAND_OPTIONS(trace_options),
    .operand = OPERAND_FILE,
    .actions = (const char *const[]){"import", "synth", "info", "export", NULL},
    .min_operands = 1,
    .max_operands = 2,
    .run = run,
};
