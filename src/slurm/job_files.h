/* SPDX-License-Identifier: Apache-2.0 */
/* Files of jobs: the summary that a script names, and the output of a failed job. A helper process
 * on this machine reads both with the rights of the job's user. */
#ifndef COLLOC_SLURM_JOB_FILES_H
#define COLLOC_SLURM_JOB_FILES_H

#include <uv.h>

#include "slurm/job_script.h"
#include "slurm/slurm_controller.h"

struct job_files;

/* Called in the loop when a controller was given an answer. */
typedef void job_files_on_answer(void *context);

/* Everything is borrowed until job_files_destroy. Returns NULL without memory. */
struct job_files *job_files_create(uv_loop_t *loop, struct slurm_controller *controller,
    const struct job_script_settings *settings, job_files_on_answer *on_answer, void *context);

/* Parses the job's script, and lets a helper read its summary and estimate;
 * slurm_controller_set_request gets the answer, or the script is wanted again. `script`: NULL: it
 * has none; else owned from now on. */
void job_files_estimate(struct job_files *files, const struct slurm_job_key *key, char *script);

/* Searches the end of the job's error file, and then that of its output, for a lack of GPU memory;
 * slurm_controller_log_examined gets the answer. Paths: "": none. */
void job_files_examine(struct job_files *files, const struct slurm_job_key *key,
    const char *error_path, const char *output_path);

/* Ends all reads. NULL is fine. */
void job_files_close(struct job_files *files);

/* Releases it once the loop has run for the last time. NULL is fine. */
void job_files_destroy(struct job_files *files);

#endif
