/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the parts are connected. A part is given the lower parts, which it calls. A call up is a hook
 * of the lower part, a function in this file:
 *
 *     driver      start, kill, retry -----------------> attempts
 *                 start ------------------------------> kernels
 *                 suspend, resume, move, pause -------> suspension
 *                 answer_memory ----------------------> preload
 *                 recorded ---------------------------> messages
 *                 record_end, ended ------------------> http, attempts, run history, jobs
 *     names       looked up --------------------------> http, jobs
 *     gpus        find_shim, cgroup_home, polled -----> attempts, suspension
 *                 polled -----------------------------> metrics, preload, mps, kernels
 *                 calls_idle_us, is_hooked, can_carry -> preload
 *                 health_changed ---------------------> messages
 *     mps         ready ------------------------------> attempts
 *                 answered ---------------------------> http
 *     suspension  answer -----------------------------> http
 *     http        served, make_login -----------------> the page's server
 */
#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/alone_time.h"
#include "daemon/attempt_list.h"
#include "daemon/attempts/attempts.h"
#include "daemon/attempts/attempts_query.h"
#include "daemon/audit.h"
#include "daemon/daemon.h"
#include "daemon/gpus/gpus.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/http/http_answers.h"
#include "daemon/step_list.h"
#include "daemon/time_base.h"

#define METRIC_BATCH_US      (5 * SECOND_US)  /* chosen: a crash may lose this much */
#define METRIC_IDLE_BATCH_US (30 * SECOND_US) /* chosen: the same while no task runs */

/* ---- the driver's ---- */

static void driver_start(void *context, uint64_t task)
{
    struct daemon *daemon = context;
    kernel_asker_review(daemon->kernels);
    attempts_start(daemon->attempts, task);
}

static void driver_kill(void *context, uint64_t task)
{
    struct daemon *daemon = context;
    attempts_kill(daemon->attempts, task);
}

static void driver_suspend(void *context, uint64_t task)
{
    struct daemon *daemon = context;
    suspension_suspend(daemon->suspension, task);
}

static void driver_resume(void *context, uint64_t task)
{
    struct daemon *daemon = context;
    suspension_resume(daemon->suspension, task);
}

static void driver_move(void *context, uint64_t task)
{
    struct daemon *daemon = context;
    suspension_move(daemon->suspension, task);
}

static void driver_relocate(void *context, uint64_t task)
{
    struct daemon *daemon = context;
    suspension_relocate(daemon->suspension, task);
}

static void driver_pause(void *context, uint64_t task)
{
    struct daemon *daemon = context;
    suspension_pause(daemon->suspension, task);
    preload_manager_note_pause(daemon->preload);
}

static void driver_unpause(void *context, uint64_t task)
{
    struct daemon *daemon = context;
    suspension_continue(daemon->suspension, task);
}

static void driver_answer_memory(void *context, uint64_t task, bool is_granted)
{
    struct daemon *daemon = context;
    preload_manager_answer_memory(daemon->preload, task, is_granted);
}

static void driver_retry(void *context)
{
    struct daemon *daemon = context;
    attempts_retry(daemon->attempts);
}

static void driver_stepped(void *context, const struct event *event, int answer)
{
    struct daemon *daemon = context;
    inputs_note_step(daemon->inputs, daemon->core, event, answer);
}

static void driver_decided(void *context, const struct event *event, const json_t *detail)
{
    struct daemon *daemon = context;
    struct job *job = jobs_find(daemon->jobs, event->task);
    if (job)
        attempt_list_note(&job->attempts, daemon->core, event);
    if (job && event->kind == EVENT_CANCEL)
        job_note_cancel(job, detail);
    if (job && event->kind == EVENT_STEP)
        step_list_note(&job->srun_steps, event->time_us, detail);
}

static json_t *driver_record_end(void *context, const struct task *task)
{
    struct daemon *daemon = context;
    return http_task_json(daemon->http, task);
}

static void driver_recorded(void *context, const struct event *event, const json_t *detail)
{
    struct daemon *daemon = context;
    audit_event(daemon->core, daemon->jobs, event, detail);
    jobs_note_change(daemon->jobs, event, detail);
    messages_note(daemon->messages, event);
}

