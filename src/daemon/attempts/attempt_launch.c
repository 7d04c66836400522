/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A start, from the log's SUBMIT to a running shim:
 *
 *     1. The port of a service has to be free (service_port.h). Otherwise the attempt ends, because
 *        another program may have the port for long: the service is run again as after any end
 *        (core/state/service.c), and other tasks can have its GPUs until then.
 *     2. The submission is read from the log: script, arguments, environment, output paths.
 *     3. MPS is prepared where the placement wants it; until it is ready the start waits. Where it
 *        cannot be had, the task shares its GPUs by time slices, and the log says why.
 *     4. The daemon's variables are added to the environment (task_environment.h).
 *     5. The attempt's folder is written and its shim spawned (exec/attempt.h).
 *     6. The shim is watched, and STARTED is fed.
 *
 * A fault of the machine defers the start; any other ends the attempt (EXITED LAUNCH).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log.h"
#include "daemon/attempts/attempts.h"
#include "daemon/attempts/attempts_query.h"
#include "daemon/attempts/attempts_state.h"
#include "daemon/attempts/rendezvous_port.h"
#include "daemon/attempts/task_environment.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/service_port.h"
#include "daemon/state_dir.h"
#include "exec/torch_order.h"
#include "exec/torch_responder.h"
#include "preload/protocol.h"
#include "taskfile/signal_spec.h"
#include "taskfile/torch_steps.h"

struct launch {
    json_t *detail; /* of the SUBMIT */
    char *script, *environment;
    size_t script_size, environment_size;
    const char **env;
    const char **argv;
    gid_t gid;
    struct started_how how;
    char *near_cpus;              /* of its GPUs; NULL: not known, or not wanted */
    char *gpu_minors;             /* those that it may open; NULL: all */
    char torch[TORCH_ORDER_TEXT]; /* its first order to PyTorch's profiler; "": it takes none */
    char torch_sockets[TORCH_SOCKET_FOLDER];
    struct environment added;
};

static void launch_fini(struct launch *launch)
{
    json_decref(launch->detail);
    free(launch->script);
    free(launch->environment);
    free(launch->env);
    free(launch->argv);
    free(launch->near_cpus);
    free(launch->gpu_minors);
    environment_fini(&launch->added);
}

static const char *detail_text(const struct launch *launch, const char *key)
{
    return json_string_value(json_object_get(launch->detail, key));
}

/* Splits "A=1\0B=2\0" into an array. Returns 0 or -ENOMEM. */
static int split_environment(struct launch *launch)
{
    size_t n = 0;
    for (size_t at = 0; at < launch->environment_size; at += strlen(launch->environment + at) + 1)
        n++;
    launch->env = calloc(n + 1, sizeof *launch->env);
    if (!launch->env)
        return -ENOMEM;
    n = 0;
    for (size_t at = 0; at < launch->environment_size; at += strlen(launch->environment + at) + 1)
        launch->env[n++] = launch->environment + at;
    return 0;
}

static int read_arguments(struct launch *launch)
{
    const json_t *arguments = json_object_get(launch->detail, "arguments");
    size_t n = json_array_size(arguments);
    launch->argv = calloc(n + 1, sizeof *launch->argv);
    if (!launch->argv)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        launch->argv[i] = json_string_value(json_array_get(arguments, i));
    return 0;
}

static int read_blob(struct attempts *attempts, const struct launch *launch, const char *key,
    char **ret_data, size_t *ret_size, struct fault *fault)
{
    const char *blob = detail_text(launch, key);
    int r = blob ? store_get_blob(attempts->parts.store, blob, fault, ret_data, ret_size)
                 : STORE_NONE;
    return r > 0 ? fault_set(fault, ENOENT, "its %s is missing from the event log", key) : r;
}

static int load_submission(
    struct attempts *attempts, uint64_t id, struct launch *launch, struct fault *fault)
{
    int r = job_read_detail(attempts->parts.store, id, fault, &launch->detail);
    if (r == 0 && !launch->detail)
        r = fault_set(fault, ENOENT, "its submission is missing from the event log");
    if (r == 0)
        r = read_blob(attempts, launch, "script", &launch->script, &launch->script_size, fault);
    if (r == 0)
        r = read_blob(attempts, launch, "environment", &launch->environment,
            &launch->environment_size, fault);
    if (r == 0 && (split_environment(launch) < 0 || read_arguments(launch) < 0))
        r = fault_set(fault, ENOMEM, "out of memory");
    launch->gid = (gid_t)json_integer_value(json_object_get(launch->detail, "gid"));
    return r;
}

