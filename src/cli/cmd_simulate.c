/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/simulating.h"
#include "sim/simulate.h"

enum {
    SIMULATE_TRACE,
    SIMULATE_TASKS,
    SIMULATE_GPUS,
    SIMULATE_POLICY,
    SIMULATE_ESTIMATOR,
    SIMULATE_KNOWN,
    SIMULATE_NEED_ERROR,
    SIMULATE_SHARING,
    SIMULATE_SMACT_MAX,
    SIMULATE_MIN_FREE,
    SIMULATE_MARGIN,
    SIMULATE_HOLD_OFF,
    SIMULATE_SLOWDOWN_MAX,
    SIMULATE_RECOVERY_STEP,
    SIMULATE_SMACT,
    SIMULATE_SEED,
    SIMULATE_RESAMPLE,
    SIMULATE_KINDS,
    SIMULATE_EVERY_SECOND,
    SIMULATE_TRACE_OUT,
    SIMULATE_TIMELINE,
    SIMULATE_PER_TASK,
    SIMULATE_OPTIONS
};

static const char *const sharings[] = {"streams", "mps", NULL};

static const struct option_spec options[SIMULATE_OPTIONS] = {
    [SIMULATE_TRACE] = {.name = "trace",
        .kind = OPTION_FILE,
        .argument = "FILE",
        .help = "which task arrives when"},
    [SIMULATE_TASKS] = {.name = "tasks",
        .kind = OPTION_FILE,
        .argument = "FILE",
        .help = "what the tasks are; default: those of data/traces/tasks.txt"},
    [SIMULATE_GPUS] = {.name = "gpus",
        .kind = OPTION_TEXT,
        .argument = "GPUS",
        .help =
            "\"4xA100-40GB\" (the default), \"2xA100-80GB,H100\", \"A100-40GB:3g.20gb+3g.20gb\""},
    [SIMULATE_POLICY] = {.name = "policy",
        .kind = OPTION_TEXT,
        .argument = "NAME",
        .help = "a policy of the daemon or an oracle: {choices}; default: magm",
        .choice_at = sim_policy_name_at},
    [SIMULATE_ESTIMATOR] = {.name = "estimator",
        .kind = OPTION_TEXT,
        .argument = "NAME",
        .help = "none, declared (the default), or NAME for the column NAME_mb_reported or "
                "NAME_mib of the tasks"},
    [SIMULATE_KNOWN] = {.name = "known",
        .kind = OPTION_CHOICE,
        .argument = "WHAT",
        .help =
            "what tasks say of themselves besides memory, for the policy predictive: none, activity (the "
            "default), time or all",
        .choices = simulating_knowns},
    [SIMULATE_NEED_ERROR] = {.name = "need-error",
        .kind = OPTION_TEXT,
        .argument = "X",
        .help =
            "the memory that tasks are said to need is wrong by a log-normal factor of this spread: "
            "0.2 is by 20 % or so; default: 0"},
    [SIMULATE_SHARING] = {.name = "sharing",
        .kind = OPTION_CHOICE,
        .argument = "HOW",
        .help = "how tasks share a GPU: streams or mps (the default)",
        .choices = sharings},
    [SIMULATE_SMACT_MAX] = {.name = "smact-max",
        .kind = OPTION_TEXT,
        .argument = "X",
        .help = "a GPU with more SM activity takes nobody; default: 0.8"},
    [SIMULATE_MIN_FREE] = {.name = "min-free-gib",
        .kind = OPTION_TEXT,
        .argument = "X",
        .help = "free memory that a task wants of which nothing is known; default: 5"},
    [SIMULATE_MARGIN] = {.name = "margin-gib",
        .kind = OPTION_TEXT,
        .argument = "X",
        .help = "free memory that a task wants beyond what is known of it; default: 2"},
    [SIMULATE_HOLD_OFF] = {.name = "hold-off",
        .kind = OPTION_DURATION,
        .argument = "TIME",
        .help = "how long at most a GPU takes nobody while its newest task takes its memory; "
                "default: 60s",
        .max = 3600 * SECOND_US},
    [SIMULATE_SLOWDOWN_MAX] = {.name = "slowdown-max",
        .kind = OPTION_TEXT,
        .argument = "X",
        .help = "policy predictive: no task may be predicted to take more than X times as long as "
                "alone; default: 3"},
    [SIMULATE_RECOVERY_STEP] = {.name = "recovery-step-gib",
        .kind = OPTION_TEXT,
        .argument = "X",
        .help = "a task that crashed is tried again where so much more memory is free; default: 0, "
                "on GPUs to itself"},
    [SIMULATE_SMACT] = {.name = "smact",
        .kind = OPTION_TEXT,
        .argument = "X",
        .help = "SM activity of tasks where nothing says it; default: 0.5"},
    [SIMULATE_SEED] = {.name = "seed",
        .kind = OPTION_INTEGER,
        .argument = "N",
        .help = "spreads the tasks' times at random; default: 0, as the tasks say",
        .max = INT64_MAX},
    [SIMULATE_RESAMPLE] = {.name = "resample",
        .kind = OPTION_INTEGER,
        .argument = "SEED",
        .help =
            "draw another trace like this one: tasks and the gaps between them, at random; default: 0, "
            "the trace itself",
        .max = INT64_MAX},
    [SIMULATE_KINDS] = {.name = "gpu-kinds",
        .kind = OPTION_FILE,
        .argument = "FILE",
        .help = "further kinds of GPUs, and constants, as in data/gpu-kinds.txt"},
    [SIMULATE_EVERY_SECOND] = {.name = "every-second",
        .kind = OPTION_FLAG,
        .help = "look at all GPUs every second, as the daemon does: slow"},
    [SIMULATE_TRACE_OUT] = {.name = "trace-out",
        .kind = OPTION_FILE,
        .argument = "FILE",
        .help = "write a line for every event and decision; - is standard output"},
    [SIMULATE_TIMELINE] = {.name = "timeline",
        .kind = OPTION_FILE,
        .argument = "FILE",
        .help = "write memory, SMACT and power of every GPU over time, as CSV"},
    [SIMULATE_PER_TASK] = {.name = "per-task",
        .kind = OPTION_FILE,
        .argument = "FILE",
        .help = "write when every task waited and ran, as CSV"},
};