/* Requests that wait for the task are answered, and its folders are cleaned. */
static void driver_ended(void *context, uint64_t id, const json_t *record)
{
    struct daemon *daemon = context;
    http_task_ended(daemon->http, id, record);
    run_history_take(&daemon->run_history, record);
    command_estimates_update(
        daemon->driver, daemon->core, daemon->jobs, &daemon->run_history.commands, record);
    attempts_clean(daemon->attempts, core_task(daemon->core, id));
    suspension_task_ended(daemon->suspension, id);
    jobs_retire(daemon->jobs, jobs_find(daemon->jobs, id), driver_now_us(daemon->driver));
    inputs_note_forgotten(daemon->inputs, id);
}

int wiring_create_driver(struct daemon *daemon, int64_t last_us, struct fault *fault)
{
    const struct driver_options options = {
        .loop = &daemon->loop,
        .core = daemon->core,
        .store = daemon->store,
        .state_dir = daemon->config.state_dir,
        .clock_offset_us = time_base_open(daemon->config.state_dir, last_us).offset_us,
        .last_us = last_us,
        .hooks = {.context = daemon,
            .start = driver_start,
            .kill = driver_kill,
            .suspend = driver_suspend,
            .resume = driver_resume,
            .move = driver_move,
            .relocate = driver_relocate,
            .pause = driver_pause,
            .unpause = driver_unpause,
            .answer_memory = driver_answer_memory,
            .stepped = driver_stepped,
            .decided = driver_decided,
            .record_end = driver_record_end,
            .recorded = driver_recorded,
            .ended = driver_ended,
            .retry = driver_retry},
    };
    daemon->driver = driver_create(&options);
    return daemon->driver ? 0 : fault_set(fault, ENOMEM, "out of memory");
}

/* ---- the attempts ---- */

static struct attempts *create_attempts(struct daemon *daemon)
{
    const struct attempts_options options = {
        .loop = &daemon->loop,
        .config = &daemon->config,
        .core = daemon->core,
        .jobs = daemon->jobs,
        .store = daemon->store,
        .driver = daemon->driver,
        .open_files = daemon->open_files,
        .gpus = daemon->gpus,
        .mps = daemon->mps,
        .preload = daemon->preload,
    };
    return attempts_create(&options);
}

/* ---- the GPUs' ---- */

static pid_t gpus_find_shim(void *context, uint64_t task)
{
    struct daemon *daemon = context;
    return attempts_find_shim(daemon->attempts, task);
}

static const char *gpus_cgroup_home(void *context)
{
    struct daemon *daemon = context;
    return attempts_cgroup_home(daemon->attempts);
}

static void gpus_polled(void *context, int64_t poll)
{
    struct daemon *daemon = context;
    struct gpu_report gpu;
    for (size_t i = 0; gpus_report(daemon->gpus, i, &gpu); i++)
        metric_recorder_take(daemon->metrics, daemon->core, &gpu);
    attempts_polled(daemon->attempts, poll);
    mps_review(daemon->mps);
    suspension_polled(daemon->suspension, poll);
    preload_manager_polled(daemon->preload);
    alone_time_note_all(daemon->core, daemon->jobs, driver_now_us(daemon->driver));
    command_estimates_note_steps(
        daemon->driver, daemon->core, daemon->jobs, &daemon->run_history.commands);
    outside_polled(daemon->outside);
    kernel_asker_review(daemon->kernels);
}

static void gpus_health_changed(
    void *context, int view, const struct gpu_info *info, const char *health, const char *why)
{
    struct daemon *daemon = context;
    const struct gpu_view *gpu = &core_view(daemon->core)->gpus[view];
    uint64_t *tasks = calloc((size_t)gpu->n_residents + 1, sizeof *tasks);
    char name[160];
    if (!tasks)
        return;
    for (int i = 0; i < gpu->n_residents; i++)
        tasks[i] = gpu->residents[i].task;
    snprintf(name, sizeof name, "%s (%s)", info->index, info->name);
    const struct gpu_health_change change = {name, health, why, tasks, (size_t)gpu->n_residents};
    messages_note_gpu(daemon->messages, &change);
    free(tasks);
}

static struct reading gpus_calls_idle_us(void *context, uint64_t task, struct process_id id)
{
    struct daemon *daemon = context;
    return preload_manager_calls_idle_us(daemon->preload, task, id);
}

static bool gpus_is_hooked(void *context, uint64_t task, struct process_id id)
{
    struct daemon *daemon = context;
    return preload_manager_knows(daemon->preload, task, id);
}

static bool gpus_can_carry(void *context, uint64_t task, struct process_id id)
{
    struct daemon *daemon = context;
    return preload_manager_can_carry(daemon->preload, task, id);
}

