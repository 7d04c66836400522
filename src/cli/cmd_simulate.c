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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/simulating.h"
#include "cli/simulating_log.h"
#include "cli/simulating_mixes.h"
#include "cli/simulation_report.h"
#include "core/setting_table.h"
#include "core/stop_spec.h"
#include "sim/service_totals.h"
#include "sim/simulate.h"
#include "sim/stretch.h"
#include "sim/users_alone.h"

enum {
    SIMULATE_TRACE,
    SIMULATE_TASKS,
    SIMULATE_GPUS,
    SIMULATE_POLICY,
    SIMULATE_ESTIMATOR,
    SIMULATE_KNOWN,
    SIMULATE_LEARN,
    SIMULATE_NEED_ERROR,
    SIMULATE_SHARING,
    SIMULATE_SMACT_MAX,
    SIMULATE_SMACT_SUM_MAX,
    SIMULATE_MIN_FREE,
    SIMULATE_MARGIN,
    SIMULATE_SETTLE_MAX,
    SIMULATE_STARTING_MAX,
    SIMULATE_SLOWDOWN_MAX,
    SIMULATE_SERVER_POWER_MAX,
    SIMULATE_POWER_MAX,
    SIMULATE_PREEMPT,
    SIMULATE_LOOK_AHEAD,
    SIMULATE_SLOT,
    SIMULATE_MAKE_ROOM,
    SIMULATE_NEIGHBOUR_MEMORY,
    SIMULATE_PRELOAD,
    SIMULATE_CARRIER,
    SIMULATE_SERVICE_HOLD,
    SIMULATE_LEARN_DELAYS,
    SIMULATE_THIN_OUT,
    SIMULATE_PROBE_SHARE,
    SIMULATE_PROMISE,
    SIMULATE_PROMISE_SHARE,
    SIMULATE_SPEEDS_UNKNOWN,
    SIMULATE_DELAY_FACTOR,
    SIMULATE_DELAY_ERROR,
    SIMULATE_BACKFILL,
    SIMULATE_ORDER,
    SIMULATE_USER_USAGE,
    SIMULATE_USAGE_WINDOW,
    SIMULATE_DECISION_DELAY,
    SIMULATE_RECOVERY,
    SIMULATE_RECOVERY_STEP,
    SIMULATE_HOST_CPUS,
    SIMULATE_HOST_MEMORY,
    SIMULATE_COPIES_MAX,
    SIMULATE_SMACT,
    SIMULATE_STOP,
    SIMULATE_CURVE_SEED,
    SIMULATE_SEED,
    SIMULATE_RESAMPLE,
    SIMULATE_KINDS,
    SIMULATE_SPEEDS,
    SIMULATE_MIXES,
    SIMULATE_EVERY_SECOND,
    SIMULATE_MIXES_MISSING,
    SIMULATE_TRACE_OUT,
    SIMULATE_TIMELINE,
    SIMULATE_PER_TASK,
    SIMULATE_OPTIONS
};

static const char *const sharings[] = {"streams", "mps", "auto", NULL};
static const char *const orders[] = {"fair", "fifo", NULL};
static const char *const recovery_rules[] = {"drain", "stop-queue", NULL};
static const char *const speeds[] = {"known", "unknown", NULL};

