/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts: started under a shim, watched by its pidfd, found again after a restart. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/attempts/task_environment.h"
#include "daemon/daemon.h"

/* For a look at the GPUs before a failure is judged. */
#define LOOK_LIMIT_US SECOND_US

void attempt_folder(
    const struct daemon *daemon, uint64_t task, int attempt, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s/tasks/%llu/%d", daemon->config.state_dir, (unsigned long long)task,
        attempt);
}

/* What is left of an ended task is its output, if that is kept here: inodes are scarce, too. */
void runner_clean(struct daemon *daemon, const struct task *task)
{
    char folder[600];
    for (int attempt = 1; attempt <= task->attempts; attempt++) {
        attempt_folder(daemon, task->id, attempt, folder, sizeof folder);
        attempt_clean(folder);
    }
    if (task->attempts > 0) {
        *strrchr(folder, '/') = '\0';
        rmdir(folder);
    }
}

/* ---- its end ---- */

static void on_handle_closed(uv_handle_t *handle)
{
    free(handle);
}

void runner_unwatch(struct job *job)
{
    if (job->poll) {
        uv_poll_stop(job->poll);
        uv_close((uv_handle_t *)job->poll, on_handle_closed);
        job->poll = NULL;
    }
    if (job->watch.pidfd >= 0)
        attempt_unwatch(&job->watch);
    job->watch.pidfd = -1;
}

/*
 * When the attempt ended, in the core's time, from the shim's wall time: 0 when that is not known.
 * It lies between the start and the time that the task ran by a clock that does not jump, and now;
 * a wall clock that has jumped since moves it no further.
 */
static int64_t end_time(
    struct daemon *daemon, const struct task *task, const struct attempt_exit *exit)
{
    int64_t now_us = driver_now_us(daemon->driver);
    int64_t end_us = exit->end_wall_us + now_us - clock_wall_us();
    int64_t least_us = task->started_us + (exit->end_wall_us - exit->start_wall_us);
    if (exit->end_wall_us == 0)
        return 0;
    return end_us < least_us ? least_us : end_us < now_us ? end_us : now_us;
}

/* An instance may be there again before the task that was evicted from it has ended. */
static const char *why_gone(const struct daemon *daemon, const struct task *task, int view)
{
    const char *why = sampler_why_gone(daemon, view);
    return !why && task->ending == FAILURE_GPU_GONE ? "the MIG instance was not there any more"
                                                    : why;
}

/* A failure on a GPU that is not there any more is no fault of the task's. What it was told to do
 * is. */
static struct failure judge_failure(
    struct daemon *daemon, const struct task *task, const struct failure *failure)
{
    struct failure gone = {.class = FAILURE_GPU_GONE};
    for (int i = 0; i < task->n_gpus && !task_was_ended(task) && failure->class != FAILURE_NONE;
         i++) {
        const char *why = why_gone(daemon, task, task->gpus[i]);
        if (!why)
            continue;
        snprintf(gone.evidence, sizeof gone.evidence, "GPU %s: %s",
            core_view(daemon->core)->gpus[task->gpus[i]].id.label, why);
        return gone;
    }
    return *failure;
}

static void report_exit(struct daemon *daemon, struct job *job, const struct attempt_exit *exit)
{
    const struct task *task = core_task(daemon->core, job->id);
    const struct failure judged = judge_failure(daemon, task, &exit->failure), *failure = &judged;
    daemon->exits_awaiting_look -= job->look_awaited > 0;
    job->look_awaited = 0;
    struct event event = driver_event(daemon->driver, EVENT_EXITED, job->id);
    event.exited = (struct task_exit){.failure = failure->class,
        .code = exit->exit_code,
        .signal = exit->signal,
        .ended_us = end_time(daemon, task, exit)};
    json_t *detail = json_pack("{s:s, s:s, s:f, s:f}", "evidence", failure->evidence, "framework",
        failure->framework, "cpu_s", (double)exit->cpu_us / 1e6, "max_rss_mib",
        (double)exit->max_rss_bytes / 1048576.0);
    uid_t uid = job->uid;
    bool by_mps = task->share.sharing == SHARING_MPS;
    usage_end(daemon, job);
    if (failure->class == FAILURE_GPU_OOM && task->share.mem_limit_bytes > 0)
        json_object_set_new(detail, "mem_limit_bytes", json_integer(task->share.mem_limit_bytes));
    if (failure->class == FAILURE_GPU_OOM)
        json_object_set_new(detail, "overruns", overruns_beside(daemon, task));
    job_note_exit(job, failure->class, detail);
    driver_feed(daemon->driver, &event, detail);
    json_decref(detail);
    if (by_mps)
        mps_task_ended(daemon->mps, uid);
    sampler_look_now(daemon);
}

