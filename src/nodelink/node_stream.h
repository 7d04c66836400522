/* SPDX-License-Identifier: Apache-2.0 */
/* The reports of one node over time: which of them is newer than the last, and whether they come
 * too often. Pure. */
#ifndef COLLOC_NODELINK_NODE_STREAM_H
#define COLLOC_NODELINK_NODE_STREAM_H

#include "base/clock.h"
#include "nodelink/node_report.h"

#define REPORT_PERIOD_MIN_US (SECOND_US / 5) /* chosen: agents send one a second */
enum { REPORT_BURST_MAX = 10 };              /* chosen: a second after a stop of the network */

/* How far a node's clock may be from the controller's; chosen: well below munge's 60 s, beyond
 * which no report is accepted at all. */
#define CLOCK_APART_MAX_US (10 * SECOND_US)

/* Start with {0}. */
struct node_stream {
    char boot[NODE_BOOT_SIZE]; /* of the last accepted report */
    int64_t sequence, time_us;
    int64_t due_us;         /* monotonic: when the next report is due at the highest rate */
    int64_t clock_ahead_us; /* the node's clock less the controller's, at the last report */
};

enum stream_answer {
    STREAM_ACCEPTED,
    STREAM_OLD = 1,   /* not newer than the last one: repeated, or of another agent */
    STREAM_TOO_OFTEN, /* beyond REPORT_PERIOD_MIN_US and REPORT_BURST_MAX */
};

/*
 * Judges a report and, unless it is refused, notes it.
 *
 * now_us:  monotonic
 * wall_us: wall time
 *
 * Returns a stream_answer, with a sentence in `fault` for a refusal.
 */
enum stream_answer node_stream_accept(struct node_stream *stream, const struct node_report *report,
    int64_t now_us, int64_t wall_us, struct fault *fault);

/* Are the two clocks too far apart, by the last report? */
bool node_stream_is_clock_apart(const struct node_stream *stream);

#endif
