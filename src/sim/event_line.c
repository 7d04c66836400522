/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes "t=TIME VERB NAME DETAILS". The details are short: what a reader needs to follow the
 * scheduler, not all that the event holds.
 *
 * Contract: the form of a line does not change. Users and tests compare these lines.
 */
#include "sim/event_line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"

const char *event_line_format_time(int64_t us, char *buffer, size_t size)
{
    snprintf(buffer, size, "%.3f", (double)us / (double)SECOND_US);
    char *end = buffer + strlen(buffer) - 1;
    while (*end == '0')
        *end-- = '\0';
    if (*end == '.')
        *end = '\0';
    return buffer;
}

static void describe_submit(const struct event *event, char *text, size_t size)
{
    const struct task_request *request = &event->submit.request;
    char need[32] = "unknown", nodes[24] = "";
    if (request->nodes > 1)
        snprintf(nodes, sizeof nodes, " nodes=%d", request->nodes);
    if (request->need.kind == NEED_PENDING)
        strcpy(need, "pending");
    else if (request->need.kind >= NEED_ESTIMATED)
        format_size(request->need.bytes, need, sizeof need);
    snprintf(text, size, " gpus=%d%s need=%s%s%s", request->gpus, nodes, need,
        request->exclusive ? " exclusive" : "", event->submit.held ? " held" : "");
}

static size_t list_gpus(const int *gpus, int n, char *text, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < n && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, " gpu%d", gpus[i]);
    return used;
}

static void describe_yield(const struct event *event, char *text, size_t size)
{
    bool has_reason = event->kind != EVENT_MOVE && event->kind != EVENT_RESUMING;
    bool has_copy = event->kind == EVENT_SUSPENDING && event->yield.n > 0;
    size_t used = has_copy ? (size_t)snprintf(text, size, " to gpu%d", event->yield.gpus[0])
                           : list_gpus(event->yield.gpus, event->yield.n, text, size);
    if (has_reason && used < size)
        used += (size_t)snprintf(
            text + used, size - used, " for %s", yield_reason_name(event->yield.reason));
    if (event->yield.to_task && used < size)
        used += (size_t)snprintf(text + used, size - used, " %" PRIu64, event->yield.to_task);
    if (event->yield.keeps_context && used < size)
        snprintf(text + used, size - used, ", its context stays");
}

static void describe_place(const struct event *event, char *text, size_t size)
{
    size_t used = list_gpus(event->place.gpus, event->place.n, text, size);
    if (used < size)
        snprintf(text + used, size - used, " %s%s", sharing_name(event->place.share.sharing),
            event->place.exclusive ? " whole" : "");
    used = strlen(text);
    if (event->place.share.thread_percent && used < size)
        snprintf(text + used, size - used, " %d%%", event->place.share.thread_percent);
}

static void describe_update(const struct task_update *update, char *text, size_t size)
{
    char part[64];
    FILE *out = fmemopen(text, size, "w");
    if (!out)
        return;
    if (update->sets_time_limit)
        fprintf(out, " limit=%s", format_elapsed(update->time_limit_us, part, sizeof part));
    if (update->sets_priority)
        fprintf(out, " priority=%s", priority_name(update->priority));
    if (update->sets_need)
        fprintf(out, " need=%s", format_size(update->need.bytes, part, sizeof part));
    if (update->sets_begin) {
        event_line_format_time(update->begin_us, part, sizeof part);
        fprintf(out, " begin=%s", part);
    }
    for (int i = 0; i < update->n_after; i++)
        fprintf(out, " after=%s", dependency_format(&update->after[i], part, sizeof part));
    fclose(out);
}

static void describe_exit(const struct event *event, char *text, size_t size)
{
    if (event->exited.signal)
        snprintf(
            text, size, " %s signal=%d", failure_name(event->exited.failure), event->exited.signal);
    else
        snprintf(
            text, size, " %s code=%d", failure_name(event->exited.failure), event->exited.code);
}

/* NULL for the events that have no line. */
static const char *verb_of(enum event_kind kind)
{
    static const char *const verbs[EVENT_KINDS] = {
        [EVENT_SUBMIT] = "submit",
        [EVENT_ESTIMATE] = "estimate",
        [EVENT_STARTED] = "started",
        [EVENT_UNSTARTED] = "unstarted",
        [EVENT_EXITED] = "exit",
        [EVENT_CANCEL] = "cancel",
        [EVENT_RUN_AGAIN] = "run-again",
        [EVENT_HOLD] = "hold",
        [EVENT_RELEASE] = "release",
        [EVENT_UPDATE] = "update",
        [EVENT_RESERVE] = "reserve",
        [EVENT_UNRESERVE] = "unreserve",
        [EVENT_DEPENDENCY] = "dependency",
        [EVENT_ELIGIBLE] = "eligible",
        [EVENT_PLACE] = "place",
        [EVENT_EXPIRE] = "expire",
        [EVENT_EVICT] = "evict",
        [EVENT_METRIC] = "metric",
        [EVENT_STOP] = "stop",
        [EVENT_EXTERNAL_SEEN] = "company",
        [EVENT_RECOVER] = "recover",
        [EVENT_REQUEUE] = "requeue",
        [EVENT_RESTART] = "restart",
        [EVENT_END] = "end",
        [EVENT_SUSPEND] = "suspend",
        [EVENT_RESUME] = "resume",
        [EVENT_MOVE] = "move",
        [EVENT_SUSPENDED] = "suspended",
        [EVENT_RESUMED] = "resumed",
        [EVENT_MOVED] = "moved",
        [EVENT_RELOCATED] = "relocated",
        [EVENT_SUSPENSION_FAILED] = "suspension-failed",
        [EVENT_MEMORY_WAIT] = "memory-wait",
        [EVENT_MEMORY_WAIT_END] = "memory-wait-end",
        [EVENT_SUSPENDING] = "suspending",
        [EVENT_RELOCATING] = "relocating",
        [EVENT_RESUMING] = "resuming",
        [EVENT_MOVING] = "moving",
        [EVENT_PAUSE] = "pause",
        [EVENT_CONTINUE] = "continue",
        [EVENT_MEMORY_ANSWER] = "memory-answer",
        [EVENT_IDLE] = "idle",
        [EVENT_WAKE] = "wake",
    };
    return verbs[kind];
}

