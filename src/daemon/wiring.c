/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the parts are connected: each hook of a part is a call of another. All arrows between parts
 * are in this file.
 *
 *     driver    start, kill, retry ----------------> attempts
 *               suspend, resume, move, pause ------> suspension
 *               answer_memory ---------------------> preload
 *               recorded --------------------------> messages
 *               record_end, ended -----------------> http, attempts, run history, jobs
 *     attempts  why_gone, poll, usage -------------> gpus
 *               prepare_mps, mps_task_ended -------> mps
 *               preload_socket --------------------> preload
 *     gpus      find_shim, polled -----------------> attempts, suspension
 *               polled ----------------------------> metrics, preload, mps
 *               health_changed --------------------> messages
 *               write_failed ----------------------> disk
 *     messages  tasks ---------------------------> http
 *     metrics   list_roots ------------------------> attempts
 *     preload   GPUs ------------------------------> gpus
 *     mps       ready -----------------------------> attempts
 *               answered --------------------------> http
 *     suspension  answer ------------------------> http
 *     scrape    make_metrics --------------------> http
 *     http      GPUs, stored samples --------------> gpus
 *               metrics over time -----------------> metrics
 *               served, make_login ----------------> web
 *               disk_space ------------------------> disk
 *               deferred starts -------------------> attempts
 *               `colloc mps` ----------------------> mps
 *               answers that wait -----------------> suspension
 */
#include <errno.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "daemon/attempt_list.h"
#include "daemon/attempts/attempts_query.h"
#include "daemon/audit.h"
#include "daemon/daemon.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/http/http_answers.h"
#include "daemon/mps/mps_by_hand.h"
#include "daemon/time_base.h"
#include "exec/process_owner.h"
#include "preload/page.h"

#define METRIC_BATCH_US      (5 * SECOND_US)  /* chosen: a crash may lose this much */
#define METRIC_IDLE_BATCH_US (30 * SECOND_US) /* chosen: the same while no task runs */

/* ---- the driver's ---- */