/* What the options say, ready to run. */
struct setup {
    struct gpu_kinds kinds;
    struct cluster cluster;
    struct catalogue catalogue;
    struct simulation simulation;
};

static const char *text_of(const struct invocation *invocation, int option, const char *otherwise)
{
    const char *text = invocation->values[option].text;
    return text ? text : otherwise;
}

static int number_of(const struct invocation *invocation, int option, double max, double otherwise,
    struct fault *fault, double *ret_value)
{
    const char *text = invocation->values[option].text;
    *ret_value = otherwise;
    if (!text || parse_double(text, 0, max, ret_value) == 0)
        return 0;
    return fault_set(fault, EINVAL, "--%s=%.60s: a number from 0 to %g is needed",
        options[option].name, text, max);
}

static int set_policy(const struct invocation *invocation, struct setup *setup, struct fault *fault,
    const char **ret_estimator)
{
    struct sim_policy policy;
    int r = simulating_policy(text_of(invocation, SIMULATE_POLICY, "magm"), fault, &policy);
    *ret_estimator = text_of(invocation, SIMULATE_ESTIMATOR, "declared");
    if (r < 0)
        return r;
    setup->simulation.settings.policy = policy.policy;
    if (policy.knows_memory)
        *ret_estimator = "declared";
    return 0;
}

