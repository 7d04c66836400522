/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two search trees: jobs by the task's id, and users with their counts. A user's entry stays after
 * the user's last job, because the texts of ended tasks count for a day.
 *
 * A user that is not in the user database is added to the sums of all unlisted users. Whether a
 * user is listed may become known, or change, while the user has jobs: then the user's sums are
 * moved.
 */
#include "daemon/jobs.h"

#include <search.h>
#include <stdlib.h>

#include "base/day_sum.h"

#define CHANGE_BYTES 512 /* of a change in the log, but for its detail; measured: 500 */

struct user {
    uid_t uid;
    int jobs;
    bool is_unlisted;
    int64_t bytes; /* of the texts of its jobs */
    struct day_sum bytes_ended;
    struct day_sum commands;
};

struct jobs {
    const struct names *names;
    void *tree;  /* of struct job */
    void *users; /* of struct user */
    int count;
    bool lived; /* there was a job since jobs_take_lived */
    uint64_t next_id;
    int unlisted_jobs; /* of users that the user database lacks, together */
    int64_t unlisted_bytes;
    struct day_sum unlisted_bytes_ended, unlisted_commands;
};

static int compare_jobs(const void *a, const void *b)
{
    uint64_t left = ((const struct job *)a)->id, right = ((const struct job *)b)->id;
    return left < right ? -1 : left > right;
}

static int compare_users(const void *a, const void *b)
{
    uid_t left = ((const struct user *)a)->uid, right = ((const struct user *)b)->uid;
    return left < right ? -1 : left > right;
}

/* ---- life ---- */

struct jobs *jobs_create(const struct names *names)
{
    struct jobs *jobs = calloc(1, sizeof *jobs);
    if (!jobs)
        return NULL;
    jobs->names = names;
    jobs->next_id = 1;
    return jobs;
}

void jobs_destroy(struct jobs *jobs)
{
    if (!jobs)
        return;
    while (jobs->tree) {
        struct job *job = *(struct job **)jobs->tree;
        tdelete(job, &jobs->tree, compare_jobs);
        job_free(job);
    }
    while (jobs->users) {
        struct user *user = *(struct user **)jobs->users;
        tdelete(user, &jobs->users, compare_users);
        free(user);
    }
    free(jobs);
}

uint64_t jobs_next_id(const struct jobs *jobs)
{
    return jobs->next_id;
}

void jobs_set_next_id(struct jobs *jobs, uint64_t id)
{
    jobs->next_id = id;
}

uint64_t jobs_take_id(struct jobs *jobs)
{
    return jobs->next_id++;
}

/* ---- users ---- */

static struct user *find_user(const struct jobs *jobs, uid_t uid)
{
    const struct user key = {.uid = uid};
    struct user *const *node = tfind(&key, &jobs->users, compare_users);
    return node ? *node : NULL;
}

static struct user *add_user(struct jobs *jobs, uid_t uid)
{
    struct user *user = calloc(1, sizeof *user);
    if (!user)
        return NULL;
    user->uid = uid;
    user->is_unlisted = names_is_unlisted(jobs->names, uid);
    if (tsearch(user, &jobs->users, compare_users))
        return user;
    free(user);
    return NULL;
}

/* Adds `n` jobs with `bytes` of text to the user's sums; both may be negative. */
static void count_jobs(struct jobs *jobs, struct user *user, int n, int64_t bytes)
{
    user->jobs += n;
    user->bytes += bytes;
    if (user->is_unlisted) {
        jobs->unlisted_jobs += n;
        jobs->unlisted_bytes += bytes;
    }
}

int jobs_of_uid(const struct jobs *jobs, uid_t uid)
{
    const struct user *user = find_user(jobs, uid);
    return user ? user->jobs : 0;
}

int jobs_of_user(const struct jobs *jobs, uid_t uid)
{
    return names_is_unlisted(jobs->names, uid) ? jobs->unlisted_jobs : jobs_of_uid(jobs, uid);
}

int64_t jobs_bytes_of_user(struct jobs *jobs, uid_t uid, int64_t now_us)
{
    struct user *user = find_user(jobs, uid);
    if (names_is_unlisted(jobs->names, uid))
        return jobs->unlisted_bytes + day_sum_get(&jobs->unlisted_bytes_ended, now_us);
    return user ? user->bytes + day_sum_get(&user->bytes_ended, now_us) : 0;
}

