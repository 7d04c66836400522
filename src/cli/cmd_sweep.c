/* SPDX-License-Identifier: Apache-2.0 */
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
#include "cli/gauge.h"
#include "cli/output.h"
#include "cli/sweep_grid.h"
#include "cli/sweep_rows.h"
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
    [SWEEP_TRACE] = {.name = "trace",
        .kind = OPTION_FILE,
        .argument = "FILE",
        .help = "which task arrives when"},
    [SWEEP_TASKS] = {.name = "tasks",
        .kind = OPTION_FILE,
        .argument = "FILE",
        .help = "what the tasks are; default: those of data/traces/tasks.txt"},
    [SWEEP_GPUS] = {.name = "gpus",
        .kind = OPTION_TEXT,
        .argument = "GPUS",
        .help = "as for simulate; default: 4xA100-40GB"},
    [SWEEP_POLICY] = {.name = "policy",
        .kind = OPTION_TEXT,
        .argument = "NAMES",
        .help = "policies of the daemon, and oracles; default: magm",
        .choice_at = sim_policy_name_at},
    [SWEEP_ESTIMATOR] = {.name = "estimator",
        .kind = OPTION_TEXT,
        .argument = "NAMES",
        .help = "as for simulate; default: declared; oracles are always told the truth"},
    [SWEEP_KNOWN] = {.name = "known",
        .kind = OPTION_TEXT,
        .argument = "WHATS",
        .help =
            "what tasks say of themselves besides memory: none, activity, time, all; default: activity"},
    [SWEEP_SHARING] = {.name = "sharing",
        .kind = OPTION_TEXT,
        .argument = "HOWS",
        .help = "streams, mps; default: mps"},
    [SWEEP_SMACT_MAX] = {.name = "smact-max",
        .kind = OPTION_TEXT,
        .argument = "VALUES",
        .help = "a GPU with more SM activity takes nobody; default: 0.8"},
    [SWEEP_MIN_FREE] = {.name = "min-free-gib",
        .kind = OPTION_TEXT,
        .argument = "VALUES",
        .help = "free memory that a task wants of which nothing is known; default: 5"},
    [SWEEP_MARGIN] = {.name = "margin-gib",
        .kind = OPTION_TEXT,
        .argument = "VALUES",
        .help = "free memory that a task wants beyond what is known of it; default: 2"},
    [SWEEP_RESAMPLE] = {.name = "resample",
        .kind = OPTION_TEXT,
        .argument = "VALUES",
        .help = "seeds of other traces drawn from this one; default: 0, the trace itself"},
    [SWEEP_SEED] = {.name = "seed",
        .kind = OPTION_TEXT,
        .argument = "VALUES",
        .help =
            "seeds that spread the tasks' times; 1:10 are ten of them; default: 0, as the tasks say"},
    [SWEEP_SMACT] = {.name = "smact",
        .kind = OPTION_TEXT,
        .argument = "X",
        .help = "SM activity of tasks where nothing says it; default: 0.5"},
    [SWEEP_KINDS] = {.name = "gpu-kinds",
        .kind = OPTION_FILE,
        .argument = "FILE",
        .help = "further kinds of GPUs, and constants, as in data/gpu-kinds.txt"},
    [SWEEP_JOBS] = {.name = "jobs",
        .letter = 'j',
        .kind = OPTION_INTEGER,
        .argument = "N",
        .help = "so many runs at once; default: one for each core",
        .min = 1,
        .max = 1024},
    [SWEEP_OUTPUT] = {.name = "output",
        .letter = 'o',
        .kind = OPTION_FILE,
        .argument = "FILE",
        .help = "where the rows go; default: standard output"},
    [SWEEP_RESUME] = {.name = "resume",
        .kind = OPTION_FLAG,
        .help = "go on where the output file of the same sweep ends"},
    [SWEEP_FORCE] = {.name = "force",
        .kind = OPTION_FLAG,
        .help = "replace an output file that is there"},
};

/* ---- what is varied ---- */

static const char *text_of(const struct invocation *invocation, int option, const char *otherwise)
{
    const char *text = invocation->values[option].text;
    return text ? text : otherwise;
}

static int read_names(const struct invocation *invocation, int option, const char *otherwise,
    struct fault *fault, struct names *ret_names)
{
    return names_parse(
        options[option].name, text_of(invocation, option, otherwise), fault, ret_names);
}

static int read_values(const struct invocation *invocation, int option, const char *otherwise,
    double max, struct fault *fault, struct values *ret_values)
{
    return values_parse(
        options[option].name, text_of(invocation, option, otherwise), 0, max, fault, ret_values);
}

