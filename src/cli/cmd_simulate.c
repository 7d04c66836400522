/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc simulate`: one simulated run of a trace (src/sim); options in, a summary and CSV files
 * out.
 *
 *     colloc simulate --trace=60-tasks.csv --gpus=4xA100-40GB --policy=predictive
 *
 * The scheduler is the daemon's own: the same core, policies and admission test. Only the GPUs and
 * the trainings are simulated. So a policy or a limit can be tested on a trace before the daemon
 * uses it. --trace-out writes a line for each event and decision.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/service_rows.h"
#include "cli/simulating.h"
#include "cli/simulating_log.h"
#include "sim/service_totals.h"
#include "sim/simulate.h"
#include "sim/stretch.h"
#include "sim/user_totals.h"

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
    SIMULATE_STARTING_MAX,
    SIMULATE_SLOWDOWN_MAX,
    SIMULATE_SERVER_POWER,
    SIMULATE_POWER_MAX,
    SIMULATE_PREEMPT,
    SIMULATE_LOOK_AHEAD,
    SIMULATE_SLOTS,
    SIMULATE_MAKE_ROOM,
    SIMULATE_PRELOAD,
    SIMULATE_SERVICE_HOLD,
    SIMULATE_BACKFILL,
    SIMULATE_ORDER,
    SIMULATE_GPU_HOURS,
    SIMULATE_GPU_HOURS_WINDOW,
    SIMULATE_RECOVERY_STEP,
    SIMULATE_HOST_CPUS,
    SIMULATE_HOST_MEMORY,
    SIMULATE_SMACT,
    SIMULATE_SEED,
    SIMULATE_RESAMPLE,
    SIMULATE_KINDS,
    SIMULATE_SPEEDS,
    SIMULATE_EVERY_SECOND,
    SIMULATE_TRACE_OUT,
    SIMULATE_TIMELINE,
    SIMULATE_PER_TASK,
    SIMULATE_OPTIONS
};

static const char *const sharings[] = {"streams", "mps", "auto", NULL};
static const char *const orders[] = {"fair", "fifo", NULL};
static const char *const speeds[] = {"known", "unknown", NULL};

static const struct option_spec options[SIMULATE_OPTIONS] = {
    [SIMULATE_TRACE] = {.name = "trace",
        .kind = OPTION_FILE,
        .argument = "FILE",
        .help = "trace: which task is submitted when, or the log of a cluster (required, or as "
                "FILE)"},
    [SIMULATE_TASKS] = {.name = "tasks",
        .kind = OPTION_FILE,
        .argument = "FILE",
        .help = "catalogue of the tasks in the trace; default: data/traces/tasks.txt, which "
                "is built in"},
    [SIMULATE_GPUS] = {.name = "gpus",
        .kind = OPTION_TEXT,
        .argument = "GPUS",
        .help = "GPUs to simulate, such as 2xA100-80GB,H100 or, with MIG instances, "
                "A100-40GB:3g.20gb+3g.20gb; of a cluster, each node in braces: "
                "300x{8xA30},20x{2xT4,2xH100}; default: 4xA100-40GB"},
    [SIMULATE_POLICY] = {.name = "policy",
        .kind = OPTION_TEXT,
        .argument = "NAME",
        .help = "a policy of the daemon or an oracle: {choices}; default: magm",
        .choice_at = sim_policy_name_at},
    [SIMULATE_ESTIMATOR] = {.name = "estimator",
        .kind = OPTION_TEXT,
        .argument = "NAME",
        .help = "source of each task's memory requirement: none, declared, or NAME for the "
                "column NAME_mb_reported or NAME_mib of the catalogue; default: declared"},
    [SIMULATE_KNOWN] = {.name = "known",
        .kind = OPTION_CHOICE,
        .argument = "WHAT",
        .help = "what the scheduler knows of each task besides memory (for the policy "
                "predictive and for backfill): none, activity, time or all; default: activity",
        .choices = simulating_knowns},
    [SIMULATE_NEED_ERROR] = {.name = "need-error",
        .kind = OPTION_TEXT,
        .argument = "X",
        .help = "error of the memory requirements: standard deviation of a log-normal "
                "factor; 0.2 is about 20 %; default: 0"},
    [SIMULATE_SHARING] = {.name = "sharing",
        .kind = OPTION_CHOICE,
        .argument = "HOW",
        .help = "how tasks share a GPU: streams (time-sliced), mps, or auto (the better one for "
                "each placement); default: mps",
        .choices = sharings},
    [SIMULATE_SMACT_MAX] = {.name = "smact-max",
        .kind = OPTION_TEXT,
        .argument = "X",
        .help = "a GPU with more SM activity (0 to 1) takes no further task; default: 0.8"},
    [SIMULATE_MIN_FREE] = {.name = "min-free-gib",
        .kind = OPTION_TEXT,
        .argument = "X",
        .help = "free GPU memory required for a task with unknown requirement, in GiB; "
                "default: 5"},
    [SIMULATE_MARGIN] = {.name = "margin-gib",
        .kind = OPTION_TEXT,
        .argument = "X",
        .help = "free GPU memory required in addition to a task's requirement, in GiB; "
                "default: 2"},
    [SIMULATE_HOLD_OFF] = {.name = "hold-off",
        .kind = OPTION_DURATION,
        .argument = "TIME",
        .help = "the longest time a GPU is held for a task whose memory is still growing; "
                "default: 60s",
        .max = 3600 * SECOND_US},
    [SIMULATE_STARTING_MAX] = {.name = "starting-max",
        .kind = OPTION_INTEGER,
        .argument = "N",
        .max = 1000,
        .help = "how many tasks of known memory requirement and unknown SM activity may be "
                "starting on a GPU at a time; 0: none starts beside one whose memory has not "
                "settled, as in the dissertation; default: 0"},
    [SIMULATE_SLOWDOWN_MAX] = {.name = "slowdown-max",
        .kind = OPTION_TEXT,
        .argument = "X",
        .help = "policy predictive: the largest predicted slowdown of any task on a shared "
                "GPU; default: 3"},
    [SIMULATE_SERVER_POWER] = {.name = "server-power-max",
        .kind = OPTION_INTEGER,
        .argument = "WATTS",
        .min = 0,
        .max = MILLION,
        .help = "power of all GPUs together that no task may be expected to exceed when it starts; "
                "not with MIG; default: no limit"},
    [SIMULATE_POWER_MAX] = {.name = "power-max",
        .kind = OPTION_TEXT,
        .argument = "FRACTION",
        .help = "a GPU takes another task only while it draws at most this part of its power "
                "limit; default: no limit"},
    [SIMULATE_PREEMPT] = {.name = "preempt",
        .kind = OPTION_FLAG,
        .help = "running tasks give way to tasks that end sooner (predictive) or have had less "
                "(las): suspended where tasks are time-sliced, paused under MPS"},
    [SIMULATE_LOOK_AHEAD] = {.name = "look-ahead",
        .kind = OPTION_FLAG,
        .help = "with --preempt and predictive: several orders of the queue are simulated each "
                "time when other tasks run or wait, and the best is taken"},
    [SIMULATE_SLOTS] = {.name = "slots",
        .kind = OPTION_DURATION,
        .argument = "TIME",
        .help = "time-sliced tasks take turns: one whose time slot of this length is over is "
                "suspended if another waits; not with --preempt",
        .max = 86400 * SECOND_US},
    [SIMULATE_MAKE_ROOM] = {.name = "make-room",
        .kind = OPTION_FLAG,
        .help = "a time-sliced task is moved beside others when a waiting one can start on the GPU "
                "that it leaves, and gains more time than the move costs"},
    [SIMULATE_PRELOAD] = {.name = "preload",
        .kind = OPTION_FLAG,
        .help = "an allocation that finds too little memory waits instead of crashing; time-sliced "
                "tasks are moved or suspended for it; default: yes with --preempt, --slots or "
                "--make-room, else no"},
    [SIMULATE_SERVICE_HOLD] = {.name = "service-hold",
        .kind = OPTION_DURATION,
        .argument = "TIME",
        .help = "how long a service has to meet its latency target before a training comes beside "
                "it; default: 60s",
        .min = SECOND_US,
        .max = 86400 * SECOND_US},
    [SIMULATE_BACKFILL] = {.name = "backfill",
        .kind = OPTION_FLAG,
        .help = "tasks start before the first one that waits where by known times this does not "
                "delay it; no: strictly in order, as in the dissertation; default: yes"},
    [SIMULATE_ORDER] = {.name = "order",
        .kind = OPTION_CHOICE,
        .argument = "HOW",
        .help = "order of the users' tasks, if the trace has a column user: fair (by fair share "
                "of the GPUs) or fifo (by age); default: fair",
        .choices = orders},
    [SIMULATE_GPU_HOURS] = {.name = "gpu-hours-per-user",
        .kind = OPTION_INTEGER,
        .argument = "HOURS",
        .help =
            "GPU hours charged to a user, beyond which no further task of the user starts; 0: no "
            "limit; default: 0",
        .max = MILLION},
    [SIMULATE_GPU_HOURS_WINDOW] = {.name = "gpu-hours-window",
        .kind = OPTION_DURATION,
        .argument = "TIME",
        .help = "--gpu-hours-per-user counts what was charged within this time (1h to 365d); "
                "default: all, half of it after 7 days",
        .min = 3600 * SECOND_US,
        .max = 365 * 86400 * SECOND_US},
    [SIMULATE_RECOVERY_STEP] = {.name = "recovery-step-gib",
        .kind = OPTION_TEXT,
        .argument = "X",
        .help = "memory added to a task's requirement after each GPU memory crash, in GiB; "
                "0: the next attempt is where more is free than the task could get, later ones "
                "are alone on their GPUs; default: 0"},
    [SIMULATE_HOST_CPUS] = {.name = "host-cpus",
        .kind = OPTION_INTEGER,
        .argument = "N",
        .help = "CPUs of the server, for tasks whose catalogue has a column cpus; 0: not counted; "
                "default: 0",
        .max = 10000},
    [SIMULATE_HOST_MEMORY] = {.name = "host-memory-gib",
        .kind = OPTION_TEXT,
        .argument = "X",
        .help = "main memory of the server in GiB, for tasks whose catalogue has a column "
                "host_memory_mib; 0: not counted; default: 0"},
    [SIMULATE_SMACT] = {.name = "smact",
        .kind = OPTION_TEXT,
        .argument = "X",
        .help = "SM activity (0 to 1) of tasks whose catalogue has none; default: 0.5"},
    [SIMULATE_SEED] = {.name = "seed",
        .kind = OPTION_INTEGER,
        .argument = "N",
        .help = "seed of random variation of the run times; 0: no variation; default: 0",
        .max = INT64_MAX},
    [SIMULATE_RESAMPLE] = {.name = "resample",
        .kind = OPTION_INTEGER,
        .argument = "SEED",
        .help = "seed of a bootstrap sample of the trace (tasks and gaps drawn at "
                "random); 0: the trace itself; default: 0",
        .max = INT64_MAX},
    [SIMULATE_KINDS] = {.name = "gpu-kinds",
        .kind = OPTION_FILE,
        .argument = "FILE",
        .help = "file with further GPU models and constants, in the form of "
                "data/gpu-kinds.txt"},
    [SIMULATE_SPEEDS] = {.name = "gpu-speeds",
        .kind = OPTION_CHOICE,
        .argument = "WHAT",
        .help =
            "whether the scheduler knows how fast each kind of GPU is: known or unknown (it takes "
            "all for equally fast; tasks run at the speed of their kind); default: known",
        .choices = speeds},
    [SIMULATE_EVERY_SECOND] = {.name = "every-second",
        .kind = OPTION_FLAG,
        .help = "sample all GPUs every second as the daemon does; slow"},
    [SIMULATE_TRACE_OUT] = {.name = "trace-out",
        .kind = OPTION_FILE,
        .argument = "FILE",
        .help = "write a line for every event and decision to this file; -: standard output"},
    [SIMULATE_TIMELINE] = {.name = "timeline",
        .kind = OPTION_FILE,
        .argument = "FILE",
        .help = "write memory, SMACT and power of every GPU over time to this file, as CSV"},
    [SIMULATE_PER_TASK] = {.name = "per-task",
        .kind = OPTION_FILE,
        .argument = "FILE",
        .help = "write the waiting and run times of every task to this file, as CSV"},
};

/* The simulation that the options describe. */
struct setup {
    struct gpu_kinds kinds;
    struct cluster cluster;
    struct catalogue catalogue;
    struct simulation simulation;
    int log_trace;           /* the file in memory of a trace that was made of a log; or -1 */
    char log_trace_path[64]; /* in /proc */
};

static int number_of(const struct invocation *invocation, int option, double max, double otherwise,
    struct fault *fault, double *ret_value)
{
    const char *text = invocation->values[option].text;
    *ret_value = otherwise;
    if (!text || parse_double(text, 0, max, ret_value) == 0)
        return 0;
    return fault_set(fault, EINVAL, "--%s=%.60s: invalid number: give one from 0 to %g",
        options[option].name, text, max);
}

static int set_policy(const struct invocation *invocation, struct setup *setup, struct fault *fault,
    const char **ret_estimator)
{
    struct sim_policy policy;
    int r = simulating_policy(
        option_text_or(&invocation->values[SIMULATE_POLICY], "magm"), fault, &policy);
    *ret_estimator = option_text_or(&invocation->values[SIMULATE_ESTIMATOR], "declared");
    if (r < 0)
        return r;
    setup->simulation.settings.policy = policy.policy;
    if (policy.knows_memory)
        *ret_estimator = "declared";
    return 0;
}

/* The options of the admission test have the names and defaults of collocd's settings, so that what
 * was tried here can be copied there. Sizes are GiB on the command line and bytes inside. */
static int set_conditions(
    const struct invocation *invocation, struct core_settings *settings, struct fault *fault)
{
    struct conditions *conditions = &settings->conditions;
    double min_free_gib, margin_gib, step_gib, host_gib;
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
        r = number_of(invocation, SIMULATE_POWER_MAX, 1, 0, fault, &conditions->power_max);
    if (r == 0)
        r = number_of(invocation, SIMULATE_RECOVERY_STEP, 1e6, 0, fault, &step_gib);
    if (r == 0)
        r = number_of(invocation, SIMULATE_HOST_MEMORY, 1e6, 0, fault, &host_gib);
    if (r < 0)
        return r;
    conditions->server_power_max_w = (int)invocation->values[SIMULATE_SERVER_POWER].number;
    settings->recovery_step_bytes = (int64_t)(step_gib * (double)GIB);
    settings->host = (struct host_resources){
        (int)invocation->values[SIMULATE_HOST_CPUS].number, (int64_t)(host_gib * (double)GIB)};
    conditions->min_free_bytes = (int64_t)(min_free_gib * (double)GIB);
    conditions->margin_bytes = (int64_t)(margin_gib * (double)GIB);
    if (invocation->values[SIMULATE_SERVICE_HOLD].set)
        settings->service_hold_us = invocation->values[SIMULATE_SERVICE_HOLD].number;
    settings->user_limits.usage_us = invocation->values[SIMULATE_GPU_HOURS].number * 3600 *
                                     SECOND_US;
    settings->usage_window_us = invocation->values[SIMULATE_GPU_HOURS_WINDOW].number;
    conditions->starting_max = (int)invocation->values[SIMULATE_STARTING_MAX].number;
    if (invocation->values[SIMULATE_HOLD_OFF].set)
        settings->settle_max_us = invocation->values[SIMULATE_HOLD_OFF].number;
    return 0;
}

/* By streams the driver suspends tasks; clients of MPS it cannot, they are paused. */
static int set_suspension(
    const struct invocation *invocation, struct simulation *simulation, struct fault *fault)
{
    struct core_settings *settings = &simulation->settings;
    settings->preempt = invocation->values[SIMULATE_PREEMPT].number;
    settings->look_ahead = invocation->values[SIMULATE_LOOK_AHEAD].number;
    if (settings->look_ahead && !(settings->preempt && settings->policy->plan))
        return fault_set(fault, EINVAL,
            "--look-ahead: only --policy=predictive --preempt simulates orders of the queue");
    if (invocation->values[SIMULATE_BACKFILL].set)
        settings->backfill = invocation->values[SIMULATE_BACKFILL].number;
    settings->make_room = invocation->values[SIMULATE_MAKE_ROOM].number;
    simulation->take_turns = invocation->values[SIMULATE_SLOTS].set;
    if (simulation->take_turns)
        settings->slot_us = invocation->values[SIMULATE_SLOTS].number;
    if (simulation->take_turns && settings->preempt)
        return fault_set(fault, EINVAL,
            "--slots: with --preempt, the policy decides which task gives way: use one of the two");
    settings->can_suspend = settings->preempt || settings->make_room || simulation->take_turns ||
                            invocation->values[SIMULATE_PRELOAD].number;
    settings->preload = invocation->values[SIMULATE_PRELOAD].set
                            ? invocation->values[SIMULATE_PRELOAD].number
                            : settings->can_suspend;
    settings->can_pause = settings->preempt;
    if (settings->preempt && !settings->policy->rank)
        return fault_set(fault, EINVAL,
            "--preempt: the policy %s does not preempt tasks: use predictive or las",
            settings->policy->name);
    return 0;
}

/* The power of a card is no sample of its instances here. Power changes decisions at other moments
 * than those at which sampling.c samples. */
static int prepare_power(struct setup *setup, struct fault *fault)
{
    const struct conditions *conditions = &setup->simulation.settings.conditions;
    if (!conditions->server_power_max_w && !(conditions->power_max > 0))
        return 0;
    for (int i = 0; i < setup->cluster.n_places; i++)
        if (setup->cluster.identities[i].is_mig_instance)
            return fault_set(fault, EINVAL, "limits of power are not simulated with MIG instances");
    setup->simulation.every_second = true;
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

/* The log of a cluster instead of a trace: one is made of it. */
static int read_log(struct setup *setup, struct fault *fault)
{
    struct simulation *simulation = &setup->simulation;
    int r = simulating_log(
        simulation->trace, &setup->catalogue, setup->cluster.n_gpus, fault, &setup->log_trace);
    if (r < 0 || setup->log_trace < 0)
        return r;
    snprintf(
        setup->log_trace_path, sizeof setup->log_trace_path, "/proc/self/fd/%d", setup->log_trace);
    simulation->log = simulation->trace;
    simulation->trace = setup->log_trace_path;
    return 0;
}

static int find_trace(
    const struct invocation *invocation, struct fault *fault, const char **ret_trace)
{
    bool is_named = invocation->values[SIMULATE_TRACE].set, has_file = invocation->operand_count;
    if (!is_named && !has_file)
        return fault_set(fault, EINVAL,
            "simulate: no trace given: add --trace=FILE (`colloc help simulate` has "
            "its form)");
    if (is_named && has_file)
        return fault_set(fault, EINVAL,
            "simulate: two traces given, %.60s and --trace=%.60s: give one",
            invocation->operands[0], invocation->values[SIMULATE_TRACE].text);
    *ret_trace = has_file ? invocation->operands[0] : invocation->values[SIMULATE_TRACE].text;
    return 0;
}

/* The core gets the identities; the simulated GPUs keep their speeds. */
static void hide_speeds(struct cluster *cluster)
{
    for (int i = 0; i < cluster->n_places; i++)
        cluster->identities[i].speed = 0;
}

/* Reads all options and files before anything runs. */
static int prepare_simulation(
    const struct invocation *invocation, struct setup *setup, struct fault *fault)
{
    struct simulation *simulation = &setup->simulation;
    const char *estimator, *trace = NULL;
    if (find_trace(invocation, fault, &trace) < 0)
        return -EINVAL;
    *simulation = (struct simulation){
        .trace = trace,
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
        r = simulating_known(
            option_text_or(&invocation->values[SIMULATE_KNOWN], "activity"), fault, simulation);
    if (r == 0)
        r = sharing_parse(
            option_text_or(&invocation->values[SIMULATE_SHARING], "mps"), &simulation->sharing);
    if (r == 0)
        r = queue_order_parse(option_text_or(&invocation->values[SIMULATE_ORDER], "fair"),
            &simulation->settings.order);
    if (r == 0)
        r = set_conditions(invocation, &simulation->settings, fault);
    if (r == 0)
        r = set_suspension(invocation, simulation, fault);
    if (r == 0)
        r = number_of(invocation, SIMULATE_NEED_ERROR, 10, 0, fault, &simulation->need_error);
    if (r == 0)
        r = simulating_kinds(invocation->values[SIMULATE_KINDS].text, fault, &setup->kinds);
    if (r == 0)
        r = cluster_parse(&setup->kinds,
            option_text_or(&invocation->values[SIMULATE_GPUS], "4xA100-40GB"), fault,
            &setup->cluster);
    if (r == 0 &&
        strcmp(option_text_or(&invocation->values[SIMULATE_SPEEDS], "known"), "known") != 0)
        hide_speeds(&setup->cluster);
    if (r == 0)
        r = prepare_power(setup, fault);
    if (r == 0)
        r = read_tasks(invocation, setup, estimator, fault);
    return r < 0 ? r : read_log(setup, fault);
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
    return failed ? fault_set(fault, EIO, "--%s: write error: the file is incomplete", name) : 0;
}

static int close_outputs(const struct simulation *simulation, int r, struct fault *fault)
{
    const struct {
        FILE *file;
        int option;
    } outputs[] = {{simulation->trace_out, SIMULATE_TRACE_OUT},
        {simulation->timeline_out, SIMULATE_TIMELINE}, {simulation->tasks_out, SIMULATE_PER_TASK}};
    for (size_t i = 0; i < ARRAY_SIZE(outputs); i++) {
        int closed = close_output(
            outputs[i].file, options[outputs[i].option].name, r < 0 ? NULL : fault);
        r = r < 0 ? r : closed;
    }
    return r;
}

/* Does the trace name users of tasks that ended? */
static bool has_users(const struct user_totals *users)
{
    for (int i = 0; i < users->n; i++)
        if (users->list[i].tasks && *users->list[i].name)
            return true;
    return false;
}

/* Only where the trace has users. SLOWDOWN is the completion time over the execution time alone,
 * FAIRNESS is finish-time fairness (docs/fair-share.md). */
static void print_users(const struct user_totals *users)
{
    if (!has_users(users))
        return;
    printf("\nUSER               TASKS       WAIT  SLOWDOWN  FAIRNESS\n");
    for (int i = 0; i < users->n; i++) {
        const struct user_total *user = &users->list[i];
        char wait[32];
        if (!user->tasks)
            continue;
        double n = (double)user->tasks;
        printf("%-18.18s %5" PRId64 " %10s %9.2f ", *user->name ? user->name : "-", user->tasks,
            format_elapsed((int64_t)(user->wait_s / n * 1e6), wait, sizeof wait),
            user->stretch / n);
        struct reading fairness = user_total_fairness(user);
        if (fairness.valid)
            printf("%9.2f\n", fairness.value);
        else
            printf("%9s\n", "-");
    }
}

static json_t *reading_json(struct reading reading, double divisor)
{
    return reading.valid ? json_real(reading.value / divisor) : json_null();
}

static json_t *users_json(const struct user_totals *users)
{
    json_t *list = json_array();
    for (int i = 0; i < users->n; i++) {
        const struct user_total *user = &users->list[i];
        double n = (double)user->tasks;
        if (n == 0)
            continue;
        json_array_append_new(
            list, json_pack("{s:s, s:I, s:f, s:f, s:f, s:o, s:o}", "user", user->name, "tasks",
                      (json_int_t)user->tasks, "avg_wait_s", user->wait_s / n, "avg_jct_s",
                      user->jct_s / n, "slowdown", user->stretch / n, "avg_wait_alone_s",
                      reading_json(user->alone_wait_s, n), "finish_time_fairness",
                      reading_json(user_total_fairness(user), 1)));
    }
    return list;
}

/* Services alone have no lower bound. */
static void print_total_time(const struct simulation_result *result)
{
    char total[32], bound[32];
    printf(
        "Total time    %s", format_elapsed((int64_t)(result->total_s * 1e6), total, sizeof total));
    if (result->lower_bound_s > 0)
        printf(", %.2f times the lower bound (%s)", result->total_s / result->lower_bound_s,
            format_elapsed((int64_t)(result->lower_bound_s * 1e6), bound, sizeof bound));
    printf("\n");
}

static void print_preemption(const struct simulation_result *result)
{
    char waited[32];
    printf("Preemption    %" PRId64 " suspensions, %" PRId64 " moves", result->suspensions,
        result->moves);
    if (result->max_stretch.valid)
        printf(", completion at most %.2f times that of FIFO", result->max_stretch.value);
    printf("\n");
    if (result->memory_waits)
        printf("Memory        %" PRId64 " allocations waited, %s in all\n", result->memory_waits,
            format_elapsed((int64_t)(result->memory_wait_s * 1e6), waited, sizeof waited));
}

/* Preemption is only printed where tasks may be suspended. */
static void print_result(const struct simulation *simulation,
    const struct simulation_result *result, const struct user_totals *users)
{
    char wait[32], exec[32], jct[32];
    print_total_time(result);
    printf("Average       waiting %s, execution %s, completion %s\n",
        format_elapsed((int64_t)(result->avg_wait_s * 1e6), wait, sizeof wait),
        format_elapsed((int64_t)(result->avg_exec_s * 1e6), exec, sizeof exec),
        format_elapsed((int64_t)(result->avg_jct_s * 1e6), jct, sizeof jct));
    printf("Tasks         %" PRId64 " completed, %" PRId64 " failed, %" PRId64 " left out, %" PRId64
           " OOM crashes\n",
        result->completed, result->failed, result->left_out, result->oom);
    if (simulation->settings.can_suspend)
        print_preemption(result);
    printf(
        "GPUs          %.3f MJ, mean SMACT %.1f %%\n", result->energy_mj, 100 * result->mean_smact);
    print_users(users);
    service_rows_print(simulation->services, result->suspensions);
}

static void print_result_json(const struct simulation *simulation,
    const struct simulation_result *result, const struct user_totals *users)
{
    json_t *object = json_pack("{s:f,s:f,s:f,s:f,s:I,s:I,s:f,s:f,s:f,s:I,s:I}", "total_s",
        result->total_s, "avg_wait_s", result->avg_wait_s, "avg_exec_s", result->avg_exec_s,
        "avg_jct_s", result->avg_jct_s, "oom", (json_int_t)result->oom, "completed",
        (json_int_t)result->completed, "energy_mj", result->energy_mj, "mean_smact",
        result->mean_smact, "lower_bound_s", result->lower_bound_s, "failed",
        (json_int_t)result->failed, "left_out", (json_int_t)result->left_out);
    if (simulation->settings.can_suspend) {
        json_object_set_new(object, "suspensions", json_integer(result->suspensions));
        json_object_set_new(object, "moves", json_integer(result->moves));
        json_object_set_new(object, "max_stretch", reading_json(result->max_stretch, 1));
        json_object_set_new(object, "memory_waits", json_integer(result->memory_waits));
        json_object_set_new(object, "memory_wait_s", json_real(result->memory_wait_s));
    }
    if (has_users(users))
        json_object_set_new(object, "users", users_json(users));
    if (simulation->services->n) {
        json_object_set_new(object, "suspensions", json_integer(result->suspensions));
        json_object_set_new(object, "services", service_rows_json(simulation->services));
    }
    print_json(object);
    json_decref(object);
}

/* Where tasks can be suspended, or of several users, the trace is run again, for a comparison. */
static int run_simulation(const struct simulation *simulation, struct fault *fault,
    struct simulation_result *ret_result, struct user_totals *ret_users)
{
    if (!simulation->settings.can_suspend)
        return simulate_with_users(simulation, fault, ret_result, ret_users);
    struct simulation with_users = *simulation;
    with_users.users = ret_users;
    return simulate_with_stretch(&with_users, fault, ret_result);
}

/* Outputs are closed, and their errors reported, after a simulation that failed as well. */
static int run(const struct invocation *invocation)
{
    struct setup setup = {.log_trace = -1};
    struct simulation_result result;
    struct user_totals users = {0};
    struct service_totals services = {0};
    struct fault fault = {0};
    int r = prepare_simulation(invocation, &setup, &fault);
    setup.simulation.services = &services;
    if (r == 0)
        r = open_outputs(invocation, &fault, &setup.simulation);
    if (r == 0)
        r = run_simulation(&setup.simulation, &fault, &result, &users);
    r = close_outputs(&setup.simulation, r, &fault);
    if (r < 0)
        print_error("%s", fault.text);
    else
        (invocation->common[COMMON_JSON].number ? print_result_json : print_result)(
            &setup.simulation, &result, &users);
    service_totals_fini(&services);
    user_totals_fini(&users);
    catalogue_fini(&setup.catalogue);
    cluster_fini(&setup.cluster);
    if (setup.log_trace >= 0)
        close(setup.log_trace);
    return r < 0 ? EXIT_USAGE : EXIT_OK;
}

const struct command command_simulate = {
    .name = "simulate",
    .usage = "[OPTION...] FILE",
    .summary = "simulate a policy on a trace of tasks, without a daemon or GPUs",
    .description = "Runs the daemon's scheduler with a virtual clock on simulated GPUs, with an "
                   "interference model of tasks that share a GPU. Prints total time (makespan), "
                   "average waiting, execution and completion time, crashes, energy, and a "
                   "lower bound of the total time for any policy.\n\n"
                   "The files are tables, comma- or blank-separated, with column names in the "
                   "first line. The trace has submit_s and task, in order of time; instead of "
                   "one, the log of a cluster is taken that `colloc trace import` recognises. The "
                   "catalogue has task, gpus, solo_s (or epochs and epoch_minutes), memory and, "
                   "if known, smact, dram and power_w. A task that fits no GPU is reported and "
                   "left out.\n\n"
                   "The oracles off, obf, owf and olug are first-fit, best-fit, magm and lug "
                   "with exact knowledge of every task's memory.",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_FILE,
    .max_operands = 1,
    .common_without = WITHOUT_SOCKET,
    .run = run,
};