static const struct option_spec options[SIMULATE_OPTIONS] = {
    [SIMULATE_TRACE] = OPTION("trace", FILE, "FILE",
        .help = "trace: which task is submitted when, or the log of a cluster (required, or as "
                "FILE)"),
    [SIMULATE_TASKS] = OPTION("tasks", FILE, "FILE",
        .help = "catalogue of the tasks in the trace; default: data/traces/tasks.txt, which "
                "is built in"),
    [SIMULATE_GPUS] = OPTION("gpus", TEXT, "GPUS",
        .help = "GPUs to simulate, such as 2xA100-80GB,H100 or, with MIG instances, "
                "A100-40GB:3g.20gb+3g.20gb; of a cluster, each node in braces: "
                "300x{8xA30},20x{2xT4,2xH100}; default: 4xA100-40GB"),
    [SIMULATE_POLICY] = OPTION("policy", TEXT, "NAME", .choice_at = sim_policy_name_at,
        .help = "a policy of the daemon or an oracle: {choices}; default: magm"),
    [SIMULATE_ESTIMATOR] = OPTION("estimator", TEXT, "NAME",
        .help = "source of each task's memory requirement: none, declared, or NAME for the "
                "column NAME_mb_reported or NAME_mib of the catalogue; default: declared"),
    [SIMULATE_KNOWN] = OPTION("known", CHOICE, "WHAT", .choices = simulating_knowns,
        .help = "what the scheduler knows of each task besides memory (for the policy "
                "predictive and for backfill): none, activity, time or all; default: activity"),
    [SIMULATE_LEARN] = FLAG_OPTION("learn",
        .help = "a completed run says what the user's further runs of the same task take, where it "
                "is not known, as for the daemon (docs/estimate.md)"),
    [SIMULATE_NEED_ERROR] = OPTION("need-error", TEXT, "X",
        .help = "error of the memory requirements: standard deviation of a log-normal "
                "factor; 0.2 is about 20 %; default: 0"),
    [SIMULATE_SHARING] = OPTION("sharing", CHOICE, "HOW", .choices = sharings,
        .help = "how tasks share a GPU: streams (time-sliced), mps, or auto (the better one for "
                "each placement); default: mps"),
    [SIMULATE_CARRIER] = FLAG_OPTION("carrier",
        .help =
            "a task's memory leaves its GPU and comes back at the speed of PCIe, as with the "
            "setting carrier, instead of the driver's checkpoint; clients of MPS are suspended, "
            "too (docs/carrier.md)"),
    [SIMULATE_SMACT] = OPTION("smact", TEXT, "X",
        .help = "SM activity (0 to 1) of tasks whose catalogue has none; default: 0.5"),
    [SIMULATE_STOP] = OPTION("stop", TEXT, "RULE",
        .help = "stop losing trials of the trace's arrays (its column array), as the option of "
                "submit: asha:metric=NAME,min|max,rung=STEP[,factor=N]; default: none"),
    [SIMULATE_CURVE_SEED] = OPTION("curve-seed", INTEGER, "N", .max = INT64_MAX,
        .help = "seed of the loss curves of trials for which the trace has no metric; default: 1"),
    [SIMULATE_SEED] = OPTION("seed", INTEGER, "N", .max = INT64_MAX,
        .help = "seed of random variation of the run times; 0: no variation; default: 0"),
    [SIMULATE_RESAMPLE] = OPTION("resample", INTEGER, "SEED", .max = INT64_MAX,
        .help = "seed of a bootstrap sample of the trace (tasks and gaps drawn at "
                "random); 0: the trace itself; default: 0"),
    [SIMULATE_KINDS] = OPTION("gpu-kinds", FILE, "FILE",
        .help = "file with further GPU models and constants, in the form of "
                "data/gpu-kinds.txt"),
    [SIMULATE_SPEEDS] = OPTION("gpu-speeds", CHOICE, "WHAT", .choices = speeds,
        .help =
            "whether the scheduler knows how fast each kind of GPU is: known or unknown (it takes "
            "all for equally fast; tasks run at the speed of their kind); default: known"),
    [SIMULATE_PROMISE] = OPTION("promise", TEXT, "X",
        .help = "promise tasks, drawn at random, at most X times as long as alone, as with "
                "--max-slowdown (docs/promise.md); default: none"),
    [SIMULATE_PROMISE_SHARE] = OPTION("promise-share", TEXT, "X",
        .help = "the part of the tasks that have the promise, 0 to 1; default: 1"),
    [SIMULATE_SPEEDS_UNKNOWN] = OPTION("speeds-unknown", TEXT, "X",
        .help =
            "the part of the tasks, 0 to 1, whose speed alone no earlier run has shown: it is not "
            "known until a task is alone, or a probe measures it (--probe-share); default: 0"),
    [SIMULATE_DELAY_FACTOR] = OPTION("delay-factor", TEXT, "X",
        .help = "the simulated tasks delay each other X times as much as the scheduler's model "
                "predicts; default: 1"),
    [SIMULATE_DELAY_ERROR] = OPTION("delay-error", TEXT, "X",
        .help = "random error of the scheduler's model: standard deviation of a further log-normal "
                "factor of each kind of task; default: 0"),
    [SIMULATE_MIXES] = OPTION("mixes", FILE, "FILE",
        .help = "measured speeds of trainings that share a GPU, instead of the interference model "
                "where the mix was measured (docs/mixes.md)"),
    [SIMULATE_MIXES_MISSING] = OPTION("mixes-missing", FILE, "FILE",
        .help = "write the mixes that the trace visits and --mixes lacks to this file, as CSV, for "
                "scripts/measure-mixes"),
    [SIMULATE_EVERY_SECOND] = FLAG_OPTION(
        "every-second", .help = "sample all GPUs every second as the daemon does; slow"),
    [SIMULATE_TRACE_OUT] = OPTION("trace-out", FILE, "FILE",
        .help = "write a line for every event and decision to this file; -: standard output"),
    [SIMULATE_TIMELINE] = OPTION("timeline", FILE, "FILE",
        .help = "write memory, SMACT and power of every GPU over time to this file, as CSV"),
    [SIMULATE_PER_TASK] = OPTION("per-task", FILE, "FILE",
        .help = "write the waiting and run times of every task to this file, as CSV"),
#define SIMULATE_OPTION(id, ...) [SIMULATE_##id] = {__VA_ARGS__},
#include "core/settings.def"
};