static struct gpus *create_gpus(struct daemon *daemon)
{
    const struct gpus_options options = {
        .loop = &daemon->loop,
        .config = &daemon->config,
        .core = daemon->core,
        .jobs = daemon->jobs,
        .driver = daemon->driver,
        .disk = daemon->disk,
        .hooks = {.context = daemon,
            .find_shim = gpus_find_shim,
            .cgroup_home = gpus_cgroup_home,
            .polled = gpus_polled,
            .health_changed = gpus_health_changed,
            .calls_idle_us = gpus_calls_idle_us,
            .is_hooked = gpus_is_hooked,
            .can_carry = gpus_can_carry},
    };
    return gpus_create(&options);
}

/* ---- the metrics ---- */

/* Without metrics the daemon does its work all the same. */
static struct metric_recorder *create_metrics(struct daemon *daemon)
{
    char path[600];
    struct fault fault = {0};
    const struct metric_options options = {
        .loop = &daemon->loop,
        .path = path,
        .bytes_max = daemon->config.metrics_bytes_max,
        .keep_us = daemon->config.history_us,
        .batch_us = METRIC_BATCH_US,
        .idle_batch_us = METRIC_IDLE_BATCH_US,
        .core = daemon->core,
        .attempts = daemon->attempts,
        .jobs = daemon->jobs,
        .disk = daemon->disk,
    };
    metric_remove_old_samples(daemon->config.state_dir);
    if (options.bytes_max == 0)
        return NULL;
    snprintf(path, sizeof path, "%s/metrics.db", daemon->config.state_dir);
    struct metric_recorder *recorder = metric_recorder_create(&options, &fault);
    if (!recorder)
        log_warning("metrics are not recorded: %s", fault.text);
    return recorder;
}

/* ---- the MPS manager's ---- */

static void mps_is_ready(void *context, uid_t uid)
{
    struct daemon *daemon = context;
    attempts_mps_ready(daemon->attempts, uid);
}

static void mps_has_answered(void *context)
{
    struct daemon *daemon = context;
    http_serve_soon(daemon->http);
}

static struct mps *create_mps(struct daemon *daemon)
{
    const struct mps_options options = {
        .loop = &daemon->loop,
        .config = &daemon->config,
        .names = daemon->names,
        .source = mps_ask_core(daemon->core),
        .hooks = {daemon, mps_is_ready, mps_has_answered},
    };
    return mps_create(&options);
}

/* ---- the suspensions' ---- */

static void suspension_answer(
    void *context, struct api_request *request, uint64_t task, const char *why)
{
    struct daemon *daemon = context;
    http_answer_with_task(daemon->http, request, task, why);
}

static struct suspension *create_suspension(struct daemon *daemon)
{
    const struct suspension_options options = {
        .loop = &daemon->loop,
        .config = &daemon->config,
        .core = daemon->core,
        .driver = daemon->driver,
        .attempts = daemon->attempts,
        .gpus = daemon->gpus,
        .preload = daemon->preload,
        .hooks = {daemon, suspension_answer},
    };
    return suspension_create(&options);
}

/* ---- the preloaded library's ---- */

static struct preload_manager *create_preload(struct daemon *daemon)
{
    const struct preload_manager_options options = {
        .loop = &daemon->loop,
        .config = &daemon->config,
        .core = daemon->core,
        .jobs = daemon->jobs,
        .driver = daemon->driver,
        .gpus = daemon->gpus,
    };
    return preload_manager_create(&options);
}

/* ---- cuDNN's ---- */

static struct kernel_asker *create_kernels(struct daemon *daemon)
{
    const struct kernel_asker_options options = {
        .loop = &daemon->loop,
        .config = &daemon->config,
        .core = daemon->core,
        .driver = daemon->driver,
        .gpus = daemon->gpus,
    };
    return kernel_asker_create(&options);
}

/* ---- the API's ---- */

static void http_served(void *context)
{
    struct daemon *daemon = context;
    web_run(daemon->web);
}

static int http_make_login(
    void *context, const struct api_peer *peer, struct fault *fault, char **ret_url)
{
    struct daemon *daemon = context;
    return web_make_login(daemon->web, peer, fault, ret_url);
}

static struct http *create_http(struct daemon *daemon)
{
    const struct http_options options = {
        .loop = &daemon->loop,
        .config = &daemon->config,
        .core = daemon->core,
        .jobs = daemon->jobs,
        .names = daemon->names,
        .store = daemon->store,
        .driver = daemon->driver,
        .run_history = &daemon->run_history,
        .attempts = daemon->attempts,
        .disk = daemon->disk,
        .gpus = daemon->gpus,
        .kernels = daemon->kernels,
        .metrics = daemon->metrics,
        .mps = daemon->mps,
        .preload = daemon->preload,
        .suspension = daemon->suspension,
        .hooks = {daemon, http_served, http_make_login},
    };
    return http_create(&options);
}