static int set_conditions(
    const struct invocation *invocation, struct core_settings *settings, struct fault *fault)
{
    struct conditions *conditions = &settings->conditions;
    double min_free_gib, margin_gib, step_gib;
    int r = number_of(
        invocation, SIMULATE_SMACT_MAX, 1, conditions->smact_max, fault, &conditions->smact_max);
    if (r == 0)
        r = number_of(invocation, SIMULATE_MIN_FREE, 1e6, 5, fault, &min_free_gib);
    if (r == 0)
        r = number_of(invocation, SIMULATE_MARGIN, 1e6, 2, fault, &margin_gib);
    if (r == 0)
        r = number_of(invocation, SIMULATE_SLOWDOWN_MAX, 1000, conditions->slowdown_max, fault,
            &conditions->slowdown_max);
    if (r == 0)
        r = number_of(invocation, SIMULATE_RECOVERY_STEP, 1e6, 0, fault, &step_gib);
    if (r < 0)
        return r;
    settings->recovery_step_bytes = (int64_t)(step_gib * (double)GIB);
    conditions->min_free_bytes = (int64_t)(min_free_gib * (double)GIB);
    conditions->margin_bytes = (int64_t)(margin_gib * (double)GIB);
    if (invocation->values[SIMULATE_HOLD_OFF].set)
        settings->settle_max_us = invocation->values[SIMULATE_HOLD_OFF].number;
    return 0;
}

static int read_tasks(const struct invocation *invocation, struct setup *setup,
    const char *estimator, struct fault *fault)
{
    struct catalogue_settings settings = {.estimator = estimator};
    int r = number_of(invocation, SIMULATE_SMACT, 1, 0.5, fault, &settings.smact);
    if (r == 0)
        r = simulating_catalogue(
            invocation->values[SIMULATE_TASKS].text, &settings, fault, &setup->catalogue);
    return r;
}

static int prepare(const struct invocation *invocation, struct setup *setup, struct fault *fault)
{
    struct simulation *simulation = &setup->simulation;
    const char *estimator;
    if (!invocation->values[SIMULATE_TRACE].set)
        return fault_set(
            fault, EINVAL, "simulate: --trace=FILE is missing: which task arrives when");
    *simulation = (struct simulation){
        .trace = invocation->values[SIMULATE_TRACE].text,
        .catalogue = &setup->catalogue,
        .cluster = &setup->cluster,
        .laws = &setup->kinds.constants,
        .settings = core_settings_default(),
        .sharing = SHARING_MPS,
        .seed = (uint64_t)invocation->values[SIMULATE_SEED].number,
        .resample = (uint64_t)invocation->values[SIMULATE_RESAMPLE].number,
        .every_second = invocation->values[SIMULATE_EVERY_SECOND].number,
        .remarks = stderr,
    };
    int r = set_policy(invocation, setup, fault, &estimator);
    if (r == 0)
        r = simulating_known(text_of(invocation, SIMULATE_KNOWN, "activity"), fault, simulation);
    if (r == 0)
        r = sharing_parse(text_of(invocation, SIMULATE_SHARING, "mps"), &simulation->sharing);
    if (r == 0)
        r = set_conditions(invocation, &simulation->settings, fault);
    if (r == 0)
        r = number_of(invocation, SIMULATE_NEED_ERROR, 10, 0, fault, &simulation->need_error);
    if (r == 0)
        r = simulating_kinds(invocation->values[SIMULATE_KINDS].text, fault, &setup->kinds);
    if (r == 0)
        r = cluster_parse(&setup->kinds, text_of(invocation, SIMULATE_GPUS, "4xA100-40GB"), fault,
            &setup->cluster);
    return r < 0 ? r : read_tasks(invocation, setup, estimator, fault);
}

static int open_output(
    const struct invocation *invocation, int option, struct fault *fault, FILE **ret_file)
{
    const char *path = invocation->values[option].text;
    if (!path)
        return 0;
    *ret_file = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
    return *ret_file ? 0 : fault_set(fault, errno, "%s: %s", path, strerror(errno));
}

static int open_outputs(
    const struct invocation *invocation, struct fault *fault, struct simulation *simulation)
{
    int r = open_output(invocation, SIMULATE_TRACE_OUT, fault, &simulation->trace_out);
    if (r == 0)
        r = open_output(invocation, SIMULATE_TIMELINE, fault, &simulation->timeline_out);
    return r < 0 ? r : open_output(invocation, SIMULATE_PER_TASK, fault, &simulation->tasks_out);
}

static int close_output(FILE *file, const char *name, struct fault *fault)
{
    if (!file)
        return 0;
    int failed = ferror(file) | (file == stdout ? fflush(file) : fclose(file));
    return failed ? fault_set(fault, EIO, "not everything of --%s could be written", name) : 0;
}