/* Failures that may come of the GPU's being gone. */
static bool may_be_the_gpus(const struct attempt_exit *exit)
{
    enum failure_class failure = exit->failure.class;
    return failure == FAILURE_PROGRAM || failure == FAILURE_SIGNAL ||
           failure == FAILURE_GPU_FAULT || failure == FAILURE_MPS;
}

/* Then whether the GPU is still there is asked first; for a driver that does not answer nobody
 * waits long. */
static bool awaits_look(struct daemon *daemon, struct job *job, const struct attempt_exit *exit)
{
    if (!job->look_awaited && may_be_the_gpus(exit)) {
        job->look_awaited = sampler_look_closely(daemon);
        job->look_limit_us = clock_monotonic_us() + LOOK_LIMIT_US;
    }
    if (job->look_awaited > daemon->looks_ended && clock_monotonic_us() < job->look_limit_us) {
        job->to_adopt = true;
        driver_try_again(daemon->driver);
        return true;
    }
    return false;
}

static void take_exit(struct daemon *daemon, struct job *job, const struct attempt_exit *exit)
{
    if (awaits_look(daemon, job, exit))
        return;
    job->to_adopt = false;
    report_exit(daemon, job, exit);
}

static void report_lost(struct daemon *daemon, struct job *job, const char *why)
{
    struct attempt_exit exit = {.exit_code = -1, .failure = {.class = FAILURE_LOST}};
    span_copy(span_of(why), exit.failure.evidence, sizeof exit.failure.evidence);
    report_exit(daemon, job, &exit);
}

static void report_launch_failure(struct daemon *daemon, struct job *job, const char *why)
{
    struct attempt_exit exit = {.exit_code = -1, .failure = {.class = FAILURE_LAUNCH}};
    span_copy(span_of(why), exit.failure.evidence, sizeof exit.failure.evidence);
    log_warning("task %llu could not be started: %s", (unsigned long long)job->id, why);
    report_exit(daemon, job, &exit);
}

/*
 * What a shim that was killed has left running must not go on on GPUs that count as free.
 * Returns how many processes there were, or -errno when that is not known.
 */
static int sweep(const struct daemon *daemon, const char *folder, uid_t uid)
{
    int marked = attempt_sweep(folder, uid), in_cgroup = cgroups_sweep(daemon, folder);
    int n = marked > in_cgroup ? marked : in_cgroup;
    if (n > 0)
        log_warning(
            "%s: its shim was killed; %d processes that it left were killed too", folder, n);
    return n > 0 ? n : marked;
}

/* Nothing is wrong with the task: the machine is short of something, or its disk failed to read or
 * write, and what was not read is not known. */
static bool will_pass(int fault)
{
    return fault == -ENOSPC || fault == -EDQUOT || fault == -ENOMEM || fault == -EAGAIN ||
           fault == -EMFILE || fault == -ENFILE || fault == -EIO;
}

static void put_off(struct daemon *daemon, struct job *job, const char *why)
{
    if (!job->put_off_why) {
        log_warning("task %llu: start deferred, retrying every second: %s",
            (unsigned long long)job->id, why);
        job->put_off_why = strdup(why);
    }
    driver_try_again(daemon->driver);
}

static void on_shim_gone(uv_poll_t *poll, int status, int events)
{
    struct job *job = poll->data;
    struct daemon *daemon = job->daemon;
    const struct task *task = core_task(daemon->core, job->id);
    struct attempt_watch watch = {.pidfd = -1};
    struct attempt_exit exit = {0};
    struct fault fault = {0};
    char folder[600];

    runner_unwatch(job);
    attempt_folder(daemon, job->id, task->attempts, folder, sizeof folder);
    int state = attempt_probe(folder, &fault, &watch, &exit);
    if (will_pass(state)) {
        job->to_adopt = true;
        put_off(daemon, job, fault.text);
        return;
    }
    switch (state) {
    case ATTEMPT_ENDED:
        take_exit(daemon, job, &exit);
        break;
    case ATTEMPT_NEVER_STARTED:
        report_launch_failure(daemon, job, "its shim ended before it had started anything");
        break;
    case ATTEMPT_NO_FOLDER:
        sweep(daemon, folder, task->uid);
        report_lost(daemon, job, "its attempt folder is gone: how the task ended is not known");
        break;
    case ATTEMPT_LOST:
        sweep(daemon, folder, task->uid);
        report_lost(daemon, job, "its shim was killed: how the task ended is not known");
        break;
    default:
        attempt_unwatch(&watch);
        report_lost(daemon, job, fault.text);
        break;
    }
}

