/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stays of a task's SUBMIT is copied from its detail in the log, where the scripts and
 * environments remain: a job is small, and a daemon may have tens of thousands of them. So its
 * texts follow it in the same block of memory, which is less than a block for each, and JSON is
 * kept as text.
 */
#include "daemon/job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_member.h"
#include "daemon/command_history.h"
#include "policy/policies.h"

void job_free(struct job *job)
{
    free(job->new_name);
    free(job->cancelling_operator);
    free(job->evidence);
    json_decref(job->attempts);
    json_decref(job->srun_steps);
    json_decref(job->overruns);
    free(job->subject);
    free(job->steps.alone);
    free(job->alone_time);
    free(job);
}

static struct reading bytes_of(const json_t *detail, const char *key)
{
    const json_t *bytes = json_object_get(detail, key);
    return json_is_integer(bytes) ? reading_of((double)json_integer_value(bytes)) : READING_NONE;
}

static const struct {
    const char *key;
    size_t member;
} texts[] = {
    {"name", offsetof(struct job, name)},
    {"user", offsetof(struct job, user)},
    {"command", offsetof(struct job, command)},
    {"estimator", offsetof(struct job, estimator)},
    {"estimate_evidence", offsetof(struct job, estimate_evidence)},
    {"estimate_kernels", offsetof(struct job, estimate_kernels)},
    {"probe", offsetof(struct job, probe_path)},
};

static size_t size_of_texts(const json_t *detail)
{
    size_t size = 0;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        size += strlen(member_text(detail, texts[i].key, "")) + 1;
    return size;
}

static void copy_texts(struct job *job, const json_t *detail)
{
    char *end = job->texts;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        *(const char **)((char *)job + texts[i].member) = end;
        end = stpcpy(end, member_text(detail, texts[i].key, "")) + 1;
    }
}

static void read_estimate(struct job *job, const json_t *detail)
{
    job->estimate_bytes = bytes_of(detail, "estimate_bytes");
    job->predicted_bytes = bytes_of(detail, "predicted_bytes");
    job->p99_bytes = bytes_of(detail, "p99_bytes");
}

/* Of an earlier run of the command: until it is measured in this one. */
static void read_speed_alone(struct job *job, const json_t *detail)
{
    double per_s = json_number_value(json_object_get(detail, "alone_per_s"));
    if (per_s > 0 && (job->steps.alone = calloc(1, sizeof *job->steps.alone)))
        *job->steps.alone = (struct speed_alone){.per_s = reading_of(per_s)};
}

static void read_submission(struct job *job, const json_t *detail)
{
    const json_t *subject = json_object_get(detail, "subject");
    copy_texts(job, detail);
    job->text_bytes = json_integer_value(json_object_get(detail, "text_bytes"));
    if (subject)
        job->subject = json_dumps(subject, JSON_COMPACT);
    job->preallocation = preallocation_parse(
        json_string_value(json_object_get(detail, "preallocation")));
    job->port = (int)json_integer_value(json_object_get(detail, "port"));
    read_estimate(job, detail);
    read_speed_alone(job, detail);
}

struct job *job_create(uint64_t id, uid_t uid, const json_t *detail)
{
    struct job *job = calloc(1, sizeof *job + size_of_texts(detail));
    if (!job)
        return NULL;
    job->id = id;
    job->uid = uid;
    job->peak_gpu = JOB_GPU_UNKNOWN;
    job->cancelled_by = JOB_UID_NONE;
    read_submission(job, detail);
    return job;
}

void job_note_exit(struct job *job, enum failure_class failure, const json_t *detail)
{
    const char *evidence = json_string_value(json_object_get(detail, "evidence"));
    json_t *overruns = json_object_get(detail, "overruns");
    job->failure = failure;
    if (overruns) { /* otherwise those of an earlier crash stay */
        json_decref(job->overruns);
        job->overruns = json_incref(overruns);
    }
    free(job->evidence);
    job->evidence = evidence && *evidence ? strdup(evidence) : NULL;
    job->mem_used_bytes = READING_NONE;
}

void job_note_update(struct job *job, const json_t *detail)
{
    const char *name = json_string_value(json_object_get(detail, "name"));
    char *copy = job && name ? strdup(name) : NULL;
    if (!copy)
        return;
    free(job->new_name);
    job->name = job->new_name = copy;
}

void job_note_estimate(struct job *job, const json_t *detail)
{
    read_estimate(job, detail);
    job->estimator = COMMAND_HISTORY_ESTIMATOR;
    job->estimate_evidence = "";
}

void job_note_cancel(struct job *job, const json_t *detail)
{
    const json_t *by = json_object_get(detail, "by_uid");
    const char *name = json_string_value(json_object_get(detail, "by"));
    if (!json_is_integer(by))
        return;
    job->cancelled_by = (uid_t)json_integer_value(by);
    free(job->cancelling_operator);
    job->cancelling_operator = name ? strdup(name) : NULL;
}

const char *job_author(const struct job *job, uid_t uid, const json_t *detail)
{
    const char *name = json_string_value(json_object_get(detail, "by"));
    if (uid == job->uid)
        return job->user;
    if (uid == 0)
        return "root";
    return name ? name : "?";
}

const char *job_canceller(const struct job *job)
{
    if (job->cancelled_by == JOB_UID_NONE)
        return NULL;
    const char *name = job->cancelling_operator;
    return name && job->cancelled_by != job->uid ? name : job_author(job, job->cancelled_by, NULL);
}

struct reading job_mean_smact(const struct job *job)
{
    const struct usage *usage = &job->usage;
    return usage->span_s > 0 ? reading_of(fmin(1, usage->smact_s / usage->span_s)) : READING_NONE;
}

static int on_event(void *context, const struct event *event, int64_t wall_us, const json_t *detail)
{
    json_t **ret_detail = context;
    if (event->kind == EVENT_SUBMIT && !*ret_detail)
        *ret_detail = json_incref((json_t *)(uintptr_t)detail);
    return 0;
}

int job_read_detail(struct store *store, uint64_t id, struct fault *fault, json_t **ret_detail)
{
    *ret_detail = NULL;
    return store_task_events(store, id, policy_find, on_event, ret_detail, fault);
}
