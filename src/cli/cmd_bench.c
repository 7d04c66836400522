/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc bench`: runs a table of groups of trainings that share a GPU and measures them (src/bench
 * does the work).
 *
 * Each group is run --repeat times: its trainings at the same time on one GPU, which is sampled
 * meanwhile. The measurements are appended to a journal in the folder of the results, so a bench
 * that runs all night can be interrupted: the same command continues it, and does not repeat
 * complete groups.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "bench/bench.h"
#include "bench/bench_summary.h"
#include "bench/conda_environment.h"
#include "bench/radt_status.h"
#include "bench/radt_sweep.h"
#include "cli/bench_check.h"
#include "cli/bench_pipelines.h"
#include "cli/bench_runs.h"
#include "cli/bench_submit.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/python.h"
#include "cli/session.h"
#include "cli/support.h"

enum {
    BENCH_OUTPUT,
    BENCH_REPEAT,
    BENCH_EPOCHS,
    BENCH_STEPS,
    BENCH_INTERVAL,
    BENCH_LIMIT,
    BENCH_GPU,
    BENCH_DAEMON,
    BENCH_PYTHON,
    BENCH_WORKLOADS,
    BENCH_BASE,
    BENCH_CONDA,
    BENCH_MLFLOW,
    BENCH_DROP_CACHES,
    BENCH_RETRY_FAILED,
    BENCH_DRY_RUN,
    BENCH_NO_REPORT,
    BENCH_SHARING, /* from here on: of pipelines only */
    BENCH_REQUESTS,
    BENCH_RATE,
    BENCH_MATRIX,
    BENCH_PRETEND
};

static const struct option_spec options[] = {
    [BENCH_OUTPUT] = {.name = "output",
        .letter = 'o',
        .kind = OPTION_FILE,
        .argument = "FOLDER",
        .help = "folder of the results; a bench that was interrupted continues from it; "
                "default: bench-results"},
    [BENCH_REPEAT] = {.name = "repeat",
        .letter = 'r',
        .kind = OPTION_INTEGER,
        .argument = "N",
        .min = 1,
        .max = 1000,
        .help = "number of repetitions of every group; default: 1"},
    [BENCH_EPOCHS] = {.name = "epochs",
        .kind = OPTION_INTEGER,
        .argument = "N",
        .min = 1,
        .max = 64,
        .help = "epochs of each training without a column epochs; the first one is not "
                "measured; default: 2"},
    [BENCH_STEPS] = {.name = "steps",
        .kind = OPTION_INTEGER,
        .argument = "N",
        .min = 1,
        .max = 10000000,
        .help = "steps of each epoch without a column steps; default: 200"},
    [BENCH_INTERVAL] = {.name = "interval",
        .letter = 'i',
        .kind = OPTION_DURATION,
        .argument = "TIME",
        .min = 10 * MS_US,
        .max = HOUR_US,
        .help = "interval between two samples of the GPU; default: 500ms"},
    [BENCH_LIMIT] = {.name = "limit",
        .kind = OPTION_DURATION,
        .argument = "TIME",
        .min = SECOND_US,
        .max = 365 * DAY_US,
        .help = "time limit of a group; a group that takes longer is ended and skipped; "
                "default: 2h"},
    [BENCH_GPU] = {.name = "gpu",
        .kind = OPTION_TEXT,
        .argument = "INDEX",
        .help = "run all groups on this GPU, instead of the table's column gpu"},
    [BENCH_DAEMON] = {.name = "daemon",
        .kind = OPTION_FLAG,
        .help = "submit the trainings to collocd, which places them; default: start them "
                "directly"},
    [BENCH_PYTHON] = {.name = "python",
        .kind = OPTION_TEXT,
        .argument = "PROGRAM",
        .help = "Python interpreter that runs the trainings; default: python3"},
    [BENCH_WORKLOADS] = {.name = "workloads",
        .kind = OPTION_FILE,
        .argument = "FOLDER",
        .help = "folder of train.py; default: the one installed with colloc"},
    [BENCH_BASE] = {.name = "base",
        .kind = OPTION_FILE,
        .argument = "FOLDER",
        .help = "folder of the files that a radT table names; each runs in the folder where "
                "it is; default: the current folder, and colloc's trainings in place of files "
                "that are not there"},
    [BENCH_CONDA] = {.name = "conda",
        .kind = OPTION_FLAG,
        .help = "run each script of a radT table in the conda environment that the conda.yaml "
                "beside it names; the environment must exist"},
    [BENCH_MLFLOW] = {.name = "mlflow",
        .kind = OPTION_FLAG,
        .help = "create a run of MLflow for each training, with parameters and metrics; needs "
                "MLFLOW_TRACKING_URI in the environment"},
    [BENCH_DROP_CACHES] = {.name = "drop-caches",
        .kind = OPTION_FLAG,
        .help = "drop the kernel's caches of files before each group, so that each reads its data "
                "from the disk; needs root"},
    [BENCH_RETRY_FAILED] = {.name = "retry-failed",
        .kind = OPTION_FLAG,
        .help = "also repeat groups in which a training ran out of GPU memory; default: that "
                "counts as a result"},
    [BENCH_DRY_RUN] = {.name = "dry-run",
        .kind = OPTION_FLAG,
        .help = "print the groups and their commands, run nothing"},
    [BENCH_NO_REPORT] = {.name = "no-report",
        .kind = OPTION_FLAG,
        .help = "do not write the report (report/index.html)"},
    [BENCH_SHARING] = {.name = "sharing",
        .kind = OPTION_TEXT,
        .argument = "LIST",
        .help = "of pipelines: comma-separated: apart (one after the other), streams, mps, or MIG "
                "profiles such as 1g.18gb or 1c.3g.71gb; default: apart,streams,mps"},
    [BENCH_REQUESTS] = {.name = "requests",
        .kind = OPTION_INTEGER,
        .argument = "N",
        .min = 1,
        .max = 10000000,
        .help = "of pipelines: requests of each, instead of those of its file"},
    [BENCH_RATE] = {.name = "rate",
        .kind = OPTION_INTEGER,
        .argument = "N",
        .min = 1,
        .max = 1000000,
        .help =
            "of pipelines: arrivals per second of each that has a rate, instead of that of its file"},
    [BENCH_MATRIX] = {.name = "matrix",
        .kind = OPTION_DURATION,
        .argument = "TIME",
        .min = 10 * MS_US,
        .max = HOUR_US,
        .help = "of pipelines: also measure how much each stage on the GPU slows each other one "
                "down, every pair for this time; default: no"},
    [BENCH_PRETEND] = {.name = "pretend",
        .kind = OPTION_FLAG,
        .help = "of pipelines: run stages that only take time in place of their programs"},
};

/* The data that the callbacks of a bench share. */
struct bench_context {
    struct client *client;
    struct radt_table table; /* path NULL: no Status is written */
    const char *runs_folder; /* of the results; NULL: no runs of MLflow */
};

static int submit_task(
    void *context, const struct bench_group *group, int i, struct fault *fault, int64_t *ret_id)
{
    return bench_submit(((struct bench_context *)context)->client, group, i, fault, ret_id);
}

/* ---- reports ---- */

static void on_begin(void *context, const struct bench_progress *progress)
{
    const struct bench_context *bench = context;
    fprintf(stderr, "[%zu/%zu] %s", progress->done + 1, progress->all, progress->group->name);
    if (progress->repeats > 1)
        fprintf(stderr, ", %d of %d", progress->repeat, progress->repeats);
    fputs(" ... ", stderr);
    fflush(stderr);
    if (bench->runs_folder && !progress->skip)
        bench_runs_create(bench->runs_folder, progress);
}

static void on_stop(void *context, const struct bench_progress *progress)
{
    const struct bench_context *bench = context;
    if (bench->runs_folder)
        bench_runs_end(bench->runs_folder, progress, true);
}

/* A table that cannot be written is left alone from then on; the results are in the folder. */
static void write_status(struct radt_table *table, const struct bench_progress *progress)
{
    struct fault fault = {0};
    if (!table->path || !progress->results ||
        radt_table_write(table, progress->group, progress->number, progress->repeat,
            progress->results, progress->run_ids, &fault) == 0)
        return;
    print_error("the table's Status is not written any more: %s", fault.text);
    radt_table_fini(table);
}

/* After each group: how long it took, how many of its trainings failed, and the time that is
 * expected for the groups still to come. */
static void on_end(void *context, const struct bench_progress *progress)
{
    const struct bench_context *bench = context;
    char left[32];
    if (bench->runs_folder)
        bench_runs_end(bench->runs_folder, progress, progress->skip != NULL);
    if (progress->skip) {
        fprintf(stderr, "skipped: %s\n", progress->skip);
        return;
    }
    fprintf(stderr, "%.1f s", progress->total_s);
    if (progress->failed)
        fprintf(stderr, ", %d of %d failed (%s)%s", progress->failed, progress->group->n_tasks,
            progress->failure, progress->has_result ? "" : ": not done");
    if (progress->left_s.valid && progress->left_s.value >= 1)
        fprintf(stderr, "; %s left",
            format_elapsed((int64_t)(progress->left_s.value * 1e6), left, sizeof left));
    fputc('\n', stderr);
    write_status(&((struct bench_context *)context)->table, progress);
}

/* Prints only the properties of a training that differ from its group, whose line is above it. */
static void print_task(const struct bench_group *group, const struct bench_task *task)
{
    const char *profiler = profiler_program(task->profiler);
    fputs("   ", stdout);
    if (strchr(group->sharing, '/'))
        printf(" (%s)", bench_sharing_name(task));
    if (*task->gpus && strcmp(task->gpus, group->gpu) != 0)
        printf(" (GPU %s)", task->gpus);
    if (task->threads != BENCH_THREADS_ALL)
        printf(" (%d %% of the SMs)", task->threads);
    if (profiler)
        printf(" (%s)", profiler);
    for (char **word = task->argv; *word; word++)
        printf(" %s", *word);
    putchar('\n');
}

static void print_groups(const struct experiment *experiment)
{
    for (size_t i = 0; i < experiment->n_groups; i++) {
        const struct bench_group *group = &experiment->groups[i];
        printf("%zu %s, GPU %s%s\n", i + 1, group->name, group->gpu,
            group->is_finished ? ": FINISHED" : "");
        for (int n = 0; n < group->n_tasks; n++)
            print_task(group, &group->tasks[n]);
    }
}

/* ---- the command ---- */

/* The options are the defaults of columns that the table lacks. */
static int read_experiment(const struct invocation *invocation, struct experiment *ret_experiment)
{
    char workloads[PATH_MAX];
    struct fault fault = {0};
    const char *given = option_text_or(&invocation->values[BENCH_WORKLOADS], NULL);
    if (!given && support_find("workloads", workloads, sizeof workloads) < 0) {
        print_error("cannot find colloc's trainings where they were installed: give their "
                    "folder with --workloads");
        return EXIT_REFUSED;
    }
    if (invocation->values[BENCH_CONDA].number && !conda_find()) {
        print_error("--conda: none of conda, mamba and micromamba is on PATH");
        return EXIT_REFUSED;
    }
    char current[PATH_MAX], python[2 * PATH_MAX];
    const struct experiment_defaults defaults = {
        .python = python,
        .current = getcwd(current, sizeof current),
        .workloads = given ? given : workloads,
        .base = option_text_or(&invocation->values[BENCH_BASE], NULL),
        .conda = invocation->values[BENCH_CONDA].number ? conda_find() : NULL,
        .gpu = option_text_or(&invocation->values[BENCH_GPU], NULL),
        .epochs = (int)option_number_or(&invocation->values[BENCH_EPOCHS], 2),
        .steps = (int)option_number_or(&invocation->values[BENCH_STEPS], 200),
    };
    /* A script runs in its own folder, where a relative path of the interpreter would not be. */
    const char *named = option_text_or(&invocation->values[BENCH_PYTHON], "python3");
    bool is_relative = defaults.current && strchr(named, '/') && *named != '/';
    snprintf(
        python, sizeof python, "%s%s%s", is_relative ? current : "", is_relative ? "/" : "", named);
    int r = experiment_read(invocation->operands[0], &defaults, &fault, ret_experiment);
    if (r < 0)
        print_error("%s", fault.text);
    return r < 0 ? EXIT_USAGE : EXIT_OK;
}

/* Prints the next step for the user; without a message everything was measured. */
static int report_end(int r, const struct fault *fault, const char *folder)
{
    if (r < 0)
        print_error("%s", fault->text);
    else if (r == BENCH_INTERRUPTED)
        print_error("interrupted; the results so far are in %s, and the same command continues "
                    "from there",
            folder);
    else if (r == BENCH_INCOMPLETE)
        print_error("some groups were skipped (see above); the other results are in %s", folder);
    else if (r == BENCH_FAILED)
        print_error("trainings failed: their output is in %s/logs; the same command repeats "
                    "their groups",
            folder);
    return r == 0 ? EXIT_OK : EXIT_REFUSED;
}

/* Prints the rows that are not run, and why the Status of a radT table will not be written. */
static void open_table(const struct invocation *invocation, const struct experiment *experiment,
    const struct journal *journal, struct radt_table *ret_table)
{
    struct fault fault = {0};
    size_t finished = 0;
    for (size_t i = 0; i < experiment->n_groups; i++)
        finished += experiment->groups[i].is_finished &&
                    !journal_has(journal, &experiment->groups[i], 1);
    if (finished)
        fprintf(stderr,
            "%zu of %zu workloads are FINISHED by their Status: empty it to run them again\n",
            finished, experiment->n_groups);
    if (experiment->is_radt && !radt_sweep_is(invocation->operands[0]) &&
        radt_table_open(invocation->operands[0], &fault, ret_table) < 0) {
        fprintf(stderr, "the table's Status will not be written: %s\n", fault.text);
        radt_table_fini(ret_table);
    }
}

/* The work is in src/bench; here it gets the values of the options, and what to call meanwhile. */
static int run_groups(const struct invocation *invocation, const struct experiment *experiment,
    struct journal *journal, struct bench_context *context, struct fault *fault)
{
    const struct bench_settings settings = {
        .experiment = experiment,
        .repeats = (int)option_number_or(&invocation->values[BENCH_REPEAT], 1),
        .period_us = option_number_or(&invocation->values[BENCH_INTERVAL], SECOND_US / 2),
        .limit_us = option_number_or(&invocation->values[BENCH_LIMIT], 2 * HOUR_US),
        .python = option_text_or(&invocation->values[BENCH_PYTHON], "python3"),
        .client = context->client,
        .submit = submit_task,
        .on_begin = on_begin,
        .on_end = on_end,
        .on_stop = on_stop,
        .drop_caches = invocation->values[BENCH_DROP_CACHES].number,
        .context = context,
    };
    return bench_run(&settings, journal, fault);
}

/* Every bench writes summary.csv, also without a result; the report needs one. */
static int write_results(
    const struct invocation *invocation, const struct journal *journal, const char *folder)
{
    struct fault fault = {0};
    if (bench_summary_write(folder, &fault) < 0) {
        print_error("%s", fault.text);
        return EXIT_REFUSED;
    }
    if (journal->n_done > 0 && !invocation->values[BENCH_NO_REPORT].number)
        python_report(
            option_text_or(&invocation->values[BENCH_PYTHON], NULL), "colloc_report.bench", folder);
    return EXIT_OK;
}

/* Options that need something of the machine. */
static int check_options(const struct invocation *invocation)
{
    struct fault fault = {0};
    int r = invocation->values[BENCH_DROP_CACHES].number ? bench_can_drop_caches(&fault) : 0;
    if (r == 0 && invocation->values[BENCH_MLFLOW].number &&
        invocation->values[BENCH_DAEMON].number)
        r = fault_set(&fault, EINVAL, "--mlflow is not supported with --daemon");
    if (r == 0 && invocation->values[BENCH_MLFLOW].number && (r = bench_runs_check(&fault)) < 0)
        fault_prefix(&fault, r, "--mlflow");
    if (r < 0)
        print_error("%s", fault.text);
    return r < 0 ? EXIT_REFUSED : EXIT_OK;
}

/*
 * In this order, since each step may refuse:
 *
 *   1. the journal of earlier runs in the folder is opened; with --retry-failed, failed groups are
 *      dropped from it;
 *   2. what all groups need is checked once (bench_check.c);
 *   3. the groups are run;
 *   4. summary.csv and the report are written, also after an interruption or an error.
 */
static int measure_groups(const struct invocation *invocation, const struct experiment *experiment)
{
    const char *folder = option_text_or(&invocation->values[BENCH_OUTPUT], "bench-results");
    bool by_daemon = invocation->values[BENCH_DAEMON].number;
    struct fault fault = {0};
    struct journal journal = {0};
    struct bench_context context = {0};
    int code = check_options(invocation);
    if (code == EXIT_OK && by_daemon)
        code = session_open(invocation, &context.client);
    if (code != EXIT_OK)
        return code;
    int r = invocation->values[BENCH_RETRY_FAILED].number ? journal_drop_failed(folder, &fault) : 0;
    if (r == 0)
        r = journal_open(&journal, folder, &fault);
    bool has_journal = r == 0;
    if (r == 0 &&
        !bench_can_run(experiment, option_text_or(&invocation->values[BENCH_PYTHON], "python3"),
            invocation->values[BENCH_WORKLOADS].set, by_daemon))
        code = EXIT_REFUSED;
    else if (r == 0) {
        open_table(invocation, experiment, &journal, &context.table);
        context.runs_folder = invocation->values[BENCH_MLFLOW].number ? journal.folder : NULL;
        r = run_groups(invocation, experiment, &journal, &context, &fault);
        radt_table_fini(&context.table);
    }
    if (code == EXIT_OK)
        code = report_end(r, &fault, folder);
    if (has_journal && write_results(invocation, &journal, folder) != EXIT_OK)
        code = EXIT_REFUSED;
    journal_fini(&journal);
    client_close(context.client);
    return code;
}

/* Refuses an option that has no effect here. */
static bool has_none_of(
    const struct invocation *invocation, const int *others, size_t n, const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (invocation->values[others[i]].set) {
            print_error("bench: --%s has no effect on %s", options[others[i]].name, what);
            return false;
        }
    return true;
}

static int run_pipelines(const struct invocation *invocation)
{
    static const int others[] = {BENCH_EPOCHS, BENCH_STEPS, BENCH_INTERVAL, BENCH_DAEMON,
        BENCH_WORKLOADS, BENCH_BASE, BENCH_CONDA, BENCH_MLFLOW, BENCH_DROP_CACHES,
        BENCH_RETRY_FAILED, BENCH_DRY_RUN};
    if (!has_none_of(invocation, others, ARRAY_SIZE(others), "pipelines"))
        return EXIT_USAGE;
    const struct pipeline_bench bench = {
        .output = option_text_or(&invocation->values[BENCH_OUTPUT], NULL),
        .sharing = option_text_or(&invocation->values[BENCH_SHARING], NULL),
        .gpu = option_text_or(&invocation->values[BENCH_GPU], NULL),
        .python = option_text_or(&invocation->values[BENCH_PYTHON], NULL),
        .repeats = option_number_or(&invocation->values[BENCH_REPEAT], 0),
        .requests = option_number_or(&invocation->values[BENCH_REQUESTS], 0),
        .rate = option_number_or(&invocation->values[BENCH_RATE], 0),
        .matrix_us = option_number_or(&invocation->values[BENCH_MATRIX], 0),
        .limit_us = option_number_or(&invocation->values[BENCH_LIMIT], 0),
        .pretend = invocation->values[BENCH_PRETEND].number,
        .has_report = !invocation->values[BENCH_NO_REPORT].number,
        .files = (const char *const *)invocation->operands,
        .n_files = invocation->operand_count,
    };
    return bench_run_pipelines(&bench);
}

/* Are all files pipelines, or is there one table? */
static int check_operands(const struct invocation *invocation, bool *ret_are_pipelines)
{
    static const int of_pipelines[] = {
        BENCH_SHARING, BENCH_REQUESTS, BENCH_RATE, BENCH_MATRIX, BENCH_PRETEND};
    size_t n = 0, count = (size_t)invocation->operand_count;
    for (size_t i = 0; i < count; i++)
        n += bench_is_pipeline(invocation->operands[i]);
    *ret_are_pipelines = n > 0;
    for (size_t i = 0; i < count; i++)
        if (count > 1 && !bench_is_pipeline(invocation->operands[i])) {
            print_error("bench: %s: one table, or pipelines (NAME.json)", invocation->operands[i]);
            return EXIT_USAGE;
        }
    bool is_fine = n > 0 ||
                   has_none_of(invocation, of_pipelines, ARRAY_SIZE(of_pipelines), "a table");
    return is_fine ? EXIT_OK : EXIT_USAGE;
}

static int run(const struct invocation *invocation)
{
    struct experiment experiment;
    bool are_pipelines;
    if (check_operands(invocation, &are_pipelines) != EXIT_OK)
        return EXIT_USAGE;
    if (invocation->common[COMMON_JSON].number) {
        print_error("bench: --json is not supported: the results are CSV files");
        return EXIT_USAGE;
    }
    if (are_pipelines)
        return run_pipelines(invocation);
    int code = read_experiment(invocation, &experiment);
    if (code != EXIT_OK)
        return code;
    if (invocation->values[BENCH_DRY_RUN].number)
        print_groups(&experiment);
    else
        code = measure_groups(invocation, &experiment);
    experiment_fini(&experiment);
    return code;
}

const struct command command_bench = {
    .name = "bench",
    .usage = "[OPTION...] TABLE | PIPELINE.json...",
    .summary = "measure what sharing a GPU does to trainings",
    .description = "TABLE is a CSV file with one line for each group of trainings that share a "
                   "GPU, such as `resnet26*4,mps` under the column names `mix,sharing`. sharing "
                   "is serial (one after the other), streams, mps or a MIG profile. mix lists "
                   "the trainings: `small:400+medium:150*2` is one small training with epochs "
                   "of 400 steps and two medium ones with epochs of 150. Further columns: gpu, "
                   "epochs, steps, batch, threads (per cent of the SMs for each MPS client). "
                   "sharing may also be one for each training, such as `4g.40gb/1g.10gb`. radT's "
                   "tables of experiments are accepted too; Status and Run are written back.\n\n"
                   "Each group runs alone on the GPU, which is sampled during the run; the "
                   "first epoch is not measured. The results are CSV files in a folder, such as "
                   "summary.csv, and a report, report/index.html, if Python has matplotlib. An "
                   "interrupted bench continues where it stopped. A group is done when all its "
                   "trainings completed or ran out of GPU memory; the next bench repeats a "
                   "group in which a training failed for another reason. The exit status is 1 "
                   "when groups were skipped or are not done.\n\n"
                   "PIPELINE.json describes a program of several stages (docs/pipelines.md). One "
                   "or several are run one after the other, and at the same time by each way of "
                   "--sharing; the results are pipelines.csv, stages.csv and a report.",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_FILE,
    .min_operands = 1,
    .max_operands = -1,
    .common_without = WITHOUT_JSON,
    .run = run,
};