/* The pidfd of `job->watch` into the loop. Without the memory for it nothing can be promised any
 * more. */
static void watch(struct daemon *daemon, struct job *job)
{
    job->poll = calloc(1, sizeof *job->poll);
    if (!job->poll || uv_poll_init(&daemon->loop, job->poll, job->watch.pidfd) < 0) {
        log_error("task %llu cannot be watched: out of memory or descriptors",
            (unsigned long long)job->id);
        abort();
    }
    job->poll->data = job;
    uv_poll_start(job->poll, UV_READABLE, on_shim_gone);
    free(job->put_off_why);
    job->put_off_why = NULL;
}

/* ---- its start ---- */

struct launch {
    json_t *detail; /* of the SUBMIT */
    char *script, *environment;
    size_t script_size, environment_size;
    const char **env;
    const char **argv;
    gid_t gid;
    bool by_streams; /* though MPS was wanted: there was none to be had */
    struct environment added;
};

static void launch_fini(struct launch *launch)
{
    json_decref(launch->detail);
    free(launch->script);
    free(launch->environment);
    free(launch->env);
    free(launch->argv);
    environment_fini(&launch->added);
}

static const char *detail_text(const struct launch *launch, const char *key)
{
    return json_string_value(json_object_get(launch->detail, key));
}

/* "A=1\0B=2\0" into an array. */
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

static int read_blob(struct daemon *daemon, const struct launch *launch, const char *key,
    char **ret_data, size_t *ret_size, struct fault *fault)
{
    const char *blob = detail_text(launch, key);
    int r = blob ? store_get_blob(daemon->store, blob, fault, ret_data, ret_size) : STORE_NONE;
    return r > 0 ? fault_set(fault, ENOENT, "its %s is missing from the event log", key) : r;
}

static int load(struct daemon *daemon, uint64_t id, struct launch *launch, struct fault *fault)
{
    int r = job_read_detail(daemon, id, fault, &launch->detail);
    if (r == 0 && !launch->detail)
        r = fault_set(fault, ENOENT, "its submission is missing from the event log");
    if (r == 0)
        r = read_blob(daemon, launch, "script", &launch->script, &launch->script_size, fault);
    if (r == 0)
        r = read_blob(
            daemon, launch, "environment", &launch->environment, &launch->environment_size, fault);
    if (r == 0 && (split_environment(launch) < 0 || read_arguments(launch) < 0))
        r = fault_set(fault, ENOMEM, "out of memory");
    launch->gid = (gid_t)json_integer_value(json_object_get(launch->detail, "gid"));
    return r;
}

/* 0 or MPS_WAIT. Where MPS is not to be had the task shares by streams, and the log says why. */
static int join_mps(struct daemon *daemon, const struct task *task, struct launch *launch)
{
    struct fault fault = {0};
    const char *pipe_dir;
    if (task->share.sharing != SHARING_MPS)
        return 0;
    int r = mps_prepare(daemon->mps, task->uid, launch->gid, &pipe_dir, &fault);
    if (r == 0)
        r = environment_join_mps(&launch->added, task, pipe_dir);
    if (r < 0) {
        log_warning("task %llu shares by streams: %s", (unsigned long long)task->id, fault.text);
        launch->by_streams = true;
    }
    return r == MPS_WAIT ? r : 0;
}

static int fill_environment(
    struct daemon *daemon, const struct task *task, struct launch *launch, struct fault *fault)
{
    int r = join_mps(daemon, task, launch);
    bool by_mps = task->share.sharing == SHARING_MPS && !launch->by_streams;
    if (r == 0)
        r = environment_name_gpus(&launch->added, daemon, task, by_mps);
    if (r == 0)
        r = environment_pass_emulator(&launch->added);
    if (r == 0)
        r = environment_set_defaults(&launch->added, task, launch->env);
    if (r == 0 && !by_mps)
        r = environment_limit_frameworks(&launch->added, daemon, task, launch->env);
    return r < 0 ? fault_set(fault, -r, "its environment: %s", strerror(-r)) : r;
}

