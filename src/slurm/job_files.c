/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads jobs' summaries and the output of failed jobs, as their users.
 *
 * A summary is read and estimated by a helper process, which may take seconds for one of many MiB:
 * that of the daemon's large summaries (service/estimate_helpers.h). A script without one is
 * answered at once. Of a failed job's file the last 256 KiB are enough (exec/logscan.h).
 */
#include "slurm/job_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "exec/failure_classify.h"
#include "service/estimate_helpers.h"
#include "service/user_file.h"

struct job_files {
    struct slurm_controller *controller;
    const struct job_script_settings *settings;
    struct user_files *files;
    struct estimate_helpers *helpers;
    job_files_on_answer *on_answer;
    void *context;
};

/* A script whose summary is read by a helper. */
struct script_estimate {
    struct job_files *files;
    struct slurm_job_key key;
    struct job_script script;
    char path[4096]; /* of the summary */
};

/* A file of a failed job on its way. */
struct file_read {
    struct job_files *files;
    struct slurm_job_key key;
    struct user_file_read read;
    char *output_path; /* still to be read; on the heap; or NULL */
};

struct job_files *job_files_create(uv_loop_t *loop, struct slurm_controller *controller,
    const struct job_script_settings *settings, job_files_on_answer *on_answer, void *context)
{
    struct job_files *files = calloc(1, sizeof *files);
    if (!files)
        return NULL;
    *files = (struct job_files){.controller = controller,
        .settings = settings,
        .files = user_files_create(loop),
        .helpers = estimate_helpers_create(loop, ESTIMATE_LIMIT_MS),
        .on_answer = on_answer,
        .context = context};
    if (files->files && files->helpers)
        return files;
    job_files_close(files); /* the loop still has the handles created so far */
    free(files);
    return NULL;
}

/* ---- summaries ---- */

static void answer_request(struct job_files *files, const struct slurm_job_key *key,
    const struct task_request *request, int r, const struct fault *fault)
{
    slurm_controller_set_request(files->controller, key, request, r < 0 ? fault->text : NULL);
    files->on_answer(files->context);
}

static void finish_estimate(
    struct script_estimate *work, int r, const struct job_estimate *estimate, struct fault *fault)
{
    if (r == 0)
        r = job_script_use_estimate(&work->script, estimate, fault);
    answer_request(work->files, &work->key, &work->script.request, r, fault);
    job_script_fini(&work->script);
    free(work);
}

/* In the helper. */
static int estimate_summary(
    void *context, const char *text, size_t size, void *ret_answer, struct fault *fault)
{
    const struct script_estimate *work = context;
    return job_script_estimate(&work->script, work->files->settings, text, size, fault, ret_answer);
}

/* The helper was killed, took too long or could not begin: that says nothing of the job. */
static bool is_helper_failure(int r)
{
    return r == -EIO || r == -ETIMEDOUT || r == -EAGAIN || r == -ENOMEM || r == -EMFILE ||
           r == -ENFILE;
}

static void on_estimated(void *context, int r, const void *answer, const struct fault *fault)
{
    struct script_estimate *work = context;
    struct slurm_controller *controller = work->files->controller;
    struct fault words = *fault;
    if (r == ESTIMATE_BUSY) {
        slurm_controller_want_again(controller, &work->key);
    } else if (!is_helper_failure(r) || !slurm_controller_try_again(controller, &work->key)) {
        finish_estimate(work, r, answer, &words);
        return;
    }
    job_script_fini(&work->script);
    free(work);
}

/* Returns 0, `work` will be answered; or -ENOMEM. */
static int ask_helper(struct script_estimate *work, const char *path)
{
    const struct slurm_job_key *key = &work->key;
    bool is_absolute = *path == '/' || !key->work_dir;
    snprintf(work->path, sizeof work->path, "%s%s%s", is_absolute ? "" : key->work_dir,
        is_absolute ? "" : "/", path);
    const struct estimate_work of_helper = {.uid = key->uid,
        .gid = key->gid,
        .path = work->path,
        .answer_size = sizeof(struct job_estimate),
        .context = work,
        .estimate = estimate_summary,
        .on_done = on_estimated};
    return estimate_helpers_begin(work->files->helpers, &of_helper);
}