static void driver_start(void *context, uint64_t task)
{
    struct daemon *daemon = context;
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

static void driver_pause(void *context, uint64_t task)
{
    struct daemon *daemon = context;
    suspension_pause(daemon->suspension, task);
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

/* ---- the attempts' ---- */

static int attempts_prepare_mps(void *context, uid_t uid, gid_t gid, const char *instance,
    const char **ret_pipe_dir, struct fault *fault)
{
    struct daemon *daemon = context;
    int r = mps_prepare(daemon->mps, uid, gid, instance, ret_pipe_dir, fault);
    return r == MPS_WAIT ? ATTEMPTS_MPS_WAIT : r;
}

static void attempts_find_mps(
    void *context, uid_t uid, const char *instance, char *path, size_t size)
{
    struct daemon *daemon = context;
    mps_pipe_dir(daemon->mps, uid, instance, path, size);
}

static void attempts_mps_task_ended(void *context, uid_t uid, const char *instance)
{
    struct daemon *daemon = context;
    mps_task_ended(daemon->mps, uid, instance);
}

static bool attempts_cuda_counts_as_nvml(void *context, bool by_mps)
{
    struct daemon *daemon = context;
    return gpus_cuda_counts_as_nvml(daemon->gpus, by_mps);
}

static const char *attempts_why_gone(void *context, int gpu)
{
    struct daemon *daemon = context;
    return gpus_why_gone(daemon->gpus, gpu);
}

static void attempts_poll_gpus(void *context)
{
    struct daemon *daemon = context;
    gpus_poll(daemon->gpus);
}

static int64_t attempts_poll_gpus_closely(void *context)
{
    struct daemon *daemon = context;
    return gpus_poll_closely(daemon->gpus);
}

static void attempts_usage_ends(void *context, struct job *job)
{
    struct daemon *daemon = context;
    gpus_end_usage(daemon->gpus, job);
}

static const char *attempts_preload_socket(void *context)
{
    struct daemon *daemon = context;
    return preload_manager_socket(daemon->preload);
}

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
        .hooks = {.context = daemon,
            .prepare_mps = attempts_prepare_mps,
            .find_mps = attempts_find_mps,
            .mps_task_ended = attempts_mps_task_ended,
            .cuda_counts_as_nvml = attempts_cuda_counts_as_nvml,
            .why_gone = attempts_why_gone,
            .poll_gpus = attempts_poll_gpus,
            .poll_gpus_closely = attempts_poll_gpus_closely,
            .usage_ends = attempts_usage_ends,
            .preload_socket = attempts_preload_socket},
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

static struct reading gpus_calls_idle_us(void *context, uint64_t task, pid_t pid)
{
    struct daemon *daemon = context;
    return preload_manager_calls_idle_us(daemon->preload, task, pid);
}

static void gpus_write_failed(void *context, const char *what)
{
    struct daemon *daemon = context;
    disk_failed(daemon->disk, what);
}

static struct gpus *create_gpus(struct daemon *daemon)
{
    const struct gpus_options options = {
        .loop = &daemon->loop,
        .config = &daemon->config,
        .core = daemon->core,
        .jobs = daemon->jobs,
        .driver = daemon->driver,
        .hooks = {.context = daemon,
            .find_shim = gpus_find_shim,
            .cgroup_home = gpus_cgroup_home,
            .polled = gpus_polled,
            .health_changed = gpus_health_changed,
            .calls_idle_us = gpus_calls_idle_us,
            .write_failed = gpus_write_failed},
    };
    return gpus_create(&options);
}

/* ---- the metrics' ---- */

static size_t metrics_list_roots(void *context, struct metric_root **ret_roots)
{
    struct daemon *daemon = context;
    struct metric_root *roots = NULL;
    size_t count = 0, capacity = 0;
    for (const struct task *task = core_next_task(daemon->core, 0); task;
         task = core_next_task(daemon->core, task->id)) {
        pid_t shim = attempts_find_shim(daemon->attempts, task->id);
        if (shim > 0 &&
            ARRAY_APPEND(roots, count, capacity, (struct metric_root){task->id, shim}) < 0)
            break;
    }
    *ret_roots = roots;
    return count;
}

static void metrics_failed(void *context, const char *what)
{
    struct daemon *daemon = context;
    disk_failed(daemon->disk, what);
}

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
        .hooks = {daemon, metrics_list_roots, metrics_failed},
    };
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

static int mps_count_clients(void *context, uid_t uid, uint64_t instance)
{
    const struct daemon *daemon = context;
    const struct core *core = daemon->core;
    int n = 0;
    for (const struct task *task = core_next_task(core, 0); task;
         task = core_next_task(core, task->id))
        n += task->uid == uid && task_state_has_attempt(task->state) &&
             task->run->share.sharing == SHARING_MPS &&
             mps_instance_number(cluster_view_instance_of(core_view(core), task)) == instance;
    return n;
}

static size_t mps_list_gpus(void *context, const char **uuids, size_t max)
{
    struct daemon *daemon = context;
    const struct cluster_view *view = core_view(daemon->core);
    size_t n = 0;
    for (int i = 0; i < view->n_gpus && n < max; i++)
        if (view->gpus[i].id.is_place && !view->gpus[i].id.is_mig_instance &&
            view->gpus[i].health != VIEW_LOST)
            uuids[n++] = view->gpus[i].id.uuid;
    return n;
}

static bool mps_find_instance(void *context, uint64_t instance, struct mps_instance *ret_instance)
{
    struct daemon *daemon = context;
    const struct cluster_view *view = core_view(daemon->core);
    for (int i = 0; i < view->n_gpus; i++) {
        const struct gpu_identity *id = &view->gpus[i].id;
        if (!id->is_mig_instance || mps_instance_number(id->uuid) != instance)
            continue;
        *ret_instance = (struct mps_instance){id->uuid, id->label, id->is_gone};
        return true;
    }
    return false;
}

static struct mps *create_mps(struct daemon *daemon)
{
    const struct mps_options options = {
        .loop = &daemon->loop,
        .config = &daemon->config,
        .names = daemon->names,
        .hooks = {daemon, mps_is_ready, mps_has_answered, mps_count_clients, mps_list_gpus,
            mps_find_instance},
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

/* The API's as well. */
static bool report_gpu(void *context, size_t i, struct gpu_report *ret_report)
{
    struct daemon *daemon = context;
    return gpus_report(daemon->gpus, i, ret_report);
}

static struct preload_manager *create_preload(struct daemon *daemon)
{
    const struct preload_manager_options options = {
        .loop = &daemon->loop,
        .config = &daemon->config,
        .core = daemon->core,
        .jobs = daemon->jobs,
        .driver = daemon->driver,
        .hooks = {.context = daemon, .report_gpu = report_gpu},
    };
    return preload_manager_create(&options);
}

/* ---- the API's ---- */

static const char *http_gpus_why_none(void *context)
{
    struct daemon *daemon = context;
    return gpus_why_none(daemon->gpus);
}

static struct reading http_gpu_idle_us(
    void *context, size_t i, const struct resident *resident, bool *ret_is_long)
{
    struct daemon *daemon = context;
    return gpus_idle_us(daemon->gpus, i, resident, ret_is_long);
}

static struct gpu_totals http_gpu_totals(void *context)
{
    struct daemon *daemon = context;
    return gpus_totals(daemon->gpus);
}

static struct disk_space http_disk_space(void *context)
{
    struct daemon *daemon = context;
    return disk_get_space(daemon->disk);
}

static int http_write_gpu_history(void *context, int64_t since_us, FILE *out)
{
    struct daemon *daemon = context;
    return gpus_write_history(daemon->gpus, since_us, out);
}

static bool http_ask_metrics(
    void *context, struct metric_query *query, char *head, metric_on_answer *on_answer, void *asker)
{
    struct daemon *daemon = context;
    if (daemon->metrics)
        metric_recorder_ask(daemon->metrics, query, head, on_answer, asker);
    return daemon->metrics;
}

static void http_clear_gpu_errors(void *context, size_t i)
{
    struct daemon *daemon = context;
    gpus_clear_errors(daemon->gpus, i);
}

static int http_limits_changed(void *context, uint64_t task, struct fault *fault)
{
    struct daemon *daemon = context;
    return attempts_apply_limits(daemon->attempts, task, fault);
}

static struct cgroup_controllers http_enforced(void *context)
{
    struct daemon *daemon = context;
    return attempts_enforced(daemon->attempts);
}

static int http_profile_was_asked(void *context, uint64_t task)
{
    struct daemon *daemon = context;
    return attempts_profile_was_asked(daemon->attempts, task);
}

static int http_order_profile(void *context, uint64_t task, const struct torch_order *order)
{
    struct daemon *daemon = context;
    return attempts_order_profile(daemon->attempts, task, order);
}

static const char *http_task_why_deferred(void *context, uint64_t task)
{
    struct daemon *daemon = context;
    return attempts_why_deferred(daemon->attempts, task);
}

static bool http_task_is_watched(void *context, uint64_t task)
{
    struct daemon *daemon = context;
    return attempts_is_watched(daemon->attempts, task);
}

static json_t *http_list_mps(void *context)
{
    struct daemon *daemon = context;
    return mps_list(daemon->mps);
}

static int http_start_mps(
    void *context, uid_t uid, gid_t gid, struct api_request *asker, struct fault *fault)
{
    struct daemon *daemon = context;
    return mps_start_by_hand(daemon->mps, uid, gid, asker, fault);
}

static int http_stop_mps(
    void *context, uid_t uid, const char *instance, struct api_request *asker, struct fault *fault)
{
    struct daemon *daemon = context;
    return mps_stop_by_hand(daemon->mps, uid, instance, asker, fault);
}

static bool http_find_mps_group(void *context, uid_t uid, gid_t *ret_gid)
{
    struct daemon *daemon = context;
    return mps_find_group(daemon->mps, uid, ret_gid);
}

static const char *http_why_suspension_failed(void *context, uint64_t task)
{
    struct daemon *daemon = context;
    return suspension_why_failed(daemon->suspension, task);
}

static bool http_answer_suspension_later(void *context, uint64_t task, struct api_request *request)
{
    struct daemon *daemon = context;
    return suspension_answer_later(daemon->suspension, task, request);
}

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
        .hooks = {.context = daemon,
            .report_gpu = report_gpu,
            .why_no_gpus = http_gpus_why_none,
            .gpu_idle_us = http_gpu_idle_us,
            .gpu_totals = http_gpu_totals,
            .disk_space = http_disk_space,
            .write_gpu_history = http_write_gpu_history,
            .ask_metrics = http_ask_metrics,
            .clear_gpu_errors = http_clear_gpu_errors,
            .served = http_served,
            .make_login = http_make_login,
            .why_deferred = http_task_why_deferred,
            .limits_changed = http_limits_changed,
            .order_profile = http_order_profile,
            .profile_was_asked = http_profile_was_asked,
            .enforced = http_enforced,
            .is_watched = http_task_is_watched,
            .list_mps = http_list_mps,
            .start_mps = http_start_mps,
            .stop_mps = http_stop_mps,
            .find_mps_group = http_find_mps_group,
            .why_suspension_failed = http_why_suspension_failed,
            .answer_suspension_later = http_answer_suspension_later},
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

static char *scrape_make_metrics(void *context, bool is_openmetrics)
{
    struct daemon *daemon = context;
    return http_make_metrics(daemon->http, is_openmetrics);
}

static struct scrape *create_scrape(struct daemon *daemon)
{
    const struct scrape_options options = {
        .loop = &daemon->loop,
        .config = &daemon->config,
        .hooks = {daemon, scrape_make_metrics},
    };
    return scrape_create(&options);
}

/* ---- the messages' ---- */

static json_t *messages_find_task(void *context, uint64_t id)
{
    struct daemon *daemon = context;
    const struct task *task = core_task(daemon->core, id);
    json_t *record = NULL;
    if (task)
        return http_task_json(daemon->http, task);
    if (store_get_ended(daemon->store, id, NULL, &record) != 0)
        return NULL;
    attempt_list_upgrade(record);
    return record;
}

static const char *messages_gpu_label(void *context, int gpu)
{
    struct daemon *daemon = context;
    const struct cluster_view *view = core_view(daemon->core);
    return gpu >= 0 && gpu < view->n_gpus ? view->gpus[gpu].id.label : "?";
}

/* Looks the user up for later, if need be. */
static uid_t messages_share_of(void *context, uid_t uid)
{
    struct daemon *daemon = context;
    names_of_uid(daemon->names, uid);
    return names_counted_uid(daemon->names, uid);
}

/* Without messages the daemon does its work all the same. */
static struct messages *create_messages(struct daemon *daemon)
{
    const struct messages_options options = {
        .loop = &daemon->loop,
        .config = &daemon->config,
        .store = daemon->store,
        .hooks = {daemon, messages_find_task, messages_gpu_label, messages_share_of},
    };
    struct fault fault = {0};
    struct messages *messages = messages_create(&options, &fault);
    if (!messages)
        log_warning("no messages are sent: %s", fault.text);
    return messages;
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

int wiring_create_parts(struct daemon *daemon, struct fault *fault)
{
    daemon->disk = disk_create(&daemon->loop, &daemon->config, daemon->store, daemon->driver);
    daemon->retention = create_retention(daemon);
    daemon->mig_replan = mig_replan_create(&daemon->loop, &daemon->config, daemon->core);
    daemon->mps = create_mps(daemon);
    daemon->preload = create_preload(daemon);
    daemon->attempts = create_attempts(daemon);
    daemon->gpus = create_gpus(daemon);
    daemon->suspension = create_suspension(daemon);
    daemon->http = create_http(daemon);
    daemon->metrics = create_metrics(daemon);
    daemon->web = create_web(daemon);
    daemon->scrape = create_scrape(daemon);
    daemon->messages = create_messages(daemon);
    daemon->services = create_services(daemon);
    bool all = daemon->disk && daemon->retention && daemon->mig_replan && daemon->mps &&
               daemon->preload && daemon->attempts && daemon->gpus && daemon->suspension &&
               daemon->http && daemon->web && daemon->scrape && daemon->services;
    return all ? 0 : fault_set(fault, ENOMEM, "out of memory");
}
