/* SPDX-License-Identifier: Apache-2.0 */
/* `colloc serve --emulate`: collocd over pretend GPUs that live as long as it. */
#ifndef COLLOC_CLI_EMULATE_H
#define COLLOC_CLI_EMULATE_H

/*
 * Makes pretend GPUs, runs collocd over them until it ends, and removes them. Signals that end or
 * reload collocd are passed on to it.
 *
 * gpus:    as `colloc-emulator create --gpus` takes them, "4xA100-40GB".
 * collocd: runs in a child with the environment prepared, and returns only when it cannot.
 *
 * Returns the exit status.
 */
int emulate_run(const char *gpus, void (*become_collocd)(void *context), void *context);

/* The emulator's NVML library, for collocd's option --nvml-library. NULL: it is not installed. */
const char *emulate_library(char *path, unsigned long size);

#endif
