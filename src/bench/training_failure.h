/* SPDX-License-Identifier: Apache-2.0 */
/* Why a training failed: its exit status and the end of its log. */
#ifndef COLLOC_BENCH_TRAINING_FAILURE_H
#define COLLOC_BENCH_TRAINING_FAILURE_H

#include "bench/trainer_group.h"

/*
 * Fills in exit_code, failure and out_of_gpu_memory of a training that has ended.
 *
 * status:      from waitpid
 * output_path: its stdout, and
 * log_path:    its stderr; a file that cannot be read counts as empty
 */
void training_failure_explain(
    int status, const char *output_path, const char *log_path, struct training_result *result);

#endif
