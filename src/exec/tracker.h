/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a task's metrics to MLflow, W&B or TensorBoard while it runs (python/colloc/tracking). */
#ifndef COLLOC_EXEC_TRACKER_H
#define COLLOC_EXEC_TRACKER_H

#include <stddef.h>

#include "exec/spec.h"

/* Finds the folder of the Python package, beside this program. Call it before the process becomes
 * another user. Returns 0, or -ENOENT. */
int tracker_find(char *folder, size_t size);

/*
 * Starts a tracker of this process, which is about to execute the task's program. A tracker that
 * cannot be started prints why to the task's standard error; the task runs without.
 *
 * folder: as tracker_find found it
 */
void tracker_start(const char *folder, const struct attempt_spec *spec);

#endif