static void describe_estimate(const struct event *event, char *more, size_t size)
{
    char smact[32] = "", text[64] = "unknown";
    if (event->estimate.need.kind >= NEED_ESTIMATED)
        format_size(event->estimate.need.bytes, text, sizeof text);
    if (event->estimate.smact.valid)
        snprintf(smact, sizeof smact, " smact=%g", event->estimate.smact.value);
    snprintf(more, size, " %s%s", text, smact);
}

/* An allocation waits for memory, or is answered. */
static void describe_memory(const struct event *event, char *more, size_t size)
{
    char text[32];
    if (event->kind == EVENT_MEMORY_WAIT)
        snprintf(more, size, " %s", format_size(event->memory_wait.bytes, text, sizeof text));
    else
        snprintf(more, size, " %s", event->memory_granted ? "granted" : "denied");
}

/* A trial of an array with a stop rule reports, or is stopped. */
static void describe_trial(const struct event *event, char *more, size_t size)
{
    if (event->kind == EVENT_METRIC)
        snprintf(more, size, " task=%" PRIu64 " rung=%d", event->metric.task, event->metric.rung);
    else
        snprintf(more, size, " rung=%d rank=%d of=%d", event->stop.rung, event->stop.rank,
            event->stop.of);
}

static void describe_event(const struct event *event, char *more, size_t size)
{
    char text[64];
    switch (event->kind) {
    case EVENT_SUBMIT:
        describe_submit(event, more, size);
        break;
    case EVENT_ESTIMATE:
        describe_estimate(event, more, size);
        break;
    case EVENT_UPDATE:
        describe_update(&event->update, more, size);
        break;
    case EVENT_RESERVE:
        snprintf(more, size, "%d gpus=%d", (int)event->reserve.id, event->reserve.gpus);
        break;
    case EVENT_UNRESERVE:
        snprintf(more, size, "%d", (int)event->unreserve);
        break;
    case EVENT_PLACE:
        describe_place(event, more, size);
        break;
    case EVENT_EXITED:
        describe_exit(event, more, size);
        break;
    case EVENT_MOVE:
    case EVENT_MOVING:
    case EVENT_RESUMING:
    case EVENT_SUSPENDING:
    case EVENT_PAUSE:
        describe_yield(event, more, size);
        break;
    case EVENT_SUSPENSION_FAILED:
        snprintf(more, size, " %s %s", suspension_failure_name(event->suspension_failed.why),
            event->suspension_failed.is_suspended ? "suspended" : "running");
        break;
    case EVENT_DEPENDENCY:
        dependency_format(&event->dependency.dependency, text, sizeof text);
        snprintf(more, size, " %s %s", text, event->dependency.holds ? "holds" : "never");
        break;
    case EVENT_RESTART:
        event_line_format_time(event->restart_us, text, sizeof text);
        snprintf(more, size, " begin=%s", text);
        break;
    case EVENT_MEMORY_WAIT:
    case EVENT_MEMORY_ANSWER:
        describe_memory(event, more, size);
        break;
    case EVENT_METRIC:
    case EVENT_STOP:
        describe_trial(event, more, size);
        break;
    case EVENT_END:
        snprintf(more, size, " %s", task_state_word(event->end));
        break;
    default:
        break;
    }
}

bool event_line_format(const struct event *event, const char *name, char *buffer, size_t size)
{
    char time[32], more[1024] = "";
    const char *verb = verb_of(event->kind);
    if (!verb)
        return false;
    describe_event(event, more, sizeof more);
    event_line_format_time(event->time_us, time, sizeof time);
    snprintf(buffer, size, "t=%s %s %s%s", time, verb, name, more);
    return true;
}

void event_line_format_wait(const struct core *core, uint64_t task, int64_t now_us,
    const char *name, char *buffer, size_t size)
{
    char time[32], reason[1022];
    core_explain(core, task, now_us, reason, sizeof reason);
    event_line_format_time(now_us, time, sizeof time);
    snprintf(buffer, size, "t=%s wait %s: %s", time, name, reason);
}
