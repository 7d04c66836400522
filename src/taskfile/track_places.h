/* SPDX-License-Identifier: Apache-2.0 */
/* Where the metrics of a task or command are sent: "mlflow,tensorboard:runs/7" (docs/tracking.md). */
#ifndef COLLOC_TASKFILE_TRACK_PLACES_H
#define COLLOC_TASKFILE_TRACK_PLACES_H

#include "base/fault.h"

/* Checks a comma-separated list of mlflow, wandb and tensorboard:FOLDER. Returns 0, or -EINVAL with
 * a fault. */
int track_places_check(const char *places, struct fault *fault);

/* Checks that this process's environment names the runs of the places. Returns 0, or -EINVAL with a
 * fault. */
int track_places_check_runs(const char *places, struct fault *fault);

#endif