/* Returns 0 or MPS_WAIT. */
static int join_mps(struct attempts *attempts, const struct task *task, struct launch *launch)
{
    struct fault fault = {0};
    const char *pipe_dir;
    if (task->run->share.sharing != SHARING_MPS)
        return 0;
    const char *instance = cluster_view_instance_of(core_view(attempts->parts.core), task);
    int r = mps_prepare(attempts->parts.mps, task->uid, launch->gid, instance, &pipe_dir, &fault);
    if (r == 0)
        r = environment_join_mps(&launch->added, task, pipe_dir);
    if (r < 0) {
        log_warning(
            "task %llu shares by time slices: %s", (unsigned long long)task->id, fault.text);
        launch->how.by_streams = true;
    }
    return r > 0 ? MPS_WAIT : 0;
}

/* As the task says, else as the setting does. */
static int add_preload(struct attempts *attempts, const struct task *task, struct launch *launch)
{
    const struct config *config = attempts->parts.config;
    const char *wanted = detail_text(launch, "preload");
    bool by_default = !wanted || strcmp(wanted, "default") == 0;
    bool is_wanted = by_default ? config->preload : strcmp(wanted, "yes") == 0;
    const char *socket = is_wanted ? preload_manager_socket(attempts->parts.preload) : NULL;
    if (!socket)
        return 0;
    launch->how.has_library = config->memory_wait_us > 0;
    int r = environment_preload(
        &launch->added, config->preload_library, socket, task->attempts, launch->env);
    return r == 0 && config->carrier
               ? environment_add(&launch->added, PRELOAD_CARRIER_VARIABLE "=1")
               : r;
}

/* "0-15,16-31": of all its GPUs. NULL where one of them is not known. */
static char *join_near_cpus(const struct attempts *attempts, const struct task *task)
{
    const struct cluster_view *view = core_view(attempts->parts.core);
    char *text = NULL;
    size_t size;
    for (int i = 0; i < task->n_gpus; i++)
        if (!*view->gpus[task->gpus[i]].id.near_cpus)
            return NULL;
    FILE *out = attempts->parts.config->near_cpus && task->n_gpus ? open_memstream(&text, &size)
                                                                  : NULL;
    for (int i = 0; i < task->n_gpus && out; i++)
        fprintf(out, "%s%s", i ? "," : "", view->gpus[task->gpus[i]].id.near_cpus);
    if (out)
        fclose(out);
    return text;
}

/* "0,2": its GPUs' device files; "none". NULL where other GPUs are not hidden from it: by the setting,
 * because the kernel cannot, or because an MPS server, which is no process of the task, opens the
 * GPUs. */
char *attempts_join_minors(const struct attempts *attempts, const struct task *task, bool by_mps)
{
    const struct cluster_view *view = core_view(attempts->parts.core);
    char *text = NULL;
    size_t size;
    for (int i = 0; i < task->n_gpus; i++)
        if (!view->gpus[task->gpus[i]].id.device)
            return NULL;
    FILE *out = attempts->can_filter && !by_mps ? open_memstream(&text, &size) : NULL;
    for (int i = 0; i < task->n_gpus && out; i++)
        fprintf(out, "%s%d", i ? "," : "", view->gpus[task->gpus[i]].id.device - 1);
    if (out && task->n_gpus == 0)
        fputs("none", out);
    if (out)
        fclose(out);
    return text;
}

/* A server that starts a process for the task puts it there (exec/process_owner.h). */
static int name_cgroup(
    const struct attempts *attempts, const struct task *task, struct launch *launch)
{
    char cgroup[CGROUP_PATH_SIZE];
    return attempts_find_cgroup(attempts, task->id, cgroup, sizeof cgroup)
               ? environment_add(&launch->added, "COLLOC_CGROUP=%s", cgroup)
               : 0;
}

/* Where docker is installed, a task finds colloc's link before it (cli/cmd_docker.c): beside the
 * shim, or in the build folder. */
