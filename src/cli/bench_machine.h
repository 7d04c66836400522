/* SPDX-License-Identifier: Apache-2.0 */
/* What the Python program of `colloc bench` needs to know of this machine. */
#ifndef COLLOC_CLI_BENCH_MACHINE_H
#define COLLOC_CLI_BENCH_MACHINE_H

#include <stdbool.h>

/*
 * Describes it as JSON.
 *
 * has_gpus: ask NVML, which takes seconds on some hosts; without NVML the text has no GPUs, too
 *
 * Returns text that the caller frees; NULL without memory.
 */
char *bench_machine_describe(bool has_gpus);

#endif
