/* SPDX-License-Identifier: Apache-2.0 */
/* The #COLLOC lines of a job's script about its GPUs. Pure. */
#ifndef COLLOC_SLURM_JOB_SCRIPT_H
#define COLLOC_SLURM_JOB_SCRIPT_H

#include "core/task.h"
#include "estimator/estimator.h"
#include "taskfile/taskfile.h"

struct job_script_settings {
    const char *estimator; /* of jobs with a summary that name none */
    enum quantile reserve_quantile;
    enum sharing sharing;
};

struct job_script {
    struct task_description description;
    struct task_request request; /* without its memory requirement, until job_script_use_estimate */
};

/* The estimate of a job; without pointers, so that a helper process can return it. */
struct job_estimate {
    struct need need;
    struct reading smact; /* of each GPU, 0 to 1 */
};

/*
 * Parses a script.
 *
 * text:       of any bytes; NULL: the job has no script
 * ret_script: zeroed on entry; for job_script_fini, also after an error
 *
 * Returns 0; or -EINVAL with a fault: the job cannot be placed until it is submitted anew.
 */
int job_script_parse(const char *text, const struct job_script_settings *settings,
    struct fault *fault, struct job_script *ret_script);

/* Returns the path of the script's summary file as its user wrote it; NULL: it names none. */
const char *job_script_summary(const struct job_script *script);

/*
 * Estimates the memory requirement.
 *
 * summary: content of the summary file, of `size` bytes; NULL: there is none
 *
 * Returns 0, also when the requirement stays unknown; or -errno with a fault.
 */
int job_script_estimate(const struct job_script *script, const struct job_script_settings *settings,
    const char *summary, size_t size, struct fault *fault, struct job_estimate *ret_estimate);

/* Completes the request by an estimate from any source. The SM activity in the script overrides it.
 * Returns 0; or -EINVAL with a fault: the estimate is invalid. */
int job_script_use_estimate(
    struct job_script *script, const struct job_estimate *estimate, struct fault *fault);

/* Releases what job_script_parse has allocated. */
void job_script_fini(struct job_script *script);

#endif
