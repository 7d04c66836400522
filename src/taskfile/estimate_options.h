/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a task that say how it trains, as the request for an estimate of its memory. */
#ifndef COLLOC_TASKFILE_ESTIMATE_OPTIONS_H
#define COLLOC_TASKFILE_ESTIMATE_OPTIONS_H

#include "base/fault.h"
#include "estimator/estimator.h"
#include "taskfile/option.h"

/*
 * Sets batch, sequence length, optimizer, precision, GPUs, how they divide the model, and declared
 * memory of a request. Its other members stay as they are.
 *
 * values:  TASK_OPTION_MAX of them, by enum task_option; `request` points to their texts
 * request: an option that was not given is ESTIMATE_NOT_GIVEN, 0 or NULL: each estimator decides
 *          what it assumes instead, and says so in its note
 *
 * Returns 0, or -EINVAL with a fault: the precision is not known.
 */
int estimate_options_apply(
    const struct option_value *values, struct fault *fault, struct estimate_request *request);

#endif
