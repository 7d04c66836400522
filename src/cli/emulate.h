/* SPDX-License-Identifier: Apache-2.0 */
/* `colloc serve --emulate`: collocd on emulated GPUs, which are removed when it ends. */
#ifndef COLLOC_CLI_EMULATE_H
#define COLLOC_CLI_EMULATE_H

/*
 * Creates emulated GPUs, runs collocd on them until it ends, and removes them. Signals that end or
 * reload collocd are passed on to it.
 *
 * gpus:           as for `colloc-emulator create --gpus`: "4xA100-40GB".
 * become_collocd: called in a child whose environment is prepared; returns only on an error.
 *
 * Returns the exit status.
 */
int emulate_run(const char *gpus, void (*become_collocd)(void *context), void *context);

/* Writes the path of the emulator's NVML library, for collocd's option --nvml-library. Returns
 * `path`, or NULL if the emulator is not installed. */
const char *emulate_library(char *path, unsigned long size);

#endif
