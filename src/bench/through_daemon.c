/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/client.h"
#include "base/clock.h"
#include "bench/crew.h"

#define ASK_PERIOD_US (SECOND_US / 4)

struct job {
    int64_t id;
    bool done;
};

struct shift {
    const struct crew *crew;
    struct client *client;
    struct fault *fault;
    struct job jobs[BENCH_TASKS_MAX];
    struct crew_result *results;
    int started, alive;
    int64_t next_look_us, next_ask_us, deadline_us;
};

static double unix_s(void)
{
    return (double)clock_wall_us() / (double)SECOND_US;
}

static int ask(struct shift *shift, const char *method, const char *path, json_t **ret_reply)
{
    int status;
    int r = client_request(shift->client, method, path, NULL, shift->fault, &status, ret_reply);
    if (r == 0 && status >= 400) {
        client_error(status, *ret_reply, shift->fault);
        json_decref(*ret_reply);
        r = -EPROTO;
    }
    return r;
}

static int read_output(struct shift *shift, int i)
{
    struct told_stream *stream = calloc(1, sizeof *stream);
    int64_t offset = 0;
    int r = 0, status = 200;
    for (bool ended = !stream; r == 0 && status == 200 && !ended;) {
        struct client_log log = {0};
        char path[128];
        snprintf(path, sizeof path, "/v1/tasks/%lld/log?stream=stdout&offset=%lld",
            (long long)shift->jobs[i].id, (long long)offset);
        r = client_read_log(shift->client, path, shift->fault, &status, &log);
        if (r == 0 && status == 200)
            told_bytes(stream, &shift->results[i].told, log.data, log.size);
        ended = log.ended || log.size == 0;
        offset = log.next_offset;
        free(log.data);
    }
    free(stream);
    return r;
}

/* What the daemon says of a task that is done. */
static int tell_end(struct shift *shift, int i, const json_t *task)
{
    struct crew_result *result = &shift->results[i];
    const json_t *code = json_object_get(task, "exit_code");
    const char *state = json_string_value(json_object_get(task, "state"));
    const char *reason = json_string_value(json_object_get(task, "reason"));
    result->ended_unix_s = unix_s();
    result->exit_code = json_is_integer(code) ? (int)json_integer_value(code) : -1;
    if (state && strcmp(state, "COMPLETED") != 0)
        snprintf(result->failure, sizeof result->failure, "%s: %s", state, reason ? reason : "");
    const char *failure = json_string_value(json_object_get(task, "failure"));
    result->out_of_gpu_memory = failure && strcmp(failure, "gpu-oom") == 0;
    shift->jobs[i].done = true;
    shift->alive--;
    return read_output(shift, i);
}

static int ask_after(struct shift *shift, int i)
{
    static const char *const ends[] = {
        "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY"};
    char path[64];
    json_t *reply;
    snprintf(path, sizeof path, "/v1/tasks/%lld", (long long)shift->jobs[i].id);
    int r = ask(shift, "GET", path, &reply);
    if (r < 0)
        return r;
    const json_t *wrapped = json_object_get(reply, "task"), *task = wrapped ? wrapped : reply;
    const char *state = json_string_value(json_object_get(task, "state"));
    for (size_t n = 0; state && n < sizeof ends / sizeof *ends; n++)
        if (strcmp(state, ends[n]) == 0)
            r = tell_end(shift, i, task);
    json_decref(reply);
    return r;
}

static void cancel_all(struct shift *shift)
{
    char path[64];
    json_t *reply;
    for (int i = 0; i < shift->started; i++) {
        snprintf(path, sizeof path, "/v1/tasks/%lld/cancel", (long long)shift->jobs[i].id);
        if (!shift->jobs[i].done && ask(shift, "POST", path, &reply) == 0)
            json_decref(reply);
    }
}

static int start_due(struct shift *shift, crew_submit *submit, void *context)
{
    const struct bench_group *group = shift->crew->group;
    bool serial = group->sharing == BENCH_SERIAL;
    while (shift->started < group->n_tasks && !(serial && shift->alive)) {
        int i = shift->started;
        shift->results[i].started_unix_s = unix_s();
        int r = submit(context, group, i, shift->fault, &shift->jobs[i].id);
        if (r < 0)
            return r;
        *shift->results[i].failure = '\0';
        shift->started++;
        shift->alive++;
    }
    return 0;
}

static int ask_after_all(struct shift *shift)
{
    int r = 0;
    shift->next_ask_us = clock_monotonic_us() + ASK_PERIOD_US;
    for (int i = 0; r == 0 && i < shift->started; i++)
        if (!shift->jobs[i].done)
            r = ask_after(shift, i);
    return r;
}

/* Until the next thing is due. True when a signal came. */
static bool doze(const struct shift *shift)
{
    struct pollfd fd = {.fd = shift->crew->signals, .events = POLLIN};
    int64_t until_us = shift->next_look_us < shift->next_ask_us ? shift->next_look_us
                                                                : shift->next_ask_us;
    int64_t left_us = until_us - clock_monotonic_us();
    return poll(&fd, 1, left_us <= 0 ? 0 : (int)(left_us / MS_US) + 1) > 0;
}

static int work(struct shift *shift, crew_submit *submit, void *context)
{
    int r = start_due(shift, submit, context);
    while (r == 0 && shift->alive) {
        if (doze(shift))
            return CREW_INTERRUPTED;
        int64_t now_us = clock_monotonic_us();
        if (now_us >= shift->deadline_us)
            return CREW_TOO_LONG;
        if (now_us >= shift->next_look_us) {
            shift->crew->look(shift->crew->context);
            shift->next_look_us = now_us + shift->crew->period_us;
        }
        if (now_us >= shift->next_ask_us)
            r = ask_after_all(shift);
        if (r == 0)
            r = start_due(shift, submit, context);
    }
    return r;
}

int crew_of_tasks(const struct crew *crew, struct client *client, crew_submit *submit,
    void *submit_context, struct fault *fault, struct crew_result *ret_results)
{
    struct shift *shift = calloc(1, sizeof *shift);
    if (!shift)
        return fault_set(fault, ENOMEM, "out of memory");
    int64_t now_us = clock_monotonic_us();
    *shift = (struct shift){.crew = crew, .client = client, .fault = fault, .results = ret_results};
    shift->next_look_us = now_us;
    shift->next_ask_us = now_us + ASK_PERIOD_US;
    shift->deadline_us = now_us + crew->limit_us;
    for (int i = 0; i < crew->group->n_tasks; i++)
        ret_results[i] = (struct crew_result){.exit_code = -1, .failure = "never started"};
    int r = work(shift, submit, submit_context);
    if (r != 0)
        cancel_all(shift);
    free(shift);
    return r;
}
