/* SPDX-License-Identifier: Apache-2.0 */
/* Trainings of `colloc bench` as tasks of the daemon. */
#ifndef COLLOC_CLI_BENCH_SUBMIT_H
#define COLLOC_CLI_BENCH_SUBMIT_H

#include <stdint.h>

#include "base/fault.h"
#include "bench/experiment.h"

struct client;

/* Submits task `i` of the group. Returns 0 with its id, or -errno with a fault. */
int bench_submit(struct client *client, const struct bench_group *group, int i, struct fault *fault,
    int64_t *ret_id);

#endif
