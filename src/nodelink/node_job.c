/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and reads what an agent says of a job; members that say nothing are left out. */
#include "nodelink/node_job.h"

#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "nodelink/json_field.h"

/* As event.h: sums of a few do not overflow. */
#define NUMBER_MAX (INT64_C(1) << 60)

static const char *const where_names[] = {[NODE_JOB_HERE] = "here",
    [NODE_JOB_GOING] = "going",
    [NODE_JOB_OUT] = "out",
    [NODE_JOB_COMING] = "coming"};
static const char *const failure_names[] = {
    [NODE_JOB_NO_FAILURE] = "", [NODE_JOB_REFUSED] = "refused", [NODE_JOB_NOT_NOW] = "not-now"};

static const struct member {
    const char *name;
    size_t offset;
} numbers[] = {
    {"waits", offsetof(struct node_job, waits_bytes)},
    {"idle_us", offsetof(struct node_job, idle_us)},
    {"held", offsetof(struct node_job, held_bytes)},
    {"kept", offsetof(struct node_job, kept_bytes)},
    {"took_us", offsetof(struct node_job, took_us)},
    {"room", offsetof(struct node_job, room_bytes)},
};

static int64_t number_of(const struct node_job *job, size_t i)
{
    int64_t number;
    memcpy(&number, (const char *)job + numbers[i].offset, sizeof number);
    return number;
}

json_t *node_job_json(const struct node_job *job)
{
    json_t *object = json_pack(
        "{s:I, s:s}", "job", (json_int_t)job->job, "where", where_names[job->where]);
    int r = object ? 0 : -1;
    for (size_t i = 0; i < ARRAY_SIZE(numbers) && r == 0; i++)
        if (number_of(job, i))
            r = json_object_set_new(object, numbers[i].name, json_integer(number_of(job, i)));
    if (r == 0 && job->is_called)
        r = json_object_set_new(object, "called", json_true());
    if (r == 0 && job->is_carried)
        r = json_object_set_new(object, "carried", json_true());
    if (r == 0 && job->has_ranks)
        r = json_object_set_new(object, "ranks", json_true());
    if (r == 0 && job->failure)
        r = json_object_set_new(object, "failed", json_string(failure_names[job->failure]));
    if (r == 0 && *job->why)
        r = json_object_set_new(object, "why", json_string(job->why));
    if (r == 0 && *job->rooms)
        r = json_object_set_new(object, "rooms", json_string(job->rooms));
    if (r == 0)
        return object;
    json_decref(object);
    return NULL;
}

/* The place of the text among `n` names. A name of a later version counts as the first. */
static size_t name_place(const char *text, const char *const *names, size_t n)
{
    int place = span_place(span_of(text), names, n);
    return place < 0 ? 0 : (size_t)place;
}

int node_job_read(const json_t *object, struct fault *fault, struct node_job *ret_job)
{
    char where[16] = "", failed[16] = "";
    int64_t number = 0;
    *ret_job = (struct node_job){0};
    int r = json_field_integer(object, "job", 1, UINT32_MAX, fault, &number);
    ret_job->job = (uint32_t)number;
    for (size_t i = 0; i < ARRAY_SIZE(numbers) && r == 0; i++) {
        if (!json_object_get(object, numbers[i].name))
            continue;
        r = json_field_integer(object, numbers[i].name, 0, NUMBER_MAX, fault, &number);
        memcpy((char *)ret_job + numbers[i].offset, &number, sizeof number);
    }
    if (r == 0)
        r = json_field_text(object, "where", fault, where, sizeof where);
    if (r == 0)
        r = json_field_text(object, "failed", fault, failed, sizeof failed);
    if (r == 0)
        r = json_field_text(object, "why", fault, ret_job->why, sizeof ret_job->why);
    if (r == 0)
        r = json_field_text(object, "rooms", fault, ret_job->rooms, sizeof ret_job->rooms);
    ret_job->is_carried = json_is_true(json_object_get(object, "carried"));
    ret_job->is_called = json_is_true(json_object_get(object, "called"));
    ret_job->has_ranks = json_is_true(json_object_get(object, "ranks"));
    ret_job->where = (enum node_job_where)name_place(where, where_names, ARRAY_SIZE(where_names));
    ret_job->failure = (enum node_job_failure)name_place(
        failed, failure_names, ARRAY_SIZE(failure_names));
    return r;
}

bool node_job_is_same(const struct node_job *a, const struct node_job *b)
{
    bool is_same = a->job == b->job && a->where == b->where && a->is_called == b->is_called &&
                   a->is_carried == b->is_carried && a->has_ranks == b->has_ranks &&
                   a->failure == b->failure && strcmp(a->why, b->why) == 0 &&
                   strcmp(a->rooms, b->rooms) == 0;
    for (size_t i = 0; i < ARRAY_SIZE(numbers) && is_same; i++)
        is_same = number_of(a, i) == number_of(b, i);
    return is_same;
}
