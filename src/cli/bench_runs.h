/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of MLflow for the trainings of a bench: one for each, created before it starts and ended
 * with its metrics. The requests are those of python/colloc/tracking/bench_runs.py. */
#ifndef COLLOC_CLI_BENCH_RUNS_H
#define COLLOC_CLI_BENCH_RUNS_H

#include "base/fault.h"
#include "bench/bench.h"

/* Tests whether the environment names a server that answers. Returns 0, or -errno with a fault. */
int bench_runs_check(struct fault *fault);

/*
 * Creates a run for each training of a group, and sets its id in progress->run_ids. If the server
 * does not take them, that is printed, and the group runs without.
 *
 * folder: of the results; the description of the runs is stored in its mlflow/
 */
void bench_runs_create(const char *folder, const struct bench_progress *progress);

/* Ends the runs of the group, with what was measured; `killed`: the group did not come to its end.
 * A group without runs is left alone. */
void bench_runs_end(const char *folder, const struct bench_progress *progress, bool killed);

#endif
