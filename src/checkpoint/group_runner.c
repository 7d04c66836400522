/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries out the calls of a suspension or a move one after the other: each reply leads to the next
 * call, until the group has an answer. Time limits: copies by what this machine has taken so far,
 * all else by fixed ones. A query of a state waits for a copy that is under way, so it may take as
 * long as one.
 */
#include "checkpoint/group_runner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* The driver waits for calls in flight (1 to 45 ms on an H200) and gives up by itself. Chosen. */
static const int64_t LOCK_MS = 10000;
/* Chosen: twice the driver's own limit; then the helper counts as stuck. */
static const int64_t LOCK_LIMIT_US = 20 * SECOND_US;
/* The first call starts the helper, and cuInit takes seconds on machines with many GPUs. Chosen. */
static const int64_t CALL_LIMIT_US = 30 * SECOND_US;

static void next_call(struct group_runner *runner);

static int64_t process_bytes(const struct group_process *process)
{
    int64_t sum = 0;
    for (size_t i = 0; i < process->n_memory; i++)
        sum += process->memory[i].bytes;
    return sum;
}

/* NULL: it is on several. */
static const char *gpu_of(const struct group_process *process)
{
    return process->n_memory == 1 ? process->memory[0].gpu : NULL;
}

static int64_t limit_of(const struct group_runner *runner)
{
    const struct group_process *process = &runner->group.processes[runner->step.process];
    int64_t bytes = process_bytes(process);
    switch (runner->step.call) {
    case HELPER_LOCK:
        return LOCK_LIMIT_US;
    case HELPER_STATE:
    case HELPER_SUSPEND:
        return copy_speed_limit_us(runner->speed, gpu_of(process), COPY_TO_HOST, bytes);
    case HELPER_RESUME:
        return copy_speed_limit_us(runner->speed, gpu_of(process), COPY_TO_GPU, bytes);
    default:
        return CALL_LIMIT_US;
    }
}

static void learn_copy_speed(struct group_runner *runner, const struct helper_reply *reply)
{
    enum helper_call call = runner->step.call;
    const struct group_process *process = &runner->group.processes[runner->step.process];
    if (runner->teaches_nothing || reply->result != 0 ||
        (call != HELPER_SUSPEND && call != HELPER_RESUME))
        return;
    copy_speed_learn(runner->speed, gpu_of(process),
        call == HELPER_SUSPEND ? COPY_TO_HOST : COPY_TO_GPU, process_bytes(process),
        reply->took_us);
}

static void on_reply(void *context, const struct helper_reply *reply)
{
    struct group_runner *runner = context;
    learn_copy_speed(runner, reply);
    if (reply->result != 0 && reply->result != -ESRCH && !*runner->error)
        snprintf(runner->error, sizeof runner->error, "%s: %.200s",
            helper_call_name(runner->step.call), reply->text);
    process_group_take(&runner->group, &runner->step, reply->result, reply->state);
    next_call(runner);
}

static void fill_request(const struct group_runner *runner, struct helper_request *request)
{
    const struct group_step *step = &runner->step;
    const struct group_process *process = &runner->group.processes[step->process];
    *request = (struct helper_request){
        .call = step->call, .pid = process->pid, .born = process->born, .timeout_ms = LOCK_MS};
    if (step->call == HELPER_RESERVE) {
        const struct group_memory *memory = &process->memory[step->memory];
        snprintf(request->gpu, sizeof request->gpu, "%s", memory->gpu);
        request->bytes = memory->bytes + runner->spare_bytes;
    }
    if (step->call == HELPER_RESUME) {
        request->n_moves = runner->n_moves;
        memcpy(request->moves, runner->moves, sizeof request->moves);
    }
}

static void next_call(struct group_runner *runner)
{
    struct helper_request request;
    enum group_answer answer = process_group_next(&runner->group, &runner->step);
    if (answer == GROUP_CALL) {
        fill_request(runner, &request);
        helper_client_call(runner->client, &request, limit_of(runner), on_reply, runner);
        return;
    }
    runner->is_under_way = false;
    runner->on_done(runner->context, answer, runner->error);
}

int group_runner_start(struct group_runner *runner)
{
    if (runner->is_under_way || helper_client_is_busy(runner->client))
        return -EBUSY;
    runner->is_under_way = true;
    runner->error[0] = '\0';
    runner->step = (struct group_step){0};
    next_call(runner);
    return 0;
}
