/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc bench`: runs a table of groups of trainings that share a GPU and measures them, or
 * pipelines. A Python program does the work, python/colloc_bench or python/colloc_pipeline: it
 * mostly waits for other Python programs. Here its options are checked, and it gets what only the C
 * programs know of the machine.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/bench_machine.h"
#include "cli/bench_pipelines.h"
#include "cli/bench_words.h"
#include "cli/command.h"
#include "cli/print.h"
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
    [BENCH_OUTPUT] = OPTION("output", FILE, "FOLDER", .letter = 'o',
        .help = "folder of the results; a bench that was interrupted continues from it; "
                "default: bench-results"),
    [BENCH_REPEAT] = OPTION("repeat", INTEGER, "N", .letter = 'r', .min = 1, .max = 1000,
        .help = "number of repetitions of every group; default: 1"),
    [BENCH_EPOCHS] = OPTION("epochs", INTEGER, "N", .min = 1, .max = 64,
        .help = "epochs of each training without a column epochs; the first one is not "
                "measured; default: 2"),
    [BENCH_STEPS] = OPTION("steps", INTEGER, "N", .min = 1, .max = 10000000,
        .help = "steps of each epoch without a column steps; default: 200"),
    [BENCH_INTERVAL] = OPTION("interval", DURATION, "TIME", .letter = 'i', .min = 10 * MS_US,
        .max = HOUR_US, .help = "interval between two samples of the GPU; default: 500ms"),
    [BENCH_LIMIT] = OPTION("limit", DURATION, "TIME", .min = SECOND_US, .max = 365 * DAY_US,
        .help = "time limit of a group; a group that takes longer is ended and skipped; "
                "default: 2h"),
    [BENCH_GPU] = OPTION("gpu", TEXT, "INDEX",
        .help = "run all groups on this GPU, instead of the table's column gpu"),
    [BENCH_DAEMON] = FLAG_OPTION(
        "daemon", .help = "submit the trainings to collocd, which places them; default: start them "
                          "directly"),
    [BENCH_PYTHON] = OPTION("python", TEXT, "PROGRAM",
        .help = "Python interpreter that runs the trainings; default: python3"),
    [BENCH_WORKLOADS] = OPTION("workloads", FILE, "FOLDER",
        .help = "folder of train.py; default: the one installed with colloc"),
    [BENCH_BASE] = OPTION("base", FILE, "FOLDER",
        .help = "folder of the files that a radT table names; each runs in the folder where "
                "it is; default: the current folder, and colloc's trainings in place of files "
                "that are not there"),
    [BENCH_CONDA] = FLAG_OPTION("conda",
        .help = "run each script of a radT table in the conda environment that the conda.yaml "
                "beside it names; the environment must exist"),
    [BENCH_MLFLOW] = FLAG_OPTION("mlflow",
        .help = "create a run of MLflow for each training, with parameters and metrics; needs "
                "MLFLOW_TRACKING_URI in the environment"),
    [BENCH_DROP_CACHES] = FLAG_OPTION("drop-caches",
        .help = "drop the kernel's caches of files before each group, so that each reads its data "
                "from the disk; needs root"),
    [BENCH_RETRY_FAILED] = FLAG_OPTION("retry-failed",
        .help = "also repeat groups in which a training ran out of GPU memory; default: that "
                "counts as a result"),
    [BENCH_DRY_RUN] = FLAG_OPTION(
        "dry-run", .help = "print the groups and their commands, run nothing"),
    [BENCH_NO_REPORT] = FLAG_OPTION(
        "no-report", .help = "do not write the report (report/index.html)"),
    [BENCH_SHARING] = OPTION("sharing", TEXT, "LIST",
        .help = "of pipelines: comma-separated: apart (one after the other), streams, mps, or MIG "
                "profiles such as 1g.18gb or 1c.3g.71gb; default: apart,streams,mps"),
    [BENCH_REQUESTS] = OPTION("requests", INTEGER, "N", .min = 1, .max = 10000000,
        .help = "of pipelines: requests of each, instead of those of its file"),
    [BENCH_RATE] = OPTION("rate", INTEGER, "N", .min = 1, .max = 1000000,
        .help =
            "of pipelines: arrivals per second of each that has a rate, instead of that of its file"),
    [BENCH_MATRIX] = OPTION("matrix", DURATION, "TIME", .min = 10 * MS_US, .max = HOUR_US,
        .help = "of pipelines: also measure how much each stage on the GPU slows each other one "
                "down, every pair for this time; default: no"),
    [BENCH_PRETEND] = FLAG_OPTION("pretend",
        .help = "of pipelines: run stages that only take time in place of their programs"),
};

/* The options are the program's own, with durations in seconds. */
static void add_options(struct word_list *words, const struct invocation *invocation)
{
    char name[32];
    for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
        const struct option_value *value = &invocation->values[i];
        snprintf(name, sizeof name, "--%s", options[i].name);
        if (!value->set)
            continue;
        if (options[i].kind == OPTION_DURATION)
            bench_words_add_number(words, name, (double)value->number / (double)SECOND_US);
        else if (options[i].kind == OPTION_INTEGER)
            bench_words_add_number(words, name, (double)value->number);
        else if (options[i].kind != OPTION_FLAG)
            bench_words_add_option(words, name, value->text);
        else if (value->number)
            word_list_add(words, "%s", name);
    }
    for (size_t i = COMMON_SOCKET; i <= COMMON_CONTROLLER; i++) {
        snprintf(name, sizeof name, "--%s", common_options[i].name);
        bench_words_add_option(words, name, option_text_or(&invocation->common[i], NULL));
    }
}

/* PYTHONPATH is the program's while it starts (cli/python.h); its trainings get the user's. */
static int run_table(const struct invocation *invocation)
{
    struct word_list words = {0};
    char workloads[PATH_MAX];
    char *machine = bench_machine_describe(!invocation->values[BENCH_DRY_RUN].number);
    word_list_add(&words, "colloc_bench");
    bench_words_add_option(&words, "--machine", machine ? machine : "{}");
    free(machine);
    bench_words_add_option(&words, "--pythonpath", getenv("PYTHONPATH"));
    if (support_find("workloads", workloads, sizeof workloads) == 0)
        bench_words_add_option(&words, "--installed", workloads);
    add_options(&words, invocation);
    word_list_add(&words, "--");
    word_list_add(&words, "%s", invocation->operands[0]);
    return bench_words_become(&words, NULL);
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
    bool are_pipelines;
    if (check_operands(invocation, &are_pipelines) != EXIT_OK)
        return EXIT_USAGE;
    if (invocation->common[COMMON_JSON].number) {
        print_error("bench: --json is not supported: the results are CSV files");
        return EXIT_USAGE;
    }
    if (are_pipelines)
        return run_pipelines(invocation);
    return run_table(invocation);
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
