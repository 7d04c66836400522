/* SPDX-License-Identifier: Apache-2.0 */
/* Why a training of a bench failed. */
#ifndef COLLOC_BENCH_FAILURE_H
#define COLLOC_BENCH_FAILURE_H

#include "bench/crew.h"

/*
 * Fills in exit code, failure and out_of_gpu_memory of a training that has ended.
 *
 * `status`: as waitpid gives it.
 * `log_path`: what the training wrote to standard error; a log that cannot be read is empty.
 */
void failure_explain(int status, const char *log_path, struct crew_result *result);

#endif
