/* SPDX-License-Identifier: Apache-2.0 */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"
#include "daemon/driver.h"
#include "policy/policies.h"

static int compare(const void *a, const void *b)
{
    uint64_t left = ((const struct job *)a)->id, right = ((const struct job *)b)->id;
    return left < right ? -1 : left > right;
}

static char *text_of(const json_t *detail, const char *key)
{
    const char *text = json_string_value(json_object_get(detail, key));
    return strdup(text ? text : "");
}

static void job_free(struct job *job)
{
    if (!job)
        return;
    runner_unwatch(job);
    free(job->name);
    free(job->user);
    free(job->command);
    free(job->estimator);
    free(job->evidence);
    free(job->put_off_why);
    json_decref(job->attempts);
    json_decref(job->overruns);
    json_decref(job->subject);
    free(job);
}

/* ---- how many each user has ---- */

struct owner {
    uid_t uid;
    int jobs;
    bool is_stranger;
    int64_t bytes; /* of their texts in the log */
    struct day_sum bytes_ended;
};

static int compare_owners(const void *a, const void *b)
{
    uid_t left = ((const struct owner *)a)->uid, right = ((const struct owner *)b)->uid;
    return left < right ? -1 : left > right;
}

static struct owner *owner_find(struct daemon *daemon, uid_t uid)
{
    struct owner key = {.uid = uid};
    struct owner *const *node = tfind(&key, &daemon->owners, compare_owners);
    return node ? *node : NULL;
}

static bool owner_add_job(struct daemon *daemon, uid_t uid, int64_t bytes)
{
    struct owner *owner = owner_find(daemon, uid);
    if (!owner) {
        owner = calloc(1, sizeof *owner);
        if (!owner)
            return false;
        owner->uid = uid;
        owner->is_stranger = names_is_stranger(daemon->names, uid);
        if (!tsearch(owner, &daemon->owners, compare_owners)) {
            free(owner);
            return false;
        }
    }
    owner->jobs++;
    daemon->stranger_jobs += owner->is_stranger;
    owner->bytes += bytes;
    daemon->stranger_bytes += owner->is_stranger ? bytes : 0;
    return true;
}

int jobs_of_user(struct daemon *daemon, uid_t uid)
{
    const struct owner *owner = owner_find(daemon, uid);
    if (names_is_stranger(daemon->names, uid))
        return daemon->stranger_jobs;
    return owner ? owner->jobs : 0;
}

void jobs_set_stranger(struct daemon *daemon, uid_t uid, bool is_stranger)
{
    struct owner *owner = owner_find(daemon, uid);
    if (!owner || owner->is_stranger == is_stranger)
        return;
    owner->is_stranger = is_stranger;
    daemon->stranger_jobs += is_stranger ? owner->jobs : -owner->jobs;
    daemon->stranger_bytes += is_stranger ? owner->bytes : -owner->bytes;
}

int64_t bytes_of_user(struct daemon *daemon, uid_t uid)
{
    const int64_t now_us = driver_now_us(daemon->driver);
    const struct owner *owner = owner_find(daemon, uid);
    if (names_is_stranger(daemon->names, uid))
        return daemon->stranger_bytes + day_sum_get(&daemon->stranger_bytes_ended, now_us);
    return owner ? owner->bytes + day_sum_get(&owner->bytes_ended, now_us) : 0;
}

void jobs_fini(struct daemon *daemon)
{
    while (daemon->owners) {
        struct owner *owner = *(struct owner **)daemon->owners;
        tdelete(owner, &daemon->owners, compare_owners);
        free(owner);
    }
}

/* ---- jobs ---- */

struct job *job_add(struct daemon *daemon, uint64_t id, uid_t uid, const json_t *detail)
{
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    job->id = id;
    job->uid = uid;
    job->daemon = daemon;
    daemon->lived = true;
    job->watch.pidfd = -1;
    job->name = text_of(detail, "name");
    job->user = text_of(detail, "user");
    job->command = text_of(detail, "command");
    job->estimator = text_of(detail, "estimator");
    job->text_bytes = json_integer_value(json_object_get(detail, "text_bytes"));
    job->subject = json_incref(json_object_get(detail, "subject"));
    job->preallocation = preallocation_parse(
        json_string_value(json_object_get(detail, "preallocation")));
    job->attempts = json_array();
    const json_t *estimate = json_object_get(detail, "estimate_bytes");
    if (json_is_integer(estimate))
        job->estimate_bytes = reading_of((double)json_integer_value(estimate));
    if (!job->name || !job->user || !job->command || !job->estimator || !job->attempts ||
        !owner_add_job(daemon, uid, job->text_bytes) || !tsearch(job, &daemon->jobs, compare)) {
        job_free(job);
        return NULL;
    }
    return job;
}

static int keep_submit_detail(
    void *context, const struct event *event, int64_t wall_us, const json_t *detail)
{
    json_t **kept = context;
    if (event->kind == EVENT_SUBMIT && !*kept)
        *kept = json_incref((json_t *)(uintptr_t)detail);
    return 0;
}

int job_read_detail(struct daemon *daemon, uint64_t id, struct fault *fault, json_t **ret_detail)
{
    *ret_detail = NULL;
    return store_task_events(daemon->store, id, policy_find, keep_submit_detail, ret_detail, fault);
}

struct job *job_find(struct daemon *daemon, uint64_t id)
{
    struct job key = {.id = id};
    struct job *const *node = tfind(&key, &daemon->jobs, compare);
    return node ? *node : NULL;
}

void job_remove(struct daemon *daemon, struct job *job)
{
    if (!job)
        return;
    tdelete(job, &daemon->jobs, compare);
    struct owner *owner = owner_find(daemon, job->uid);
    owner->jobs--;
    daemon->stranger_jobs -= owner->is_stranger;
    owner->bytes -= job->text_bytes;
    daemon->stranger_bytes -= owner->is_stranger ? job->text_bytes : 0;
    job_free(job);
}

void job_retire(struct daemon *daemon, struct job *job)
{
    if (!job)
        return;
    struct owner *owner = owner_find(daemon, job->uid);
    day_sum_add(owner->is_stranger ? &daemon->stranger_bytes_ended : &owner->bytes_ended,
        driver_now_us(daemon->driver), job->text_bytes);
    job_remove(daemon, job);
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