int64_t jobs_commands_of_user(struct jobs *jobs, uid_t uid, int64_t now_us)
{
    struct user *user = find_user(jobs, uid);
    if (names_is_unlisted(jobs->names, uid))
        return day_sum_get(&jobs->unlisted_commands, now_us);
    return user ? day_sum_get(&user->commands, now_us) : 0;
}

void jobs_set_unlisted(struct jobs *jobs, uid_t uid, bool is_unlisted)
{
    struct user *user = find_user(jobs, uid);
    if (!user || user->is_unlisted == is_unlisted)
        return;
    user->is_unlisted = is_unlisted;
    jobs->unlisted_jobs += is_unlisted ? user->jobs : -user->jobs;
    jobs->unlisted_bytes += is_unlisted ? user->bytes : -user->bytes;
}

/* ---- jobs ---- */

struct job *jobs_add(struct jobs *jobs, uint64_t id, uid_t uid, const json_t *detail)
{
    struct job *job = job_create(id, uid, detail);
    if (!job)
        return NULL;
    struct user *user = find_user(jobs, uid);
    if (!user)
        user = add_user(jobs, uid);
    if (!user || !tsearch(job, &jobs->tree, compare_jobs)) {
        job_free(job);
        return NULL;
    }
    count_jobs(jobs, user, 1, job->text_bytes);
    jobs->count++;
    jobs->lived = true;
    return job;
}

struct job *jobs_find(const struct jobs *jobs, uint64_t id)
{
    const struct job key = {.id = id};
    struct job *const *node = tfind(&key, &jobs->tree, compare_jobs);
    return node ? *node : NULL;
}

void jobs_remove(struct jobs *jobs, struct job *job)
{
    if (!job)
        return;
    tdelete(job, &jobs->tree, compare_jobs);
    count_jobs(jobs, find_user(jobs, job->uid), -1, -job->text_bytes);
    jobs->count--;
    job_free(job);
}

void jobs_retire(struct jobs *jobs, struct job *job, int64_t now_us)
{
    if (!job)
        return;
    struct user *user = find_user(jobs, job->uid);
    day_sum_add(user->is_unlisted ? &jobs->unlisted_bytes_ended : &user->bytes_ended, now_us,
        job->text_bytes);
    jobs_remove(jobs, job);
}

static bool is_command(const struct event *event)
{
    return event->kind == EVENT_SUSPEND || event->kind == EVENT_RESUME || event->kind == EVENT_MOVE;
}

bool jobs_is_change(enum event_kind kind)
{
    return kind == EVENT_HOLD || kind == EVENT_UPDATE || kind == EVENT_RUN_AGAIN;
}

/* Those of root do not count. */
static void count_command(
    struct jobs *jobs, const struct job *job, const struct event *event, const json_t *detail)
{
    struct user *user = find_user(jobs, job->uid);
    const json_t *by = json_object_get(detail, "by_uid");
    if (json_is_integer(by) && json_integer_value(by) == (json_int_t)job->uid)
        day_sum_add(
            user->is_unlisted ? &jobs->unlisted_commands : &user->commands, event->time_us, 1);
}

void jobs_note_change(struct jobs *jobs, const struct event *event, const json_t *detail)
{
    struct job *job = jobs_find(jobs, event->task);
    if (job && is_command(event))
        count_command(jobs, job, event, detail);
    /* A release is never refused, and is as long in the log as its hold. Steps are bounded by
     * STEPS_MAX. */
    bool is_change = jobs_is_change(event->kind),
         is_other_text = event->kind == EVENT_RELEASE || event->kind == EVENT_STEP;
    if (!job || !(is_change || is_other_text))
        return;
    int64_t bytes = CHANGE_BYTES + (int64_t)json_dumpb(detail, NULL, 0, JSON_COMPACT);
    job->changes += is_change;
    job->text_bytes += bytes;
    count_jobs(jobs, find_user(jobs, job->uid), 0, bytes);
    if (event->kind == EVENT_UPDATE)
        job_note_update(job, detail);
}

bool jobs_take_lived(struct jobs *jobs)
{
    bool lived = jobs->lived;
    jobs->lived = jobs->count > 0;
    return lived;
}

int jobs_count(const struct jobs *jobs)
{
    return jobs->count;
}
