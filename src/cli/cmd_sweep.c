/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc sweep`: simulates every combination of the values given. sweep_grid.c lists the
 * combinations, sweep_rows.c writes and resumes the CSV file, src/sim/sweep.c runs them on all
 * cores.
 *
 *     colloc sweep --trace=a.csv --policy=magm,lug,predictive --seed=1,2,3 --output=runs.csv
 *
 * Rows are in the order of the combinations, whichever run is done first. So the file of a sweep
 * that was interrupted is the beginning of the whole one, and --resume completes it.
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/sweep_grid.h"
#include "cli/sweep_rows.h"
#include "cli/text_graph.h"
#include "sim/oracle.h"
#include "sim/sweep.h"

enum {
    SWEEP_TRACE,
    SWEEP_TASKS,
    SWEEP_GPUS,
    SWEEP_POLICY,
    SWEEP_ESTIMATOR,
    SWEEP_KNOWN,
    SWEEP_SHARING,
    SWEEP_BACKFILL,
    SWEEP_SMACT_MAX,
    SWEEP_MIN_FREE,
    SWEEP_MARGIN,
    SWEEP_RESAMPLE,
    SWEEP_SEED,
    SWEEP_SMACT,
    SWEEP_KINDS,
    SWEEP_JOBS,
    SWEEP_OUTPUT,
    SWEEP_RESUME,
    SWEEP_FORCE,
    SWEEP_OPTIONS
};

enum { BAR_WIDTH = 30 };

#define PROGRESS_US (SECOND_US / 5)

static const struct option_spec options[SWEEP_OPTIONS] = {
    [SWEEP_TRACE] = OPTION(
        "trace", FILE, "FILE", .help = "trace: which task is submitted when (required)"),
    [SWEEP_TASKS] = OPTION("tasks", FILE, "FILE",
        .help = "catalogue of the tasks in the trace; default: data/traces/tasks.txt, which "
                "is built in"),
    [SWEEP_GPUS] = OPTION("gpus", TEXT, "GPUS",
        .help = "GPUs to simulate, as for `colloc simulate`; default: 4xA100-40GB"),
    [SWEEP_POLICY] = OPTION("policy", TEXT, "NAMES", .choice_at = sim_policy_name_at,
        .help = "policies of the daemon, and oracles; default: magm"),
    [SWEEP_ESTIMATOR] = OPTION("estimator", TEXT, "NAMES",
        .help = "sources of the memory requirements, as for `colloc simulate`; oracles "
                "always know them exactly; default: declared"),
    [SWEEP_KNOWN] = OPTION("known", TEXT, "WHATS",
        .help = "what the scheduler knows of each task besides memory: none, activity, "
                "time, all; default: activity"),
    [SWEEP_SHARING] = OPTION("sharing", TEXT, "HOWS",
        .help = "how tasks share a GPU: streams (time-sliced), mps, auto; default: mps"),
    [SWEEP_BACKFILL] = OPTION("backfill", TEXT, "WHETHER",
        .help = "whether tasks are backfilled, as for `colloc simulate`: yes, no (strictly in "
                "order), or yes,no to compare; default: yes"),
    [SWEEP_RESAMPLE] = OPTION("resample", TEXT, "VALUES",
        .help = "seeds of bootstrap samples of the trace; 0: the trace itself; default: 0"),
    [SWEEP_SEED] = OPTION("seed", TEXT, "VALUES",
        .help = "seeds of random variation of the run times, such as 1:10; 0: no "
                "variation; default: 0"),
    [SWEEP_SMACT] = OPTION("smact", TEXT, "X",
        .help = "SM activity (0 to 1) of tasks whose catalogue has none; default: 0.5"),
    [SWEEP_KINDS] = OPTION("gpu-kinds", FILE, "FILE",
        .help = "file with further GPU models and constants, in the form of "
                "data/gpu-kinds.txt"),
    [SWEEP_JOBS] = OPTION("jobs", INTEGER, "N", .letter = 'j', .min = 1, .max = 1024,
        .help = "number of runs at the same time; default: the number of cores"),
    [SWEEP_OUTPUT] = OPTION("output", FILE, "FILE", .letter = 'o',
        .help = "file for the rows, as CSV; default: standard output"),
    [SWEEP_RESUME] = FLAG_OPTION(
        "resume", .help = "continue an interrupted sweep after the last row of its output file"),
    [SWEEP_FORCE] = FLAG_OPTION("force", .help = "overwrite an existing output file"),
#define SWEPT_OPTION(id, option, column, text, otherwise)                                          \
    [SWEEP_##id] = {.name = option,                                                                \
        .kind = OPTION_TEXT,                                                                       \
        .argument = "VALUES",                                                                      \
        .default_text = otherwise,                                                                 \
        .help = text "; default: {default}"},
#include "core/settings.def"
};

/* The options that are settings of the core, by axis. */
static const int swept_options[SWEPT_SETTINGS] = {
#define SWEPT_OPTION(id, option, column, text, otherwise) SWEEP_##id,
#include "core/settings.def"
};

/* ---- the lists of values ---- */

static int read_names(const struct invocation *invocation, int option, const char *otherwise,
    struct fault *fault, struct names *ret_names)
{
    return names_parse(options[option].name, option_text_or(&invocation->values[option], otherwise),
        fault, ret_names);
}

static int read_values(const struct invocation *invocation, int option, const char *otherwise,
    double max, struct fault *fault, struct values *ret_values)
{
    return values_parse(options[option].name,
        option_text_or(&invocation->values[option], otherwise), 0, max, fault, ret_values);
}

static int read_settings(
    const struct invocation *invocation, struct axes *axes, struct fault *fault)
{
    int r = 0;
    for (int i = 0; i < SWEPT_SETTINGS && r == 0; i++)
        r = read_values(invocation, swept_options[i], options[swept_options[i]].default_text,
            core_setting_number_max(&core_setting_table[swept_settings[i]]), fault,
            &axes->settings[i]);
    return r;
}

static int read_seeds(
    const struct invocation *invocation, int option, struct fault *fault, struct values *ret_seeds)
{
    int r = read_values(invocation, option, "0", 1e9, fault, ret_seeds);
    for (int i = 0; i < ret_seeds->n && r == 0; i++)
        if (ret_seeds->value[i] != (double)(int64_t)ret_seeds->value[i])
            r = fault_set(fault, EINVAL, "--%s: %g is not a whole number", options[option].name,
                ret_seeds->value[i]);
    return r;
}

/* Each of these options is a list: the sweep runs every combination of their values. */
static int read_axes(const struct invocation *invocation, struct axes *axes, struct fault *fault)
{
    int r = read_names(invocation, SWEEP_POLICY, "magm", fault, &axes->policies);
    if (r == 0)
        r = read_names(invocation, SWEEP_ESTIMATOR, "declared", fault, &axes->estimators);
    if (r == 0)
        r = read_names(invocation, SWEEP_KNOWN, "activity", fault, &axes->knowns);
    if (r == 0)
        r = read_names(invocation, SWEEP_SHARING, "mps", fault, &axes->sharings);
    if (r == 0)
        r = read_names(invocation, SWEEP_BACKFILL, "yes", fault, &axes->backfills);
    if (r == 0)
        r = read_settings(invocation, axes, fault);
    if (r == 0)
        r = read_seeds(invocation, SWEEP_RESAMPLE, fault, &axes->resamples);
    return r < 0 ? r : read_seeds(invocation, SWEEP_SEED, fault, &axes->seeds);
}

/* The options that all runs share. */
static int read_base(
    const struct invocation *invocation, struct sweep_base *base, struct fault *fault)
{
    const char *smact = option_text_or(&invocation->values[SWEEP_SMACT], "0.5");
    *base = (struct sweep_base){.trace = invocation->values[SWEEP_TRACE].text,
        .tasks = invocation->values[SWEEP_TASKS].text,
        .gpus = option_text_or(&invocation->values[SWEEP_GPUS], "4xA100-40GB"),
        .kinds = invocation->values[SWEEP_KINDS].text};
    if (!base->trace)
        return fault_set(fault, EINVAL,
            "sweep: no trace given: add --trace=FILE (`colloc help simulate` has its "
            "form)");
    if (strcmp(base->trace, "-") == 0)
        return fault_set(fault, EINVAL,
            "sweep: --trace=- is not supported: every run reads the trace, so give a "
            "file");
    if (invocation->common[COMMON_JSON].number)
        return fault_set(
            fault, EINVAL, "sweep: --json is not supported: the rows of a sweep are CSV");
    if (invocation->values[SWEEP_RESUME].number && invocation->values[SWEEP_FORCE].number)
        return fault_set(
            fault, EINVAL, "sweep: --resume and --force exclude each other: give one of them");
    if (parse_double(smact, 0, 1, &base->smact) < 0)
        return fault_set(
            fault, EINVAL, "--smact=%.60s: invalid number: give one from 0 to 1", smact);
    return 0;
}

/* ---- the run ---- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    interrupted = signal;
}

/* The first interrupt ends the sweep in order; a second one ends the program at once. */
static void catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static int count_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

struct progress {
    bool shown;
    int64_t began_us;
};

static void show_progress(const struct progress *progress, int64_t done, int64_t of)
{
    char bar[TEXT_GRAPH_SIZE], left[32];
    if (!progress->shown)
        return;
    int64_t last_pass_us = clock_monotonic_us() - progress->began_us;
    int64_t left_us = done ? (int64_t)((double)last_pass_us / (double)done * (double)(of - done))
                           : 0;
    fprintf(stderr, "\r%s %" PRId64 " of %" PRId64 " runs, %s left\033[K",
        text_graph_bar((double)done / (double)of, BAR_WIDTH, false, bar), done, of,
        done ? format_elapsed(left_us, left, sizeof left) : "?");
}

static void clear_progress(const struct progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
}

/* Writes the rows that have no missing row before them. Returns how many are written. */
static int64_t write_rows(const struct sweep_grid *grid, struct sweep *sweep, int64_t first,
    FILE *out, int64_t *ret_failed)
{
    const struct progress progress = {
        .shown = isatty(STDERR_FILENO), .began_us = clock_monotonic_us()};
    int64_t i = first;
    *ret_failed = 0;
    while (i < grid->n && !interrupted && !ferror(out)) {
        const struct sweep_outcome *outcome = sweep_wait(sweep, i - first, PROGRESS_US);
        show_progress(&progress, sweep_ended(sweep), grid->n - first);
        if (!outcome)
            continue;
        sweep_rows_write(out, grid->points[i].key, outcome);
        *ret_failed += outcome->r < 0;
        i++;
    }
    clear_progress(&progress);
    return i;
}

static int close_rows(FILE *out, const char *path, struct fault *fault)
{
    int failed = ferror(out) | (path ? fclose(out) : fflush(out));
    return failed ? fault_set(fault, EIO, "%s: write error: some rows are missing",
                        path ? path : "standard output")
                  : 0;
}

/* Threads simulate, this one writes the rows in the order of the combinations. So the file never
 * has a gap, and --resume continues after its last row. */
static int run_grid(const struct sweep_grid *grid, const struct invocation *invocation,
    struct fault *fault, int64_t *ret_failed)
{
    const char *path = invocation->values[SWEEP_OUTPUT].text;
    int64_t first = 0, end;
    FILE *out;
    enum sweep_rows rows = invocation->values[SWEEP_RESUME].number  ? SWEEP_ROWS_RESUME
                           : invocation->values[SWEEP_FORCE].number ? SWEEP_ROWS_REPLACE
                                                                    : SWEEP_ROWS_REFUSE;
    int r = sweep_rows_open(path, rows, grid, fault, &out, &first);
    if (r < 0)
        return r;
    int jobs = (int)option_number_or(&invocation->values[SWEEP_JOBS], count_cores());
    catch_interrupts();
    struct sweep *sweep = first < grid->n
                              ? sweep_start(grid->simulations + first, grid->n - first, jobs)
                              : NULL;
    end = sweep ? write_rows(grid, sweep, first, out, ret_failed) : first;
    r = close_rows(out, path, fault);
    if (r == 0 && first < grid->n && !sweep)
        r = fault_set(fault, ENOMEM, "cannot start a thread");
    sweep_destroy(sweep);
    if (interrupted && end < grid->n)
        print_error("interrupted: the rows of %" PRId64 " of %" PRId64 " runs are written%s", end,
            grid->n, path ? "; repeat the command with --resume for the others" : "");
    return r;
}

/* After an interrupt the rows so far are written and the signal is raised again: a shell that runs
 * sweeps in a loop then ends the loop. */
static int run(const struct invocation *invocation)
{
    struct axes axes = {0};
    struct sweep_base base;
    struct sweep_grid grid = {0};
    struct fault fault = {0};
    int64_t failed = 0;
    int r = read_base(invocation, &base, &fault);
    if (r == 0)
        r = read_axes(invocation, &axes, &fault);
    if (r == 0)
        r = sweep_grid_build(&grid, &axes, &base, &fault);
    if (r == 0)
        r = run_grid(&grid, invocation, &fault, &failed);
    if (r < 0)
        print_error("%s", fault.text);
    if (failed)
        print_error("%" PRId64 " runs failed: the last column has the reason", failed);
    sweep_grid_fini(&grid);
    axes_fini(&axes);
    if (interrupted)
        raise(interrupted);
    return r < 0 ? EXIT_USAGE : failed ? EXIT_REFUSED : EXIT_OK;
}

const struct command command_sweep = {
    .name = "sweep",
    .usage = "[OPTION...] --trace=FILE",
    .summary = "simulate every combination of policies, thresholds and seeds, on all cores",
    .description = "Runs `colloc simulate` for every combination of the given values, on all "
                   "cores, and writes one CSV row for each, in the order of the options: "
                   "policies change slowest, seeds fastest. Each row has the results of `colloc "
                   "simulate` with the same values.\n\n"
                   "Values are comma-separated; FROM:TO:STEP is a range of numbers, and the "
                   "step of 1:10 is 1. After an interruption all written rows are complete, and "
                   "--resume continues from there. `colloc-plot-sweep` draws the results "
                   "(scripts/plot-sweep in the source tree).",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_NONE,
    .common_without = WITHOUT_SOCKET | WITHOUT_JSON,
    .run = run,
};
