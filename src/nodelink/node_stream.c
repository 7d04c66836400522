/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Within one boot of a node the sequence decides. A report of another boot is newer if its wall
 * time is: the node was restarted. Rates are limited as by a bucket of REPORT_BURST_MAX reports
 * that fills at the highest rate (the "virtual scheduling" of ITU-T I.371).
 *
 * A node's wall time is used for nothing else: the controller stamps readings with its own clock.
 */
#include "nodelink/node_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_newer(const struct node_stream *stream, const struct node_report *report)
{
    if (strcmp(stream->boot, report->boot) == 0)
        return report->sequence > stream->sequence;
    return report->time_us > stream->time_us;
}

enum stream_answer node_stream_accept(struct node_stream *stream, const struct node_report *report,
    int64_t now_us, int64_t wall_us, struct fault *fault)
{
    bool is_first = stream->due_us == 0;
    if (!is_first && !is_newer(stream, report)) {
        fault_set(fault, EINVAL,
            "not newer than the last one of node %s: is there a second agent with this name?",
            report->node);
        return STREAM_OLD;
    }
    int64_t due_us = stream->due_us > now_us ? stream->due_us : now_us;
    if (due_us - now_us > REPORT_BURST_MAX * REPORT_PERIOD_MIN_US) {
        fault_set(fault, EAGAIN, "node %s reports more than %d times a second", report->node,
            (int)(SECOND_US / REPORT_PERIOD_MIN_US));
        return STREAM_TOO_OFTEN;
    }
    stream->due_us = due_us + REPORT_PERIOD_MIN_US;
    stream->sequence = report->sequence;
    stream->time_us = report->time_us;
    stream->clock_ahead_us = report->time_us - wall_us;
    memcpy(stream->boot, report->boot, sizeof stream->boot);
    return STREAM_ACCEPTED;
}

bool node_stream_is_clock_apart(const struct node_stream *stream)
{
    return llabs(stream->clock_ahead_us) > CLOCK_APART_MAX_US;
}
