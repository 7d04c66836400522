/* SPDX-License-Identifier: Apache-2.0 */
/* The names of events. They stand in logs: an old name stays when the event gets a better one. */
#include "core/event.h"

#include <errno.h>
#include <string.h>

static const char *const names[EVENT_KINDS] = {
    [EVENT_GPUS] = "GPUS",
    [EVENT_SUBMIT] = "SUBMIT",
    [EVENT_ESTIMATE] = "ESTIMATE",
    [EVENT_SAMPLE] = "SAMPLE",
    [EVENT_STARTED] = "STARTED",
    [EVENT_UNSTARTED] = "UNSTARTED",
    [EVENT_EXITED] = "EXITED",
    [EVENT_CANCEL] = "CANCEL",
    [EVENT_HOLD] = "HOLD",
    [EVENT_RELEASE] = "RELEASE",
    [EVENT_UPDATE] = "UPDATE",
    [EVENT_SUSPEND] = "SUSPEND",
    [EVENT_RESUME] = "RESUME",
    [EVENT_MOVE] = "MOVE",
    [EVENT_SUSPENDED] = "SUSPENDED",
    [EVENT_RESUMED] = "RESUMED",
    [EVENT_MOVED] = "MOVED",
    [EVENT_SUSPENSION_FAILED] = "SUSPENSION_FAILED",
    [EVENT_MEMORY_WAIT] = "MEMORY_WAIT",
    [EVENT_MEMORY_WAIT_END] = "MEMORY_WAIT_END",
    [EVENT_DEPENDENCY] = "DEPENDENCY",
    [EVENT_RESERVE] = "RESERVE",
    [EVENT_UNRESERVE] = "UNRESERVE",
    [EVENT_IDLE] = "IDLE",
    [EVENT_WAKE] = "WAKE",
    [EVENT_LATENCY] = "LATENCY",
    [EVENT_SUSPENSION_COST] = "SUSPENSION_COST",
    [EVENT_TICK] = "TICK",
    [EVENT_PLACE] = "PLACE",
    [EVENT_EXPIRE] = "EXPIRE",
    [EVENT_EVICT] = "EVICT",
    [EVENT_EXTERNAL_SEEN] = "COMPANY",
    [EVENT_RECOVER] = "RECOVER",
    [EVENT_REQUEUE] = "REQUEUE",
    [EVENT_RESTART] = "RESTART",
    [EVENT_END] = "END",
    [EVENT_SUSPENDING] = "SUSPENDING",
    [EVENT_RESUMING] = "RESUMING",
    [EVENT_MOVING] = "MOVING",
    [EVENT_PAUSE] = "PAUSE",
    [EVENT_CONTINUE] = "CONTINUE",
    [EVENT_MEMORY_ANSWER] = "MEMORY_ANSWER",
    [EVENT_ELIGIBLE] = "ELIGIBLE",
    [EVENT_LATEST_START] = "LATEST_START",
    [EVENT_FIFO] = "FIFO",
    [EVENT_USAGE] = "USAGE",
};

const char *event_name(enum event_kind kind)
{
    return names[kind];
}

int event_parse_name(const char *name, enum event_kind *ret_kind)
{
    for (int i = 0; i < EVENT_KINDS; i++) {
        if (strcmp(names[i], name) == 0) {
            *ret_kind = (enum event_kind)i;
            return 0;
        }
    }
    return -EINVAL;
}
