/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a task would have had its GPUs without others there: what the ledger of sharing rests on
 * (docs/ledger.md). Each poll of the GPUs adds the time since the one before:
 *
 *     no other computes there   the time itself: sharing saved and cost nothing
 *     others do, with steps     the steps, over its steps a second alone: measured
 *     others do, without        as fast as the interference model predicts
 */
#ifndef COLLOC_DAEMON_ALONE_TIME_H
#define COLLOC_DAEMON_ALONE_TIME_H

#include <jansson.h>

#include "core/core.h"
#include "daemon/jobs.h"

/* Seconds; a task of two GPUs counts once. */
struct alone_estimate {
    double held_s, shared_s;       /* with its GPUs, and with others that computed there */
    double measured_s;             /* of the shared time: its speed was measured */
    double unknown_s;              /* of it: nothing is known; not in the next ones */
    double alone_s, low_s, high_s; /* what the rest would take alone: most likely, and bounds */
};

/* Adds the time up to now for each task that has GPUs. */
void alone_time_note_all(const struct core *core, const struct jobs *jobs, int64_t now_us);

/* The same for one task, whose attempt ends. */
void alone_time_note_end(
    const struct core *core, const struct task *task, struct job *job, int64_t now_us);

/* Adds up. `alone`: the speed in steps a second alone; NULL: not known. */
struct alone_estimate alone_time_estimate(
    const struct alone_time *time, const struct speed_alone *alone);

/* Returns the object `ledger` of a TASK (docs/protocol.md); null: it has had no GPU. */
json_t *alone_time_json(const struct job *job);

/* As the file usage.json keeps it; null: it has had no GPU. */
json_t *alone_time_save(const struct job *job);
void alone_time_load(struct job *job, const json_t *saved);

#endif