static int add_docker(const struct attempts *attempts, struct launch *launch)
{
    static const char *const dockers[] = {"/usr/bin/docker", "/usr/local/bin/docker"},
                             *const places[] = {"in-task", "../cli/in-task"};
    const char *shim = attempts->parts.config->shim, *slash = strrchr(shim, '/');
    char folder[STATE_PATH_SIZE];
    bool is_installed = false;
    for (size_t i = 0; i < ARRAY_SIZE(dockers); i++)
        is_installed |= access(dockers[i], X_OK) == 0;
    for (size_t i = 0; i < ARRAY_SIZE(places) && is_installed && slash; i++) {
        int n = snprintf(folder, sizeof folder, "%.*s/%s", (int)(slash - shim), shim, places[i]);
        if (n < (int)sizeof folder && access(folder, X_OK) == 0)
            return environment_lead_path(&launch->added, folder, launch->env);
    }
    return 0;
}

/* Returns 0, MPS_WAIT or a fault. */
static int fill_environment(
    struct attempts *attempts, const struct task *task, struct launch *launch, struct fault *fault)
{
    int r = join_mps(attempts, task, launch);
    bool by_mps = task->run->share.sharing == SHARING_MPS && !launch->how.by_streams;
    const struct cluster_view *view = core_view(attempts->parts.core);
    launch->near_cpus = join_near_cpus(attempts, task);
    launch->gpu_minors = attempts_join_minors(attempts, task, by_mps);
    /* CUDA does not count GPUs that it cannot open */
    bool by_index = !launch->gpu_minors && gpus_cuda_counts_as_nvml(attempts->parts.gpus, by_mps);
    if (r == 0)
        r = environment_name_gpus(&launch->added, view, task, by_index);
    if (r == 0)
        r = name_cgroup(attempts, task, launch);
    if (r == 0)
        r = environment_name_array(&launch->added, task, launch->detail);
    if (r == 0)
        r = environment_name_port(&launch->added, launch->detail);
    if (r == 0)
        r = environment_name_for_slurm(&launch->added, view, task, launch->env);
    if (r == 0)
        r = environment_pass_emulator(&launch->added);
    if (r == 0)
        r = environment_set_defaults(&launch->added, task, launch->env);
    if (r == 0 && detail_text(launch, "track"))
        r = environment_mark_tracked(
            &launch->added, attempts->parts.config->socket_path, launch->env);
    if (r == 0)
        r = add_docker(attempts, launch);
    if (r == 0 && (detail_text(launch, "metric_from") || detail_text(launch, "step_pattern")))
        r = environment_name_socket(
            &launch->added, attempts->parts.config->socket_path, launch->env);
    if (r == 0)
        r = environment_set_rendezvous(
            &launch->added, task, rendezvous_port_find(task->id), launch->env);
    if (r == 0)
        r = add_preload(attempts, task, launch);
    if (r == 0 && !by_mps && attempts->parts.config->framework_mem_limit)
        r = environment_limit_frameworks(&launch->added, view, task,
            attempts->parts.config->core.conditions.margin_bytes, launch->env);
    return r < 0 ? fault_set(fault, -r, "its environment: %s", strerror(-r)) : r;
}

/* Does nothing if the task was not submitted with --profile=torch. */
static void write_torch_order(struct launch *launch)
{
    const char *profile = detail_text(launch, "profile");
    struct torch_steps steps;
    if (!profile || torch_steps_parse(profile, &steps) < 0 ||
        torch_responder_name(launch->torch_sockets) < 0)
        return;
    const struct torch_order order = {
        .number = steps.steps > 0, .step = steps.step, .steps = steps.steps};
    torch_order_format(&order, launch->torch);
}