/* The options that are settings of the core. */
static const struct {
    int option;
    enum core_setting_id setting;
} core_options[] = {
#define SIMULATE_OPTION(id, ...) {SIMULATE_##id, CORE_SETTING_##id},
#include "core/settings.def"
};

/* The simulation that the options describe. */
struct setup {
    struct gpu_kinds kinds;
    struct cluster cluster;
    struct catalogue catalogue;
    struct simulating_mixes mixes;
    struct halving_rule stop;
    FILE *missing_out; /* --mixes-missing, or NULL */
    struct simulation simulation;
    struct log_trace log;
    char log_path[64]; /* of its trace, in /proc */
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

/* A number of GiB, or without a unit. */
static int set_number(const struct invocation *invocation, int option,
    const struct core_setting *setting, struct core_settings *settings, struct fault *fault)
{
    double number;
    int r = number_of(invocation, option, core_setting_number_max(setting), 0, fault, &number);
    if (r == 0)
        core_setting_put_number(setting, number, settings);
    return r;
}

/* Sets what one option says of the core's setting. */
static int set_core_setting(const struct invocation *invocation, int option,
    const struct core_setting *setting, struct core_settings *settings, struct fault *fault)
{
    const struct option_value *value = &invocation->values[option];
    void *at = core_setting_at(setting, settings);
    if (options[option].kind == OPTION_TEXT)
        return set_number(invocation, option, setting, settings, fault);
    if (options[option].kind == OPTION_CHOICE)
        return setting_parse(setting->kind, value->text, at, setting->size);
    bool is_in_hours = setting->kind == &setting_hours;
    setting_put_integer(setting->kind, is_in_hours ? value->number * HOUR_US : value->number, at);
    return 0;
}

/* An option that is not given leaves the default, which is that of collocd but for
 * COLLOCD_DEFAULT. */
static int set_core_settings(
    const struct invocation *invocation, struct core_settings *settings, struct fault *fault)
{
    int r = 0;
    for (size_t i = 0; i < ARRAY_SIZE(core_options) && r == 0; i++)
        if (invocation->values[core_options[i].option].set)
            r = set_core_setting(invocation, core_options[i].option,
                &core_setting_table[core_options[i].setting], settings, fault);
    return r;
}

/* By streams the driver suspends tasks; clients of MPS only the carrier can, else they are
 * paused. */
static int set_suspension(
    const struct invocation *invocation, struct simulation *simulation, struct fault *fault)
{
    struct core_settings *settings = &simulation->settings;
    if (settings->look_ahead && !(settings->preempt && settings->policy->plan))
        return fault_set(fault, EINVAL,
            "--look-ahead: only --policy=predictive --preempt simulates orders of the queue");
    simulation->take_turns = invocation->values[SIMULATE_SLOT].set;
    if (simulation->take_turns && settings->preempt)
        return fault_set(fault, EINVAL,
            "--slots: with --preempt, the policy decides which task gives way: use one of the two");
    settings->can_suspend = settings->preempt || settings->make_room || simulation->take_turns ||
                            settings->preload;
    if (!invocation->values[SIMULATE_PRELOAD].set)
        settings->preload = settings->can_suspend;
    settings->can_pause = settings->preempt;
    settings->carries_mps = invocation->values[SIMULATE_CARRIER].set;
    if (settings->neighbour_memory && !settings->carries_mps)
        return fault_set(fault, EINVAL,
            "--neighbour-memory: only the carrier takes memory there: add --carrier");
    int r = core_settings_check(settings, fault);
    if (r < 0)
        return r;
    if (settings->preempt && !settings->policy->rank)
        return fault_set(fault, EINVAL,
            "--preempt: the policy %s does not preempt tasks: use predictive or las",
            settings->policy->name);
    return 0;
}

/* A trace that is drawn at random from another's rows has no arrays. */
static int set_stop(const struct invocation *invocation, struct setup *setup, struct fault *fault)
{
    const char *rule = invocation->values[SIMULATE_STOP].text;
    const struct option_value *seed = &invocation->values[SIMULATE_CURVE_SEED];
    setup->simulation.curve_seed = seed->set ? (uint64_t)seed->number : 1;
    if (!rule)
        return seed->set ? fault_set(fault, EINVAL, "--curve-seed has a meaning with --stop only")
                         : 0;
    if (setup->simulation.resample)
        return fault_set(fault, EINVAL,
            "--stop: --resample draws single tasks, which are no arrays: use one of the two");
    setup->simulation.stop = &setup->stop;
    return stop_spec_parse(rule, fault, &setup->stop);
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

/* What is promised, and how far the truth is from the scheduler's model. */
static int set_promises(
    const struct invocation *invocation, struct simulation *simulation, struct fault *fault)
{
    int r = number_of(invocation, SIMULATE_PROMISE, 100, 0, fault, &simulation->promise);
    if (r == 0)
        r = number_of(invocation, SIMULATE_PROMISE_SHARE, 1, 1, fault, &simulation->promise_share);
    if (r == 0)
        r = number_of(
            invocation, SIMULATE_SPEEDS_UNKNOWN, 1, 0, fault, &simulation->speeds_unknown);
    if (r == 0)
        r = number_of(invocation, SIMULATE_DELAY_FACTOR, 10, 1, fault, &simulation->delay_factor);
    if (r == 0)
        r = number_of(invocation, SIMULATE_DELAY_ERROR, 2, 0, fault, &simulation->delay_error);
    if (r == 0 && invocation->values[SIMULATE_PROMISE].set && simulation->promise < 1)
        r = fault_set(fault, EINVAL,
            "--promise=%g: a task cannot take less time than alone: give 1 to 100",
            simulation->promise);
    if (r == 0 && invocation->values[SIMULATE_PROMISE_SHARE].set && simulation->promise == 0)
        r = fault_set(fault, EINVAL, "--promise-share has a meaning with --promise only");
    if (r == 0 && simulation->delay_factor == 0)
        r = fault_set(fault, EINVAL, "--delay-factor=0: give a number above 0");
    return r;
}

/* `path`: NULL: the built-in catalogue. */
static int read_tasks(const struct invocation *invocation, struct setup *setup, const char *path,
    const char *estimator, struct fault *fault)
{
    struct catalogue_settings settings = {.estimator = estimator};
    int r = number_of(invocation, SIMULATE_SMACT, 1, 0.5, fault, &settings.smact);
    if (r == 0)
        r = simulating_catalogue(path, &settings, fault, &setup->catalogue);
    return r;
}

/* The memory of the smallest GPU, or instance, of those simulated. */
static int64_t least_gpu_bytes(const struct cluster *cluster)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < cluster->n_places; i++)
        if (cluster->identities[i].mem_total_bytes < least)
            least = cluster->identities[i].mem_total_bytes;
    return least;
}