static int read_seeds(
    const struct invocation *invocation, int option, struct fault *fault, struct values *ret_seeds)
{
    int r = read_values(invocation, option, "0", 1e9, fault, ret_seeds);
    for (int i = 0; i < ret_seeds->n && r == 0; i++)
        if (ret_seeds->value[i] != (double)(int64_t)ret_seeds->value[i])
            r = fault_set(fault, EINVAL, "--%s: %g is no whole number", options[option].name,
                ret_seeds->value[i]);
    return r;
}

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
        r = read_values(invocation, SWEEP_SMACT_MAX, "0.8", 1, fault, &axes->smact_max);
    if (r == 0)
        r = read_values(invocation, SWEEP_MIN_FREE, "5", 1e6, fault, &axes->min_free_gib);
    if (r == 0)
        r = read_values(invocation, SWEEP_MARGIN, "2", 1e6, fault, &axes->margin_gib);
    if (r == 0)
        r = read_seeds(invocation, SWEEP_RESAMPLE, fault, &axes->resamples);
    return r < 0 ? r : read_seeds(invocation, SWEEP_SEED, fault, &axes->seeds);
}

static int read_base(
    const struct invocation *invocation, struct sweep_base *base, struct fault *fault)
{
    const char *smact = text_of(invocation, SWEEP_SMACT, "0.5");
    *base = (struct sweep_base){.trace = invocation->values[SWEEP_TRACE].text,
        .tasks = invocation->values[SWEEP_TASKS].text,
        .gpus = text_of(invocation, SWEEP_GPUS, "4xA100-40GB"),
        .kinds = invocation->values[SWEEP_KINDS].text};
    if (!base->trace)
        return fault_set(fault, EINVAL, "sweep: --trace=FILE is missing: which task arrives when");
    if (strcmp(base->trace, "-") == 0)
        return fault_set(
            fault, EINVAL, "sweep: --trace=-: every run reads the trace, so it must be a file");
    if (invocation->common[COMMON_JSON].number)
        return fault_set(fault, EINVAL, "sweep: --json: the rows of a sweep are CSV");
    if (invocation->values[SWEEP_RESUME].number && invocation->values[SWEEP_FORCE].number)
        return fault_set(fault, EINVAL, "sweep: --resume and --force: give one of them");
    if (parse_double(smact, 0, 1, &base->smact) < 0)
        return fault_set(fault, EINVAL, "--smact=%.60s: a number from 0 to 1 is needed", smact);
    return 0;
}

/* ---- the run ---- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
    interrupted = signal;
}

/* Not again: a second one ends the program at once. */
static void catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static int cores(void)
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
    char bar[GAUGE_SIZE], left[32];
    if (!progress->shown)
        return;
    int64_t last_pass_us = clock_monotonic_us() - progress->began_us;
    int64_t left_us = done ? (int64_t)((double)last_pass_us / (double)done * (double)(of - done))
                           : 0;
    fprintf(stderr, "\r%s %" PRId64 " of %" PRId64 " runs, %s left\033[K",
        gauge_bar((double)done / (double)of, BAR_WIDTH, false, bar), done, of,
        done ? format_elapsed(left_us, left, sizeof left) : "?");
}

static void clear_progress(const struct progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
}

/* Writes every row as soon as those before it are written. Returns how many there are now. */
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
    return failed ? fault_set(fault, EIO, "%s: not all rows could be written",
                        path ? path : "standard output")
                  : 0;
}

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
    int jobs = invocation->values[SWEEP_JOBS].set ? (int)invocation->values[SWEEP_JOBS].number
                                                  : cores();
    catch_interrupts();
    struct sweep *sweep = first < grid->n
                              ? sweep_start(grid->simulations + first, grid->n - first, jobs)
                              : NULL;
    end = sweep ? write_rows(grid, sweep, first, out, ret_failed) : first;
    r = close_rows(out, path, fault);
    if (r == 0 && first < grid->n && !sweep)
        r = fault_set(fault, ENOMEM, "no thread could be started");
    sweep_destroy(sweep);
    if (interrupted && end < grid->n)
        complain("interrupted: the rows of %" PRId64 " of %" PRId64 " runs are written%s", end,
            grid->n, path ? "; the same with --resume does the others" : "");
    return r;
}

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
        complain("%s", fault.text);
    if (failed)
        complain("%" PRId64 " runs gave no result: the last column says why", failed);
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
    .description =
        "Runs `simulate` for every combination of the values given, as many at once as there are cores, and "
        "writes a row of "
        "CSV for each, in the order of the options: policies change slowest, seeds fastest. A row is what "
        "`simulate` says of "
        "the same values, whatever else runs beside it.\n\n"
        "Values are parted by commas; FROM:TO:STEP is a range of numbers, 1:10 counts. When it is "
        "interrupted, all rows "
        "that are written are whole, and --resume goes on from there. `colloc-plot-sweep` draws the result (scripts/plot-sweep in the source tree).",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_NONE,
    .common_without = WITHOUT_SOCKET | WITHOUT_JSON,
    .run = run,
};