static int launch_attempt(struct daemon *daemon, struct job *job, const struct task *task,
    struct launch *launch, struct fault *fault)
{
    const json_t *detail = launch->detail;
    char folder[600], cgroup[CGROUP_PATH_SIZE];
    struct attempt_spec spec = {
        .task_id = (int64_t)task->id,
        .uid = task->uid,
        .gid = launch->gid,
        .cwd = detail_text(launch, "cwd"),
        .umask = (mode_t)json_integer_value(json_object_get(detail, "umask")),
        .open_files = daemon->open_files,
        .script = {launch->script, launch->script_size},
        .argv = launch->argv,
        .env = launch->env,
        .env_added = launch->added.list,
        .stdout_path = detail_text(launch, "output"),
        .stdout_is_default = json_is_true(json_object_get(detail, "output_is_default")),
        .kept_max_bytes = daemon->config.kept_output_bytes,
        .stderr_path = detail_text(launch, "error"),
        .append = task->attempts > 1,
        .grace_us = json_integer_value(json_object_get(detail, "grace_us")),
        .time_limit_us = task->request.time_limit_us,
    };
    attempt_folder(daemon, task->id, task->attempts, folder, sizeof folder);
    if (cgroups_name(daemon, folder, cgroup, sizeof cgroup))
        spec.cgroup = cgroup;
    int r = job->has_folder ? 0 : attempt_create(folder, &spec, fault);
    job->has_folder = r == 0;
    if (r == 0)
        r = attempt_spawn(daemon->config.shim, folder, fault, &job->watch);
    if (r == 0)
        job->has_folder = false;
    return r;
}

static void report_started(struct daemon *daemon, const struct job *job, bool by_streams)
{
    struct event started = driver_event(daemon->driver, EVENT_STARTED, job->id);
    started.started.by_streams = by_streams;
    driver_feed(daemon->driver, &started, NULL);
}

void runner_start(struct daemon *daemon, uint64_t id)
{
    const struct task *task = core_task(daemon->core, id);
    struct job *job = job_find(daemon, id);
    if (!task || !job || task->state != TASK_STARTING)
        return;
    if (task->ending) {
        struct event never = driver_event(daemon->driver, EVENT_UNSTARTED, id);
        driver_feed(daemon->driver, &never, NULL);
        return;
    }
    struct launch launch = {0};
    struct fault fault = {0};
    int r = load(daemon, id, &launch, &fault);
    if (r == 0)
        r = fill_environment(daemon, task, &launch, &fault);
    job->awaits_mps = r == MPS_WAIT;
    if (r == 0)
        r = launch_attempt(daemon, job, task, &launch, &fault);
    bool by_streams = launch.by_streams;
    launch_fini(&launch);
    if (job->awaits_mps)
        return;
    if (will_pass(r)) {
        put_off(daemon, job, fault.text);
        return;
    }
    if (r < 0) {
        report_launch_failure(daemon, job, fault.text);
        return;
    }
    watch(daemon, job);
    report_started(daemon, job, by_streams);
}

void runner_mps_ready(struct daemon *daemon, uid_t uid)
{
    uint64_t id = 0;
    for (const struct task *task; (task = core_next_task(daemon->core, id));) {
        id = task->id;
        const struct job *job = job_find(daemon, id);
        if (task->uid == uid && task->state == TASK_STARTING && job && job->awaits_mps)
            runner_start(daemon, id);
    }
}

void runner_kill(struct daemon *daemon, uint64_t id)
{
    const struct task *task = core_task(daemon->core, id);
    const struct job *job = job_find(daemon, id);
    if (!task || !job || job->watch.pidfd < 0)
        return;
    enum attempt_ask ask = task->ending == FAILURE_TIME_LIMIT ? ATTEMPT_ASK_TIME_LIMIT
                                                              : ATTEMPT_ASK_CANCEL;
    attempt_terminate(&job->watch, ask);
}

/* ---- after a restart ---- */

/*
 * The attempt itself tells whether it was given the MPS that was meant for it: STARTED may have
 * been lost with the daemon. What cannot be read says nothing against it.
 */
static bool went_by_streams(
    const struct daemon *daemon, const struct task *task, const char *folder)
{
    struct fault fault = {0};
    char variable[700] = "CUDA_MPS_PIPE_DIRECTORY=";
    size_t n = strlen(variable);
    bool joined;
    if (task->share.sharing != SHARING_MPS)
        return false;
    mps_pipe_dir(daemon->mps, task->uid, variable + n, sizeof variable - n);
    return attempt_has_variable(folder, variable, &fault, &joined) == 0 && !joined;
}

