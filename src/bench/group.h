/* SPDX-License-Identifier: Apache-2.0 */
/* Building groups and experiments: for the readers of both forms of the table. */
#ifndef COLLOC_BENCH_GROUP_H
#define COLLOC_BENCH_GROUP_H

#include "bench/experiment.h"

/* Parses "serial", "streams", "mps" (in letters of any case) or a MIG profile into sharing and
 * profile. Returns 0 or -EINVAL. */
int bench_sharing_parse(const char *text, struct bench_task *task);

/* Sets group->sharing from the tasks, once all are there. Returns 0 or -ENOMEM. */
int bench_group_name_sharing(struct bench_group *group);

/* Appends an empty group or task. Returns it, or NULL without memory. Pointers returned before may
 * no longer be valid. */
struct bench_group *experiment_add(struct experiment *experiment);
struct bench_task *bench_group_add(struct bench_group *group);

/* Releases the tasks and their texts. */
void bench_group_fini(struct bench_group *group);

#endif
