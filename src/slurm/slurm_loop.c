/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop of the controller. One round after the other, each begun by a line in the wake file, by
 * the poll timer, by a report of an agent or by the round before, if that has changed anything:
 *
 *     thread   read jobs and nodes from Slurm                    on_loaded
 *     loop     slurm_controller_update: the core decides
 *     thread   make the changes, read scripts of new jobs        on_changed
 *     loop     report what came of the changes, parse scripts, estimate
 *
 * Calls of libslurm wait for slurmctld, up to some ten seconds where it does not answer. They are
 * made by a thread of the loop's pool, never two at a time, so that the loop continues to read the
 * agents' reports.
 *
 * A job that has just been read is placed without another reading of Slurm: once its script is
 * known, the core decides with the records read before. It also does so when an agent's report may
 * permit a placement, at most every SAMPLES_MS: a thousand agents report a thousand times a second.
 *
 * A line in the wake file comes just before its job exists: after it, the controller reads the
 * jobs again a few times, at growing intervals.
 */
#include "slurm/slurm_loop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "slurm/job_files.h"
#include "slurm/slurm_agents.h"
#include "slurm/slurm_api.h"
#include "slurm/wake_watch.h"

enum {
    LOOK_MS = 4,      /* measured: a job exists some milliseconds after its line; then 8, 16, ... */
    LOOKS_MAX = 9,    /* 2 s altogether: slurmctld may be busy */
    SCRIPTS_MAX = 64, /* of one round: each takes slurmctld up to a millisecond */
    LOGS_MAX = 16,
    SAMPLES_MS = 500, /* chosen: half of the agents' period */
};

struct wanted_script {
    struct slurm_job_key key;
    char *text;
    int result;
};

struct wanted_log {
    struct slurm_job_key key;
    char error_path[4096], output_path[4096];
    int result;
};

struct slurm_loop {
    uv_loop_t loop;
    const struct slurm_config *config;
    const struct slurm_calls *calls;
    struct slurm_controller *controller;
    struct job_script_settings script_settings;
    struct job_files *files;
    struct slurm_agents *agents;
    struct slurm_api *api;
    struct wake_watch wake;
    uv_timer_t poll, look, samples;
    uv_signal_t term, interrupt;
    int looks_left;
    uint64_t look_ms; /* until the next of them */
    bool is_ending, is_broken;
    bool is_busy, is_again; /* a round is under way; another is wanted after it */
    bool is_slurm_down;
    char trouble[SLURM_TEXT_MAX]; /* that was said last */

    /* of the round that is under way: while `work` runs, the thread's */
    uv_work_t work;
    int load_result;
    struct fault fault;
    struct slurm_snapshot snapshot;
    struct slurm_change *changes;
    size_t n_changes;
    struct fault *reasons;
    size_t reasons_capacity;
    struct wanted_script scripts[SCRIPTS_MAX];
    struct wanted_log logs[LOGS_MAX];
    size_t n_scripts, n_logs;
};

static void begin_round(struct slurm_loop *loop);
static void decide_changes(struct slurm_loop *loop);

static void want_round(void *context)
{
    struct slurm_loop *loop = context;
    if (loop->is_ending)
        return;
    if (loop->is_busy)
        loop->is_again = true;
    else
        begin_round(loop);
}

static void on_timer(uv_timer_t *timer)
{
    want_round(timer->data);
}

/* Decides with the records read last. */
static void on_samples_timer(uv_timer_t *timer)
{
    struct slurm_loop *loop = timer->data;
    if (loop->is_busy) {
        uv_timer_start(timer, on_samples_timer, SAMPLES_MS, 0);
    } else if (!loop->is_slurm_down && loop->snapshot.nodes) {
        loop->is_busy = true;
        decide_changes(loop);
    }
}

static void want_decision(void *context)
{
    struct slurm_loop *loop = context;
    if (!loop->is_ending && !uv_is_active((uv_handle_t *)&loop->samples))
        uv_timer_start(&loop->samples, on_samples_timer, SAMPLES_MS, 0);
}

/* ---- the end ---- */

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void end_loop(struct slurm_loop *loop)
{
    if (loop->is_ending)
        return;
    loop->is_ending = true;
    close_handle((uv_handle_t *)&loop->poll);
    close_handle((uv_handle_t *)&loop->look);
    close_handle((uv_handle_t *)&loop->samples);
    close_handle((uv_handle_t *)&loop->term);
    close_handle((uv_handle_t *)&loop->interrupt);
    wake_watch_stop(&loop->wake);
    slurm_agents_close(loop->agents);
    slurm_api_close(loop->api);
    job_files_close(loop->files);
}

static void on_signal(uv_signal_t *handle, int number)
{
    end_loop(handle->data);
}

/* ---- a round ---- */

static void finish_round(struct slurm_loop *loop, bool is_again)
{
    loop->is_busy = false;
    if (loop->is_ending)
        return;
    if (is_again || loop->is_again || slurm_controller_has_news(loop->controller)) {
        begin_round(loop);
    } else if (loop->looks_left > 0) {
        loop->looks_left--;
        uv_timer_start(&loop->look, on_timer, loop->look_ms, 0);
        loop->look_ms *= 2;
    }
}

