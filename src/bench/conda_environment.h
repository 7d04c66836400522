/* SPDX-License-Identifier: Apache-2.0 */
/* Conda environments of trainings, as radT's --conda: a conda.yaml beside a script names the
 * environment that the script runs in. */
#ifndef COLLOC_BENCH_CONDA_ENVIRONMENT_H
#define COLLOC_BENCH_CONDA_ENVIRONMENT_H

#include <stdbool.h>

#include "base/fault.h"

/* Returns the program that runs commands in environments and is on PATH: "conda", "mamba" or
 * "micromamba"; NULL: there is none. */
const char *conda_find(void);

/*
 * Reads the name of the environment that a conda.yaml describes.
 *
 * folder:   that of the script; NULL: the current one
 * ret_name: the caller frees it
 *
 * Returns 0, or -errno with a fault: there is no conda.yaml, or it has no name.
 */
int conda_environment_name(const char *folder, struct fault *fault, char **ret_name);

/* Puts "conda run -n NAME" before a command; `argv` becomes part of the result. Returns the argv,
 * for training_command_free, or NULL without memory: then `argv` is as it was. */
char **conda_command(const char *program, const char *name, char **argv);

/*
 * Tests whether the environment exists.
 *
 * Returns 0, or -errno with a fault: -ENOENT (no such environment), or the program does not answer.
 */
int conda_environment_check(const char *program, const char *name, struct fault *fault);

#endif
