/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a group of trainings as tasks of a daemon: submits them, polls their states, and reads their
 * logs when they have ended. States are polled instead of waited for, since one thread also takes
 * the samples of the GPUs, which come due in between. A group that is ended early has its tasks
 * cancelled.
 */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/client.h"
#include "base/array.h"
#include "base/clock.h"
#include "bench/trainer_group.h"

#define POLL_PERIOD_US (SECOND_US / 4) /* between two queries of the tasks' states; chosen */

struct remote_task {
    int64_t id;
    bool done;
};

struct group_tasks {
    const struct trainer_group *trainers;
    struct client *client;
    struct fault *fault;
    struct remote_task tasks[BENCH_TASKS_MAX];
    struct training_result *results;
    int started, alive;
    int64_t next_sample_us, next_poll_us, deadline_us;
};

static double unix_s(void)
{
    return (double)clock_wall_us() / (double)SECOND_US;
}

static int send_request(
    struct group_tasks *group, const char *method, const char *path, json_t **ret_reply)
{
    int status;
    int r = client_request(group->client, method, path, NULL, group->fault, &status, ret_reply);
    if (r == 0 && status >= 400) {
        client_error(status, *ret_reply, group->fault);
        json_decref(*ret_reply);
        r = -EPROTO;
    }
    return r;
}

static int read_output(struct group_tasks *group, int i)
{
    struct training_log *parser = calloc(1, sizeof *parser);
    int64_t offset = 0;
    int r = 0, status = 200;
    for (bool ended = !parser; r == 0 && status == 200 && !ended;) {
        struct client_log log = {0};
        char path[128];
        snprintf(path, sizeof path, "/v1/tasks/%lld/log?stream=stdout&offset=%lld",
            (long long)group->tasks[i].id, (long long)offset);
        r = client_read_log(group->client, path, group->fault, &status, &log);
        if (r == 0 && status == 200)
            training_log_feed(parser, &group->results[i].report, log.data, log.size);
        ended = log.ended || log.size == 0;
        offset = log.next_offset;
        free(log.data);
    }
    free(parser);
    return r;
}

/* Takes over the result of a task that has ended. */
static int read_result(struct group_tasks *group, int i, const json_t *task)
{
    struct training_result *result = &group->results[i];
    const json_t *code = json_object_get(task, "exit_code");
    const char *state = json_string_value(json_object_get(task, "state"));
    const char *reason = json_string_value(json_object_get(task, "reason"));
    result->ended_unix_s = unix_s();
    result->exit_code = json_is_integer(code) ? (int)json_integer_value(code) : -1;
    if (state && strcmp(state, "COMPLETED") != 0)
        snprintf(result->failure, sizeof result->failure, "%s: %s", state, reason ? reason : "");
    const char *failure = json_string_value(json_object_get(task, "failure"));
    result->out_of_gpu_memory = failure && strcmp(failure, "gpu-oom") == 0;
    group->tasks[i].done = true;
    group->alive--;
    return read_output(group, i);
}

static int poll_task(struct group_tasks *group, int i)
{
    static const char *const ends[] = {
        "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY"};
    char path[64];
    json_t *reply;
    snprintf(path, sizeof path, "/v1/tasks/%lld", (long long)group->tasks[i].id);
    int r = send_request(group, "GET", path, &reply);
    if (r < 0)
        return r;
    const json_t *wrapped = json_object_get(reply, "task"), *task = wrapped ? wrapped : reply;
    const char *state = json_string_value(json_object_get(task, "state"));
    for (size_t n = 0; state && n < ARRAY_SIZE(ends); n++)
        if (strcmp(state, ends[n]) == 0)
            r = read_result(group, i, task);
    json_decref(reply);
    return r;
}

static void cancel_all(struct group_tasks *group)
{
    char path[64];
    json_t *reply;
    for (int i = 0; i < group->started; i++) {
        snprintf(path, sizeof path, "/v1/tasks/%lld/cancel", (long long)group->tasks[i].id);
        if (!group->tasks[i].done && send_request(group, "POST", path, &reply) == 0)
            json_decref(reply);
    }
}

static int start_due(struct group_tasks *group, training_submit *submit, void *context)
{
    const struct bench_group *bench_group = group->trainers->group;
    bool serial = bench_group_is_serial(bench_group);
    while (group->started < bench_group->n_tasks && !(serial && group->alive)) {
        int i = group->started;
        group->results[i].started_unix_s = unix_s();
        int r = submit(context, bench_group, i, group->fault, &group->tasks[i].id);
        if (r < 0)
            return r;
        *group->results[i].failure = '\0';
        group->started++;
        group->alive++;
    }
    return 0;
}

static int poll_all(struct group_tasks *group)
{
    int r = 0;
    group->next_poll_us = clock_monotonic_us() + POLL_PERIOD_US;
    for (int i = 0; r == 0 && i < group->started; i++)
        if (!group->tasks[i].done)
            r = poll_task(group, i);
    return r;
}

/* Waits until a sample or a poll is due. True: a signal came. */
static bool wait_until_due(const struct group_tasks *group)
{
    struct pollfd fd = {.fd = group->trainers->signals, .events = POLLIN};
    int64_t until_us = group->next_sample_us < group->next_poll_us ? group->next_sample_us
                                                                   : group->next_poll_us;
    int64_t left_us = until_us - clock_monotonic_us();
    return poll(&fd, 1, left_us <= 0 ? 0 : (int)(left_us / MS_US) + 1) > 0;
}

static int run_tasks(struct group_tasks *group, training_submit *submit, void *context)
{
    int r = start_due(group, submit, context);
    while (r == 0 && group->alive) {
        if (wait_until_due(group))
            return TRAINER_INTERRUPTED;
        int64_t now_us = clock_monotonic_us();
        if (now_us >= group->deadline_us)
            return TRAINER_TIMEOUT;
        if (now_us >= group->next_sample_us) {
            group->trainers->sample(group->trainers->context);
            group->next_sample_us = now_us + group->trainers->period_us;
        }
        if (now_us >= group->next_poll_us)
            r = poll_all(group);
        if (r == 0)
            r = start_due(group, submit, context);
    }
    return r;
}

int trainer_group_run_tasks(const struct trainer_group *trainers, struct client *client,
    training_submit *submit, void *submit_context, struct fault *fault,
    struct training_result *ret_results)
{
    struct group_tasks *group = calloc(1, sizeof *group);
    if (!group)
        return fault_set(fault, ENOMEM, "out of memory");
    int64_t now_us = clock_monotonic_us();
    *group = (struct group_tasks){
        .trainers = trainers, .client = client, .fault = fault, .results = ret_results};
    group->next_sample_us = now_us;
    group->next_poll_us = now_us + POLL_PERIOD_US;
    group->deadline_us = now_us + trainers->limit_us;
    for (int i = 0; i < trainers->group->n_tasks; i++)
        ret_results[i] = (struct training_result){.exit_code = -1, .failure = "never started"};
    int r = run_tasks(group, submit, submit_context);
    if (r != 0)
        cancel_all(group);
    free(group);
    return r;
}