static int close_outputs(const struct simulation *simulation, int r, struct fault *fault)
{
    const struct {
        FILE *file;
        int option;
    } outputs[] = {{simulation->trace_out, SIMULATE_TRACE_OUT},
        {simulation->timeline_out, SIMULATE_TIMELINE}, {simulation->tasks_out, SIMULATE_PER_TASK}};
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        int closed = close_output(
            outputs[i].file, options[outputs[i].option].name, r < 0 ? NULL : fault);
        r = r < 0 ? r : closed;
    }
    return r;
}

static void print_result(const struct simulation_result *result)
{
    char total[32], wait[32], exec[32], jct[32], bound[32];
    printf("Total time    %s, %.2f times the least possible (%s)\n",
        format_elapsed((int64_t)(result->total_s * 1e6), total, sizeof total),
        result->lower_bound_s > 0 ? result->total_s / result->lower_bound_s : 1,
        format_elapsed((int64_t)(result->lower_bound_s * 1e6), bound, sizeof bound));
    printf("Average       waiting %s, execution %s, completion %s\n",
        format_elapsed((int64_t)(result->avg_wait_s * 1e6), wait, sizeof wait),
        format_elapsed((int64_t)(result->avg_exec_s * 1e6), exec, sizeof exec),
        format_elapsed((int64_t)(result->avg_jct_s * 1e6), jct, sizeof jct));
    printf("Tasks         %" PRId64 " completed, %" PRId64 " failed, %" PRId64 " left out, %" PRId64
           " OOM crashes\n",
        result->completed, result->failed, result->left_out, result->oom);
    printf(
        "GPUs          %.3f MJ, mean SMACT %.1f %%\n", result->energy_mj, 100 * result->mean_smact);
}

static void print_result_json(const struct simulation_result *result)
{
    json_t *object = json_pack("{s:f,s:f,s:f,s:f,s:I,s:I,s:f,s:f,s:f,s:I,s:I}", "total_s",
        result->total_s, "avg_wait_s", result->avg_wait_s, "avg_exec_s", result->avg_exec_s,
        "avg_jct_s", result->avg_jct_s, "oom", (json_int_t)result->oom, "completed",
        (json_int_t)result->completed, "energy_mj", result->energy_mj, "mean_smact",
        result->mean_smact, "lower_bound_s", result->lower_bound_s, "failed",
        (json_int_t)result->failed, "left_out", (json_int_t)result->left_out);
    print_json(object);
    json_decref(object);
}

static int run(const struct invocation *invocation)
{
    struct setup setup = {0};
    struct simulation_result result;
    struct fault fault = {0};
    int r = prepare(invocation, &setup, &fault);
    if (r == 0)
        r = open_outputs(invocation, &fault, &setup.simulation);
    if (r == 0)
        r = simulate(&setup.simulation, &fault, &result);
    r = close_outputs(&setup.simulation, r, &fault);
    if (r < 0)
        complain("%s", fault.text);
    else
        (invocation->common[COMMON_JSON].number ? print_result_json : print_result)(&result);
    catalogue_fini(&setup.catalogue);
    cluster_fini(&setup.cluster);
    return r < 0 ? EXIT_USAGE : EXIT_OK;
}

const struct command command_simulate = {
    .name = "simulate",
    .usage = "[OPTION...] --trace=FILE",
    .summary = "say what a policy would do to a trace of tasks, without a daemon or GPUs",
    .description =
        "Runs the daemon's own scheduler under a virtual clock over pretend GPUs whose tasks slow each other down, and "
        "prints total time, average waiting, execution and completion, crashes, energy and a lower bound of the total "
        "time that no policy can be under.\n\n"
        "The files are tables with names of columns in their first line, parted by commas or blanks: the trace has "
        "submit_s and task, in order of time; the tasks have task, gpus, solo_s (or epochs and epoch_minutes), memory "
        "and, where known, smact, dram and power_w. A task that fits no GPU is reported and left out.\n\n"
        "The oracles off, obf, owf and olug are first-fit, best-fit, magm and lug, told exactly what memory every task "
        "takes.",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_NONE,
    .common_without = WITHOUT_SOCKET,
    .run = run,
};