static void make_changes(uv_work_t *work)
{
    struct slurm_loop *loop = work->data;
    const struct slurm_calls *calls = loop->calls;
    for (size_t i = 0; i < loop->n_changes; i++)
        loop->changes[i].result = calls->change(
            calls->context, &loop->changes[i], &loop->reasons[i]);
    for (size_t i = 0; i < loop->n_scripts; i++) {
        struct wanted_script *script = &loop->scripts[i];
        script->text = NULL;
        script->result = calls->read_script(
            calls->context, script->key.id, &loop->fault, &script->text);
    }
    for (size_t i = 0; i < loop->n_logs; i++) {
        struct wanted_log *log = &loop->logs[i];
        *log->error_path = *log->output_path = '\0';
        log->result = calls->find_output_files(
            calls->context, log->key.id, log->error_path, log->output_path, sizeof log->error_path);
    }
}

static void report_change(
    struct slurm_loop *loop, const struct slurm_change *change, const char *reason)
{
    static const char *const texts[] = {[SLURM_PIN] = "pinned",
        [SLURM_RETURN] = "returned to the intake partition",
        [SLURM_REQUEUE] = "requeued",
        [SLURM_DEPEND] = "waits again for a job that failed and is run again"};
    char name[32];
    slurm_controller_job_name(loop->controller, change->task, name, sizeof name);
    slurm_controller_changed(loop->controller, change, reason, clock_monotonic_us());
    if (change->result < 0 && change->result != -ENOENT)
        log_warning("job %u: %s", change->job, reason);
    else if (change->result == 0 && change->kind == SLURM_PIN)
        log_info("job %s: pinned to node%s %s, %s", name, change->n_nodes > 1 ? "s" : "",
            change->nodes, change->gres);
    else if (change->result == 0 && change->kind != SLURM_COMMENT)
        log_info("job %u: %s", change->job, texts[change->kind]);
}

/* A job without a script, as of salloc, has none later either. */
static bool may_come_later(int result)
{
    return result < 0 && result != -ENOENT;
}

static void on_changed(uv_work_t *work, int status)
{
    struct slurm_loop *loop = work->data;
    bool is_any = false;
    for (size_t i = 0; i < loop->n_changes; i++) {
        report_change(loop, &loop->changes[i], loop->reasons[i].text);
        is_any |= loop->changes[i].result == 0;
    }
    for (size_t i = 0; i < loop->n_scripts; i++)
        if (may_come_later(loop->scripts[i].result))
            slurm_controller_want_again(loop->controller, &loop->scripts[i].key);
        else
            job_files_estimate(loop->files, &loop->scripts[i].key, loop->scripts[i].text);
    for (size_t i = 0; i < loop->n_logs; i++)
        if (may_come_later(loop->logs[i].result))
            slurm_controller_want_again(loop->controller, &loop->logs[i].key);
        else
            job_files_examine(loop->files, &loop->logs[i].key, loop->logs[i].error_path,
                loop->logs[i].output_path);
    bool is_only_read = loop->n_changes == 0 && loop->n_scripts > 0 && !loop->is_ending;
    if (is_only_read && slurm_controller_has_news(loop->controller))
        decide_changes(loop);
    else
        finish_round(loop, is_any);
}

static void collect_wanted(struct slurm_loop *loop)
{
    struct slurm_job_key key;
    loop->n_scripts = loop->n_logs = 0;
    while (loop->n_scripts < SCRIPTS_MAX && slurm_controller_wanted_script(loop->controller, &key))
        loop->scripts[loop->n_scripts++].key = key;
    while (loop->n_logs < LOGS_MAX && slurm_controller_wanted_log(loop->controller, &key))
        loop->logs[loop->n_logs++].key = key;
}

static void on_slurm_down(struct slurm_loop *loop)
{
    if (!loop->is_slurm_down)
        log_warning("%s: jobs wait until it answers", loop->fault.text);
    loop->is_slurm_down = true;
    finish_round(loop, false);
}

static void break_loop(struct slurm_loop *loop)
{
    loop->is_broken = true;
    loop->is_busy = false;
    end_loop(loop);
}

/* The core decides on the snapshot; then come the changes. */
static void decide_changes(struct slurm_loop *loop)
{
    if (slurm_controller_update(loop->controller, &loop->snapshot, clock_monotonic_us(),
            clock_wall_us() / SECOND_US, &loop->changes, &loop->n_changes) < 0 ||
        ARRAY_RESERVE(loop->reasons, loop->reasons_capacity, loop->n_changes + 1) < 0) {
        break_loop(loop);
        return;
    }
    for (size_t i = 0; i < loop->n_changes; i++) {
        loop->reasons[i] = (struct fault){0};
        slurm_agents_announce(loop->agents, &loop->changes[i]);
    }
    slurm_agents_order(loop->agents);
    slurm_api_updated(loop->api);
    collect_wanted(loop);
    if (loop->n_changes + loop->n_scripts + loop->n_logs == 0)
        finish_round(loop, false);
    else
        uv_queue_work(&loop->loop, &loop->work, make_changes, on_changed);
}