void job_files_estimate(struct job_files *files, const struct slurm_job_key *key, char *script)
{
    struct fault fault = {0};
    struct job_estimate estimate = {0};
    struct script_estimate *work = calloc(1, sizeof *work);
    if (!work) {
        slurm_controller_want_again(files->controller, key);
        free(script);
        return;
    }
    work->files = files;
    work->key = *key;
    int r = job_script_parse(script, files->settings, &fault, &work->script);
    free(script);
    const char *path = r == 0 ? job_script_summary(&work->script) : NULL;
    if (path) {
        if (ask_helper(work, path) < 0)
            on_estimated(work, fault_set(&fault, ENOMEM, "out of memory"), NULL, &fault);
        return;
    }
    if (r == 0)
        r = job_script_estimate(&work->script, files->settings, NULL, 0, &fault, &estimate);
    finish_estimate(work, r, &estimate, &fault);
}

/* ---- the output of a failed job ---- */

static bool proves_lack_of_memory(struct span text, bool is_output)
{
    struct logscan out = {0}, err = {0};
    struct failure failure;
    const struct attempt_end end = {.exit_code = 1};
    logscan_feed(is_output ? &out : &err, text);
    logscan_finish(&out);
    logscan_finish(&err);
    failure_classify(&end, &out, &err, &failure);
    return failure.class == FAILURE_GPU_OOM;
}

static void answer_examined(struct job_files *files, const struct slurm_job_key *key, bool is_oom)
{
    if (is_oom)
        log_info(
            "job %u: ran out of GPU memory beside other jobs: it runs again, alone", key->base);
    slurm_controller_log_examined(files->controller, key, is_oom);
    files->on_answer(files->context);
}

/* Begins to read the end of a file. Returns false when there is none, or no memory. */
static bool read_end_of(struct file_read *read, const char *path)
{
    snprintf(read->read.path, sizeof read->read.path, "%s", path);
    read->read.offset = -USER_FILE_PIECE;
    return *path && user_files_read(read->files->files, &read->read) == 0;
}

static void on_written(
    void *context, int answer, const struct user_file_piece *piece, const struct fault *fault)
{
    struct file_read *read = context;
    char *next = read->output_path;
    bool is_oom = answer == 0 &&
                  proves_lack_of_memory((struct span){piece->data, (size_t)piece->size}, !next);
    if (answer != 0)
        log_warning("job %u: whether it ran out of GPU memory is not known: %s", read->key.base,
            fault->text);
    read->output_path = NULL;
    if (is_oom || !next || strcmp(next, read->read.path) == 0 || !read_end_of(read, next)) {
        answer_examined(read->files, &read->key, is_oom);
        free(read);
    }
    free(next);
}

void job_files_examine(struct job_files *files, const struct slurm_job_key *key,
    const char *error_path, const char *output_path)
{
    struct file_read *read = malloc(sizeof *read);
    if (read) {
        *read = (struct file_read){.files = files, .key = *key, .output_path = strdup(output_path)};
        read->read = (struct user_file_read){
            .uid = key->uid, .gid = key->gid, .context = read, .on_done = on_written};
        if (read_end_of(read, error_path))
            return;
        free(read->output_path);
        free(read);
    }
    answer_examined(files, key, false);
}

void job_files_close(struct job_files *files)
{
    if (!files)
        return;
    user_files_close(files->files);
    estimate_helpers_close(files->helpers);
}

void job_files_destroy(struct job_files *files)
{
    if (!files)
        return;
    user_files_destroy(files->files);
    estimate_helpers_destroy(files->helpers);
    free(files);
}
