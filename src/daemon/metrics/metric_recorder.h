/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records the metrics of GPUs and tasks over time (store/metric_db.h), and answers queries about
 * them. A thread does all reading and writing of the database.
 *
 * Contract:
 * 1. No call waits for the disk, except metric_recorder_close, which writes the last batch.
 * 2. Each query is answered once, in the loop.
 * 3. A write error is reported to the disk (daemon/disk.h), and the data is dropped: memory is
 *    bounded.
 */
#ifndef COLLOC_DAEMON_METRICS_METRIC_RECORDER_H
#define COLLOC_DAEMON_METRICS_METRIC_RECORDER_H

#include "base/reading.h"
#include "core/core.h"
#include "daemon/gpu_report.h"
#include "daemon/metric_names.h"
#include "daemon/metric_query.h"
#include "daemon/metrics/metric_options.h"

struct metric_recorder;

/* How finely times are kept: as sampled for an hour, then minimum, mean and maximum of 10 s for a
 * day, of 1 min for 8 days, and of 10 min for `keep_ms`. Returns the number of levels. */
size_t metric_recorder_levels(int64_t keep_ms, struct metric_level ret_levels[METRIC_LEVELS_MAX]);

/* Opens the database and starts the thread. Returns NULL with a fault. A damaged database is put
 * aside, with a warning in the log. */
struct metric_recorder *metric_recorder_create(
    const struct metric_options *options, struct fault *fault);

/* Writes the last batch, ends the thread and answers the queries that wait with a fault. NULL is
 * fine. */
void metric_recorder_close(struct metric_recorder *recorder);

/* Releases the part once the loop has run after metric_recorder_close. NULL is fine. */
void metric_recorder_destroy(struct metric_recorder *recorder);

/*
 * Adds a sample of one series; a sample without a known value is ignored.
 *
 * key:    whose
 * label:  how people name the task; NULL: by its id
 * at_ms:  wall clock
 * values: metric_count(metric_kind_of(key)) readings, in the units of their names
 */
void metric_recorder_add(struct metric_recorder *recorder, const struct metric_key *key,
    const char *label, int64_t at_ms, const struct reading *values);

/* Removes the files of GPU samples that an older version has left. */
void metric_remove_old_samples(const char *state_dir);

/* Adds the last sample of a GPU, and the parts that its tasks had. A NULL recorder is fine. */
void metric_recorder_take(
    struct metric_recorder *recorder, const struct core *core, const struct gpu_report *gpu);

/* A task whose processes are below `root`. */
struct metric_root {
    uint64_t task;
    pid_t root;
    struct reading steps_per_s;
};

/* Lists the tasks that run now, into an array for the caller to free. Returns how many. */
size_t metric_list_roots(const struct core *core, const struct attempts *attempts,
    const struct jobs *jobs, struct metric_root **ret_roots);

/*
 * Runs a query in the thread.
 *
 * query, head: as for metric_query_run; from malloc, taken over
 *
 * Returns false where the recorder is NULL, since none are recorded: the caller still owns the
 * arguments.
 */
bool metric_recorder_ask(struct metric_recorder *recorder, struct metric_query *query, char *head,
    metric_on_answer *on_answer, void *context);

#endif