static void say_trouble(struct slurm_loop *loop)
{
    const char *trouble = loop->snapshot.trouble ? loop->snapshot.trouble : "";
    if (strcmp(trouble, loop->trouble) == 0)
        return;
    if (*trouble)
        log_warning("%s", trouble);
    else
        log_info("the partitions are as they have to be again");
    snprintf(loop->trouble, sizeof loop->trouble, "%s", trouble);
}

static void on_loaded(uv_work_t *work, int status)
{
    struct slurm_loop *loop = work->data;
    if (loop->is_ending) {
        loop->is_busy = false;
        return;
    }
    if (loop->load_result < 0) {
        on_slurm_down(loop);
        return;
    }
    if (loop->is_slurm_down)
        log_info("slurmctld answers again");
    loop->is_slurm_down = false;
    say_trouble(loop);
    decide_changes(loop);
}

static void load_snapshot(uv_work_t *work)
{
    struct slurm_loop *loop = work->data;
    loop->load_result = loop->calls->load(loop->calls->context, &loop->fault, &loop->snapshot);
}

static void begin_round(struct slurm_loop *loop)
{
    loop->is_busy = true;
    loop->is_again = false;
    uv_queue_work(&loop->loop, &loop->work, load_snapshot, on_loaded);
}

/* ---- when ---- */

static void on_wake(void *context)
{
    struct slurm_loop *loop = context;
    loop->looks_left = LOOKS_MAX;
    loop->look_ms = LOOK_MS;
    want_round(loop);
}

static int create_parts(struct slurm_loop *loop, struct fault *fault)
{
    const struct slurm_config *config = loop->config;
    const struct slurm_controller_options options = {.settings = config->core,
        .intake_partition = config->intake_partition,
        .run_partition = config->run_partition,
        .gpu_memory_bytes = config->gpu_memory_bytes};
    loop->script_settings = (struct job_script_settings){
        config->estimator, config->reserve_quantile, config->sharing};
    loop->controller = slurm_controller_create(&options);
    if (loop->controller)
        loop->files = job_files_create(
            &loop->loop, loop->controller, &loop->script_settings, want_round, loop);
    if (!loop->files)
        return fault_set(fault, ENOMEM, "out of memory");
    struct fault why = {0};
    if (wake_watch_start(&loop->wake, &loop->loop, config->wake_file, on_wake, loop, &why) < 0)
        log_warning("%s: submissions are seen at the next poll only", why.text);
    if (slurm_api_create(&loop->loop, config, loop->controller, &why, &loop->api) < 0)
        log_warning("%s: colloc's commands cannot ask the controller", why.text);
    return slurm_agents_create(&loop->loop, config, loop->controller, want_round, want_decision,
        loop, fault, &loop->agents);
}

static void start_timers(struct slurm_loop *loop)
{
    uint64_t poll_ms = (uint64_t)(loop->config->poll_us / MS_US);
    uv_timer_start(&loop->poll, on_timer, poll_ms, poll_ms);
    uv_signal_start(&loop->term, on_signal, SIGTERM);
    uv_signal_start(&loop->interrupt, on_signal, SIGINT);
}

static void init_handles(struct slurm_loop *loop)
{
    uv_timer_init(&loop->loop, &loop->poll);
    uv_timer_init(&loop->loop, &loop->look);
    uv_timer_init(&loop->loop, &loop->samples);
    uv_signal_init(&loop->loop, &loop->term);
    uv_signal_init(&loop->loop, &loop->interrupt);
    loop->poll.data = loop->look.data = loop->samples.data = loop;
    loop->term.data = loop->interrupt.data = loop;
    loop->work.data = loop;
    loop->wake.fd = -1;
}

int slurm_loop_run(
    const struct slurm_config *config, const struct slurm_calls *calls, struct fault *fault)
{
    struct slurm_loop *loop = calloc(1, sizeof *loop);
    if (!loop)
        return fault_set(fault, ENOMEM, "out of memory");
    loop->config = config;
    loop->calls = calls;
    uv_loop_init(&loop->loop);
    init_handles(loop);
    int r = create_parts(loop, fault);
    if (r == 0) {
        start_timers(loop);
        begin_round(loop);
    } else {
        end_loop(loop);
    }
    uv_run(&loop->loop, UV_RUN_DEFAULT);
    if (loop->is_broken)
        r = fault_set(fault, ENOMEM, "out of memory");
    slurm_agents_destroy(loop->agents);
    slurm_api_destroy(loop->api);
    job_files_destroy(loop->files);
    slurm_controller_destroy(loop->controller);
    uv_loop_close(&loop->loop);
    free(loop->reasons);
    free(loop);
    return r;
}