/* The shim's orders; the texts are valid as long as `launch` and `cgroup`. */
static struct attempt_spec make_spec(const struct attempts *attempts, const struct task *task,
    struct launch *launch, const char *cgroup)
{
    const json_t *detail = launch->detail;
    const char *signal = detail_text(launch, "warning_signal");
    struct signal_spec warning = {0};
    if (signal)
        signal_spec_parse(signal, NULL, &warning); /* checked at submit */
    write_torch_order(launch);
    return (struct attempt_spec){
        .task_id = (int64_t)task->id,
        .array_id = (int64_t)task->array.id,
        .array_index = task->array.index,
        .name = detail_text(launch, "name"),
        .uid = task->uid,
        .gid = launch->gid,
        .cwd = detail_text(launch, "cwd"),
        .umask = (mode_t)json_integer_value(json_object_get(detail, "umask")),
        .open_files = attempts->parts.open_files,
        .script = {launch->script, launch->script_size},
        .argv = launch->argv,
        .track = detail_text(launch, "track"),
        .metric_from = detail_text(launch, "metric_from"),
        .metric_rule = detail_text(launch, "stop"),
        .step_pattern = detail_text(launch, "step_pattern"),
        .profiler = profiler_parse(detail_text(launch, "profile")),
        .torch = *launch->torch ? launch->torch : NULL,
        .torch_sockets = *launch->torch ? launch->torch_sockets : NULL,
        .env = launch->env,
        .env_added = launch->added.list,
        .stdout_path = detail_text(launch, "output"),
        .stdout_is_default = json_is_true(json_object_get(detail, "output_is_default")),
        .kept_max_bytes = attempts->parts.config->kept_output_bytes,
        .output_max_bytes = attempts->parts.config->output_max_bytes,
        .stderr_path = detail_text(launch, "error"),
        .append = task->attempts > 1,
        .grace_us = json_integer_value(json_object_get(detail, "grace_us")),
        .time_limit_us = task->request.time_limit_us,
        .warning_signal = warning.signal,
        .warning_us = warning.before_us,
        .warns_script_only = warning.script_only,
        .cgroup = cgroup,
        .near_cpus = launch->near_cpus,
        .gpu_minors = launch->gpu_minors,
        .limits = cgroups_limits_of(attempts, task),
    };
}

static int spawn_shim(struct attempts *attempts, struct live_attempt *live, const struct task *task,
    struct launch *launch, struct fault *fault)
{
    char folder[STATE_PATH_SIZE], cgroup[CGROUP_PATH_SIZE];
    attempts_folder(attempts, task, folder, sizeof folder);
    bool has_cgroup = cgroups_name(attempts, folder, cgroup, sizeof cgroup);
    const struct attempt_spec spec = make_spec(attempts, task, launch, has_cgroup ? cgroup : NULL);
    int r = live->has_folder ? 0 : attempt_create(folder, &spec, fault);
    live->has_folder = r == 0;
    if (r == 0)
        r = attempt_spawn(attempts->parts.config->shim, folder, fault, &live->watch);
    if (r == 0)
        live->has_folder = false;
    return r;
}

/* Returns 0, MPS_WAIT or a fault. */
static int launch_attempt(struct attempts *attempts, struct live_attempt *live,
    const struct task *task, struct fault *fault, struct started_how *ret_how)
{
    struct launch launch = {0};
    const struct job *job = jobs_find(attempts->parts.jobs, task->id);
    int r = job && job->port ? service_port_check_free(job->port, fault) : 0;
    if (r == 0)
        r = load_submission(attempts, task->id, &launch, fault);
    if (r == 0)
        r = fill_environment(attempts, task, &launch, fault);
    if (r == 0)
        r = spawn_shim(attempts, live, task, &launch, fault);
    *ret_how = launch.how;
    launch_fini(&launch);
    return r;
}

void attempts_launch(struct attempts *attempts, uint64_t id)
{
    const struct task *task = core_task(attempts->parts.core, id);
    struct fault fault = {0};
    struct started_how how;
    if (!task || task->state != TASK_STARTING)
        return;
    if (task->ending) { /* it was cancelled, or its GPU was lost, before the start */
        attempts_report_unstarted(attempts, task);
        return;
    }
    struct live_attempt *live = live_attempt_get(attempts, id);
    int r = launch_attempt(attempts, live, task, &fault, &how);
    live->awaits_mps = r == MPS_WAIT;
    if (attempts_fault_passes(r)) {
        live_attempt_defer(live, fault.text);
    } else if (r < 0) {
        attempts_report_launch_failure(attempts, task, fault.text);
    } else if (live->awaits_mps) {
        live_attempt_end_deferral(live);
    } else {
        live_attempt_watch(live);
        attempts_report_started(attempts, id, &how);
    }
}
