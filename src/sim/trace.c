/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/trace.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"

const char *trace_format_time(int64_t us, char *buffer, size_t size)
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
    char need[32] = "unknown";
    if (request->need.kind == NEED_PENDING)
        strcpy(need, "pending");
    else if (request->need.kind >= NEED_ESTIMATED)
        format_size(request->need.bytes, need, sizeof need);
    snprintf(text, size, " gpus=%d need=%s%s%s", request->gpus, need,
        request->exclusive ? " exclusive" : "", event->submit.held ? " held" : "");
}

static void describe_place(const struct event *event, char *text, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < event->place.n && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, " gpu%d", event->place.gpus[i]);
    if (used < size)
        snprintf(text + used, size - used, " %s%s", sharing_name(event->place.share.sharing),
            event->place.whole ? " whole" : "");
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

static const char *verb(enum event_kind kind)
{
    static const char *const verbs[EVENT_KINDS] = {
        [EVENT_SUBMIT] = "submit",
        [EVENT_ESTIMATE] = "estimate",
        [EVENT_STARTED] = "started",
        [EVENT_UNSTARTED] = "unstarted",
        [EVENT_EXITED] = "exit",
        [EVENT_CANCEL] = "cancel",
        [EVENT_HOLD] = "hold",
        [EVENT_RELEASE] = "release",
        [EVENT_PLACE] = "place",
        [EVENT_EXPIRE] = "expire",
        [EVENT_EVICT] = "evict",
        [EVENT_COMPANY] = "company",
        [EVENT_RECOVER] = "recover",
        [EVENT_REQUEUE] = "requeue",
        [EVENT_END] = "end",
    };
    return kind < EVENT_KINDS ? verbs[kind] : "wait";
}

bool trace_format(
    const struct core *core, const struct event *event, const char *name, char *buffer, size_t size)
{
    char time[32], more[1024] = "";
    if (!verb(event->kind))
        return false;
    switch (event->kind) {
    case EVENT_SUBMIT:
        describe_submit(event, more, sizeof more);
        break;
    case EVENT_ESTIMATE:
        strcpy(more, " ");
        format_size(event->estimate.bytes, more + 1, sizeof more - 1);
        break;
    case EVENT_PLACE:
        describe_place(event, more, sizeof more);
        break;
    case EVENT_EXITED:
        describe_exit(event, more, sizeof more);
        break;
    case EVENT_END:
        snprintf(more, sizeof more, " %s", task_state_word(event->end));
        break;
    case EVENT_KINDS:
        strcpy(more, ": ");
        core_explain(core, event->task, event->time_us, more + 2, sizeof more - 2);
        break;
    default:
        break;
    }
    snprintf(buffer, size, "t=%s %s %s%s", trace_format_time(event->time_us, time, sizeof time),
        verb(event->kind), name, more);
    return true;
}
