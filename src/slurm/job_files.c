/* SPDX-License-Identifier: Apache-2.0 */
/* Reads jobs' summaries and the output of failed jobs, as their users. A file is read in pieces of
 * 256 KiB, one after the other; of an error file the last one is enough (exec/logscan.h). */
#include "slurm/job_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "daemon/http/user_file.h"
#include "exec/failure_classify.h"

enum { JOB_SUMMARY_MAX_BYTES = 16 << 20 }; /* chosen: it is estimated in the controller's loop */

struct job_files {
    struct slurm_controller *controller;
    const struct job_script_settings *settings;
    struct user_files *files;
    job_files_on_answer *on_answer;
    void *context;
};

/* One file on its way. */
struct file_read {
    struct job_files *files;
    struct slurm_job_key key;
    struct user_file_read read;
    struct job_script script; /* of a summary */
    char *text;               /* of a summary; of a failed job: the path of its output */
    const char *output_path;  /* still to be read; or NULL */
    size_t size, capacity;
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
        .on_answer = on_answer,
        .context = context};
    if (files->files)
        return files;
    free(files);
    return NULL;
}

static void file_read_free(struct file_read *read)
{
    job_script_fini(&read->script);
    free(read->text);
    free(read);
}

static struct file_read *make_read(struct job_files *files, const struct slurm_job_key *key)
{
    struct file_read *read = calloc(1, sizeof *read);
    if (!read)
        return NULL;
    read->files = files;
    read->key = *key;
    read->read.uid = key->uid;
    read->read.gid = key->gid;
    read->read.context = read;
    return read;
}

/* ---- summaries ---- */

static void answer_request(struct job_files *files, const struct slurm_job_key *key,
    const struct task_request *request, int r, const struct fault *fault)
{
    slurm_controller_set_request(files->controller, key, request, r < 0 ? fault->text : NULL);
    files->on_answer(files->context);
}

static void estimate_summary(
    struct file_read *read, const char *summary, int r, struct fault *fault)
{
    if (r == 0)
        r = job_script_estimate(&read->script, read->files->settings, summary, fault);
    answer_request(read->files, &read->key, &read->script.request, r, fault);
    file_read_free(read);
}

static void on_summary(
    void *context, int answer, const struct user_file_piece *piece, const struct fault *fault)
{
    struct file_read *read = context;
    struct fault words = *fault;
    size_t n = answer == 0 ? (size_t)piece->size : 0;
    if (answer == 0 && ARRAY_RESERVE(read->text, read->capacity, read->size + n + 1) < 0)
        answer = fault_set(&words, ENOMEM, "out of memory");
    if (answer == 0 && read->size + n > JOB_SUMMARY_MAX_BYTES)
        answer = fault_set(&words, EFBIG, "%.200s: larger than 16 MiB", read->read.path);
    if (answer != 0) {
        estimate_summary(read, NULL, answer < 0 ? answer : -EIO, &words);
        return;
    }
    memcpy(read->text + read->size, piece->data, n);
    read->size += n;
    read->text[read->size] = '\0';
    if (n == USER_FILE_PIECE) {
        read->read.offset = (int64_t)read->size;
        if (user_files_read(read->files->files, &read->read) == 0)
            return;
    }
    estimate_summary(read, read->text, 0, &words);
}

void job_files_estimate(struct job_files *files, const struct slurm_job_key *key, char *script)
{
    struct fault fault = {0};
    struct file_read *read = make_read(files, key);
    if (!read) {
        fault_set(&fault, ENOMEM, "out of memory");
        answer_request(files, key, &(struct task_request){0}, -ENOMEM, &fault);
        free(script);
        return;
    }
    int r = job_script_parse(script, files->settings, &fault, &read->script);
    free(script);
    const char *path = r == 0 ? job_script_summary(&read->script) : NULL;
    if (!path) {
        estimate_summary(read, NULL, r, &fault);
        return;
    }
    bool is_absolute = *path == '/' || !key->work_dir;
    snprintf(read->read.path, sizeof read->read.path, "%s%s%s", is_absolute ? "" : key->work_dir,
        is_absolute ? "" : "/", path);
    read->read.on_done = on_summary;
    if (user_files_read(files->files, &read->read) < 0) {
        r = fault_set(&fault, ENOMEM, "out of memory");
        estimate_summary(read, NULL, r, &fault);
    }
}

/* ---- what a job that failed has written ---- */

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
    const char *next = read->output_path;
    bool is_oom = answer == 0 &&
                  proves_lack_of_memory((struct span){piece->data, (size_t)piece->size}, !next);
    if (answer != 0)
        log_warning("job %u: whether it ran out of GPU memory is not known: %s", read->key.base,
            fault->text);
    read->output_path = NULL;
    if (is_oom || !next || strcmp(next, read->read.path) == 0 || !read_end_of(read, next)) {
        answer_examined(read->files, &read->key, is_oom);
        file_read_free(read);
    }
}

void job_files_examine(struct job_files *files, const struct slurm_job_key *key,
    const char *error_path, const char *output_path)
{
    struct file_read *read = make_read(files, key);
    if (read) {
        read->read.on_done = on_written;
        read->text = strdup(output_path);
        read->output_path = read->text;
        if (read_end_of(read, error_path))
            return;
        file_read_free(read);
    }
    answer_examined(files, key, false);
}

void job_files_close(struct job_files *files)
{
    if (files)
        user_files_close(files->files);
}

void job_files_destroy(struct job_files *files)
{
    if (!files)
        return;
    user_files_destroy(files->files);
    free(files);
}