/* STARTED is said again: a task that was told to end meanwhile is told so again. */
static void adopt_running(struct daemon *daemon, struct job *job, bool by_streams)
{
    log_info("task %llu is still running: found again", (unsigned long long)job->id);
    watch(daemon, job);
    report_started(daemon, job, by_streams);
}

/*
 * A start that was put off before the restart has no folder, so no shim can have started it: it is
 * still the same attempt. On a GPU that is gone it would be none.
 */
static bool is_still_put_off(
    const struct daemon *daemon, const struct task *task, const char *folder)
{
    if (task->state != TASK_STARTING || access(folder, F_OK) == 0 || errno != ENOENT)
        return false;
    for (int i = 0; i < task->n_gpus; i++)
        if (core_view(daemon->core)->gpus[task->gpus[i]].health == VIEW_LOST)
            return false;
    return true;
}

/*
 * No shim had claimed the attempt, and none can. The daemon may have died between logging STARTED
 * and the claim: then, too, the attempt has run nothing, unless processes bear its mark.
 * Where the whole folder is gone, a claim may be gone with it.
 */
static void adopt_unclaimed(
    struct daemon *daemon, struct job *job, const struct task *task, int state, const char *folder)
{
    if (task->has_process &&
        (sweep(daemon, folder, task->uid) != 0 || state == ATTEMPT_NO_FOLDER)) {
        report_lost(daemon, job,
            state == ATTEMPT_NO_FOLDER ? "its attempt folder is gone" : "its claim is gone");
        return;
    }
    if (task->has_process)
        log_info(
            "task %llu: its start had come to nothing: queued again", (unsigned long long)job->id);
    struct event never = driver_event(daemon->driver, EVENT_UNSTARTED, job->id);
    driver_feed(daemon->driver, &never, NULL);
}

static void adopt(struct daemon *daemon, const struct task *task)
{
    struct job *job = job_find(daemon, task->id);
    struct attempt_exit exit = {0};
    struct fault fault = {0};
    char folder[600];
    attempt_folder(daemon, task->id, task->attempts, folder, sizeof folder);
    if (is_still_put_off(daemon, task, folder)) {
        job->to_adopt = false;
        runner_start(daemon, task->id);
        return;
    }
    int state = attempt_probe(folder, &fault, &job->watch, &exit);
    if (will_pass(state)) {
        put_off(daemon, job, fault.text);
        return;
    }
    job->to_adopt = false;
    if (state == ATTEMPT_NEVER_STARTED || state == ATTEMPT_NO_FOLDER) {
        adopt_unclaimed(daemon, job, task, state, folder);
        return;
    }
    bool by_streams = went_by_streams(daemon, task, folder);
    if (state == ATTEMPT_RUNNING) {
        adopt_running(daemon, job, by_streams);
        return;
    }
    if (by_streams)
        report_started(daemon, job, by_streams);
    if (state == ATTEMPT_ENDED) {
        take_exit(daemon, job, &exit);
    } else {
        sweep(daemon, folder, task->uid);
        report_lost(
            daemon, job, state < 0 ? fault.text : "its shim was killed or the machine went down");
    }
}

void runner_adopt_all(struct daemon *daemon)
{
    uint64_t id = 0;
    for (const struct task *task; (task = core_next_task(daemon->core, id));) {
        id = task->id;
        struct job *job = job_find(daemon, id);
        if (task_state_holds_gpus(task->state) && job && job->watch.pidfd < 0) {
            job->to_adopt = true;
            adopt(daemon, task);
        }
    }
    cgroups_sweep_left(daemon);
}

void runner_looked(struct daemon *daemon)
{
    uint64_t id = 0;
    if (!daemon->exits_awaiting_look)
        return;
    for (const struct task *task; (task = core_next_task(daemon->core, id));) {
        id = task->id;
        const struct job *job = job_find(daemon, id);
        if (job && job->look_awaited && job->look_awaited <= daemon->looks_ended)
            adopt(daemon, task);
    }
}

void runner_try_again(struct daemon *daemon)
{
    uint64_t id = 0;
    for (const struct task *task; (task = core_next_task(daemon->core, id));) {
        id = task->id;
        const struct job *job = job_find(daemon, id);
        if (!task_state_holds_gpus(task->state) || !job || job->watch.pidfd >= 0)
            continue;
        if (job->to_adopt)
            adopt(daemon, task);
        else
            runner_start(daemon, id);
    }
}
