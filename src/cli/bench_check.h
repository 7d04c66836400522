/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a bench has the programs that its table needs. */
#ifndef COLLOC_CLI_BENCH_CHECK_H
#define COLLOC_CLI_BENCH_CHECK_H

#include <stdbool.h>

#include "bench/experiment.h"

/*
 * Checks the programs of an experiment, and prints what is missing.
 *
 * has_workloads: the user named the folder of train.py, which may not need PyTorch
 * by_daemon:     the trainings are tasks of the daemon
 */
bool bench_can_run(
    const struct experiment *experiment, const char *python, bool has_workloads, bool by_daemon);

#endif