/* The tasks that were made of the jobs of a log take the place of the catalogue. */
static int read_jobs(const struct invocation *invocation, struct setup *setup,
    const char *estimator, struct fault *fault)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", setup->log.tasks);
    catalogue_fini(&setup->catalogue);
    return read_tasks(invocation, setup, path, estimator, fault);
}

/* The log of a cluster instead of a trace: one is made of it. */
static int read_log(const struct invocation *invocation, struct setup *setup, const char *estimator,
    struct fault *fault)
{
    struct simulation *simulation = &setup->simulation;
    const struct simulated_log log = {.path = simulation->trace,
        .catalogue = &setup->catalogue,
        .gpus_max = setup->cluster.n_gpus,
        .gpu_bytes = least_gpu_bytes(&setup->cluster),
        .keeps_lengths = !invocation->values[SIMULATE_TASKS].set && !simulation->mixes};
    int r = simulating_log(&log, fault, &setup->log);
    if (r < 0 || setup->log.trace < 0)
        return r;
    if (simulation->stop)
        return fault_set(fault, EINVAL,
            "--stop: %.80s is the log of a cluster, which has no arrays: give a trace with the column "
            "array",
            simulation->trace);
    snprintf(setup->log_path, sizeof setup->log_path, "/proc/self/fd/%d", setup->log.trace);
    simulation->log = simulation->trace;
    simulation->trace = setup->log_path;
    return setup->log.tasks < 0 ? 0 : read_jobs(invocation, setup, estimator, fault);
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

enum { CLOSEST = 'A' }; /* 18 NVLinks: gpu/topology.c */

/* With --neighbour-memory NVLink joins all cards of the server. */
static void join_cards(struct cluster *cluster)
{
    for (int i = 0; i < cluster->n_places && i < VIEW_DISTANCES_MAX; i++)
        memset(cluster->identities[i].distances, CLOSEST, (size_t)i);
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
        .learns = invocation->values[SIMULATE_LEARN].set,
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
        r = set_core_settings(invocation, &simulation->settings, fault);
    if (r == 0)
        r = set_suspension(invocation, simulation, fault);
    if (r == 0)
        r = set_stop(invocation, setup, fault);
    if (r == 0)
        r = set_promises(invocation, simulation, fault);
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
    if (r == 0 && simulation->settings.neighbour_memory)
        join_cards(&setup->cluster);
    if (r == 0)
        r = prepare_power(setup, fault);
    if (r == 0)
        r = read_tasks(
            invocation, setup, invocation->values[SIMULATE_TASKS].text, estimator, fault);
    if (r == 0 &&
        (invocation->values[SIMULATE_MIXES].set || invocation->values[SIMULATE_MIXES_MISSING].set))
        r = simulating_mixes_read(
            &setup->mixes, invocation->values[SIMULATE_MIXES].text, simulation, fault);
    return r < 0 ? r : read_log(invocation, setup, estimator, fault);
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
    const struct invocation *invocation, struct fault *fault, struct setup *setup)
{
    struct simulation *simulation = &setup->simulation;
    int r = open_output(invocation, SIMULATE_MIXES_MISSING, fault, &setup->missing_out);
    if (r == 0)
        r = open_output(invocation, SIMULATE_TRACE_OUT, fault, &simulation->trace_out);
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

static int close_outputs(struct setup *setup, int r, struct fault *fault)
{
    const struct simulation *simulation = &setup->simulation;
    if (r == 0 && setup->missing_out)
        mix_use_print_missing(&setup->mixes.use, setup->mixes.gpu, setup->missing_out);
    const struct {
        FILE *file;
        int option;
    } outputs[] = {{setup->missing_out, SIMULATE_MIXES_MISSING},
        {simulation->trace_out, SIMULATE_TRACE_OUT}, {simulation->timeline_out, SIMULATE_TIMELINE},
        {simulation->tasks_out, SIMULATE_PER_TASK}};
    for (size_t i = 0; i < ARRAY_SIZE(outputs); i++) {
        int closed = close_output(
            outputs[i].file, options[outputs[i].option].name, r < 0 ? NULL : fault);
        r = r < 0 ? r : closed;
    }
    return r;
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
    struct setup setup = {.log = {-1, -1}};
    struct simulation_result result;
    struct user_totals users = {0};
    struct service_totals services = {0};
    const struct simulation_report report = {&setup.simulation, &setup.mixes, &result, &users};
    struct fault fault = {0};
    int r = prepare_simulation(invocation, &setup, &fault);
    setup.simulation.services = &services;
    if (r == 0)
        r = open_outputs(invocation, &fault, &setup);
    if (r == 0)
        r = run_simulation(&setup.simulation, &fault, &result, &users);
    r = close_outputs(&setup, r, &fault);
    if (r < 0 && fault.text[0]) /* else a program has printed it */
        print_error("%s", fault.text);
    if (r == 0)
        (invocation->common[COMMON_JSON].number ? simulation_report_print_json
                                                : simulation_report_print)(&report);
    service_totals_fini(&services);
    user_totals_fini(&users);
    simulating_mixes_fini(&setup.mixes);
    catalogue_fini(&setup.catalogue);
    cluster_fini(&setup.cluster);
    if (setup.log.trace >= 0)
        close(setup.log.trace);
    if (setup.log.tasks >= 0)
        close(setup.log.tasks);
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