/* ---- the web page's ---- */

static struct web *create_web(struct daemon *daemon)
{
    const struct web_options options = {
        .loop = &daemon->loop,
        .address = daemon->config.web,
        .bytes_max = (size_t)daemon->config.request_bytes_max,
        .routes = http_get_routes(),
        .context = daemon->http,
    };
    return web_create(&options);
}

/* ---- the metrics' for Prometheus ---- */

static struct scrape *create_scrape(struct daemon *daemon)
{
    const struct scrape_options options = {
        .loop = &daemon->loop,
        .config = &daemon->config,
        .http = daemon->http,
    };
    return scrape_create(&options);
}

/* ---- the messages' ---- */

/* Without messages the daemon does its work all the same. */
static struct messages *create_messages(struct daemon *daemon)
{
    const struct messages_options options = {
        .loop = &daemon->loop,
        .config = &daemon->config,
        .store = daemon->store,
        .core = daemon->core,
        .names = daemon->names,
        .http = daemon->http,
    };
    struct fault fault = {0};
    struct messages *messages = messages_create(&options, &fault);
    if (!messages)
        log_warning("no messages are sent: %s", fault.text);
    return messages;
}

/* ---- processes outside of tasks ---- */

static struct outside *create_outside(struct daemon *daemon)
{
    const struct outside_options options = {
        .config = &daemon->config,
        .names = daemon->names,
        .gpus = daemon->gpus,
        .messages = daemon->messages,
    };
    return outside_create(&options);
}

/* ---- tables and services ---- */

static void on_name(void *context, const struct name *name)
{
    struct daemon *daemon = context;
    jobs_set_unlisted(daemon->jobs, name->uid, name->state == NAME_NONE);
    if (daemon->http)
        http_name_changed(daemon->http, name);
}

int wiring_create_tables(struct daemon *daemon, struct fault *fault)
{
    daemon->core = core_create(&daemon->config.core);
    daemon->names = names_create(&daemon->loop, on_name, daemon);
    daemon->jobs = jobs_create(daemon->names);
    bool all = daemon->core && daemon->names && daemon->jobs;
    return all ? 0 : fault_set(fault, ENOMEM, "out of memory");
}

static struct retention *create_retention(struct daemon *daemon)
{
    const struct retention_options options = {
        .loop = &daemon->loop,
        .config = &daemon->config,
        .core = daemon->core,
        .jobs = daemon->jobs,
        .store = daemon->store,
        .driver = daemon->driver,
    };
    return retention_create(&options);
}

static struct services *create_services(struct daemon *daemon)
{
    const struct services_options options = {
        .loop = &daemon->loop,
        .core = daemon->core,
        .jobs = daemon->jobs,
        .driver = daemon->driver,
    };
    return services_create(&options);
}

/* The lower parts first: each is given those below. */
int wiring_create_parts(struct daemon *daemon, struct fault *fault)
{
    daemon->disk = disk_create(&daemon->loop, &daemon->config, daemon->store, daemon->driver);
    daemon->kept_output = kept_output_create(&daemon->loop, &daemon->config, daemon->disk);
    daemon->retention = create_retention(daemon);
    daemon->mig_replan = mig_replan_create(&daemon->loop, &daemon->config, daemon->core);
    daemon->gpus = create_gpus(daemon);
    daemon->mps = create_mps(daemon);
    daemon->preload = create_preload(daemon);
    daemon->attempts = create_attempts(daemon);
    daemon->suspension = create_suspension(daemon);
    daemon->metrics = create_metrics(daemon);
    daemon->kernels = create_kernels(daemon);
    daemon->http = create_http(daemon);
    daemon->web = create_web(daemon);
    daemon->scrape = create_scrape(daemon);
    daemon->messages = create_messages(daemon);
    daemon->outside = create_outside(daemon);
    daemon->services = create_services(daemon);
    bool all = daemon->disk && daemon->kept_output && daemon->retention && daemon->mig_replan &&
               daemon->mps && daemon->preload && daemon->attempts && daemon->gpus &&
               daemon->suspension && daemon->kernels && daemon->http && daemon->web &&
               daemon->scrape && daemon->services && daemon->outside;
    return all ? 0 : fault_set(fault, ENOMEM, "out of memory");
}
