/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of `colloc estimate`:
 *
 *     cmd_estimate.c      the command and its options; runs the estimators
 *     estimate_source.c   the task and its network, from what the command line names
 *     estimate_print.c    the answers, as text and as JSON
 */
#ifndef COLLOC_CLI_ESTIMATION_H
#define COLLOC_CLI_ESTIMATION_H

#include "cli/command.h"
#include "estimator/estimator.h"
#include "model/network.h"
#include "taskfile/taskfile.h"

/* The command's own options. */
enum {
    ESTIMATE_EXPORT,
    ESTIMATE_PYTORCH,
    ESTIMATE_CLASSES,
    ESTIMATE_LABELS,
    ESTIMATE_KERNELS,
    ESTIMATE_PYTHON,
    ESTIMATE_LIMIT,
    ESTIMATE_GPU,
    ESTIMATE_HISTORY,
    ESTIMATE_CALIBRATION
};

enum { ESTIMATORS_MOST = 32 };

/* The inputs and the answers of one or all estimators. */
struct estimation {
    struct task_description task;
    struct network network; /* empty without a summary or an export */
    struct past_run *history;
    size_t n_history;
    struct estimate_request request;
    struct estimate answers[ESTIMATORS_MOST];
    size_t count;
};

/* ---- estimate_source.c ---- */

/*
 * Reads the task and its network: of the file, the options, the user's PyTorch model or the command
 * after "--", which may run for minutes.
 *
 * estimation: to be released by the caller, also after an error.
 *
 * Returns 0; SCRIPT_NOT_FOLLOWED (script_estimate.h) with the reason; or -errno with a fault.
 */
int estimate_source_read(
    const struct invocation *invocation, struct estimation *estimation, struct fault *fault);

/* Returns what the network was read from, as the user named it. */
const char *estimate_source_name(
    const struct invocation *invocation, const struct task_description *task);

/* ---- estimate_print.c ---- */

/* Prints the answers. Warnings go to standard error, so that a script reads the JSON alone. */
void estimate_print(const struct invocation *invocation, const struct estimation *estimation);

/* Prints why no training was seen in the script, which ran. */
void estimate_print_not_followed(const struct invocation *invocation, const char *reason);

#endif
