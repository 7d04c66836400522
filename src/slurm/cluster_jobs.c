/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slurm's records of the last update, joined with the controller's data about each job: its memory
 * requirement, its GPUs, and why it waits.
 *
 * A page holds PAGE_JOBS jobs. `next` is the place of its last job in the order of the list, such
 * as "1.4294901711.17.4294967295" (part, priority, job, index), so that jobs that appear or
 * disappear between two pages move no other job.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "api/json_value.h"
#include "base/clock.h"
#include "base/units.h"
#include "core/sharing_choice.h"
#include "slurm/cluster_json.h"
#include "slurm/controller_state.h"
#include "taskfile/array_spec.h"

enum { PAGE_JOBS = 500 }; /* chosen: some 10 ms */

enum part { PART_RUNNING, PART_WAITING, PART_ENDED };

/* A job in the order of the list. */
struct listed_job {
    enum part part;
    uint32_t priority, base, index;
    const struct slurm_job *record;
};

/* ---- which jobs ---- */

static const char *state_word(const struct slurm_job *record)
{
    static const char *const words[] = {[SLURM_STATE_PENDING] = "PENDING",
        [SLURM_STATE_RUNNING] = "RUNNING",
        [SLURM_STATE_SUSPENDED] = "SUSPENDED",
        [SLURM_STATE_COMPLETED] = "COMPLETED",
        [SLURM_STATE_CANCELLED] = "CANCELLED",
        [SLURM_STATE_FAILED] = "FAILED",
        [SLURM_STATE_TIMEOUT] = "TIMEOUT",
        [SLURM_STATE_NODE_FAIL] = "NODE_FAIL",
        [SLURM_STATE_OUT_OF_MEMORY] = "OUT_OF_MEMORY",
        [SLURM_STATE_OTHER_END] = "FAILED"};
    return record->is_completing ? "COMPLETING" : words[record->state];
}

static enum part part_of(const struct slurm_job *record)
{
    if (slurm_job_holds_node(record))
        return PART_RUNNING;
    return record->state == SLURM_STATE_PENDING ? PART_WAITING : PART_ENDED;
}

static bool is_in_partition(const struct slurm_job *record, const char *partition)
{
    return record->partition && strcmp(record->partition, partition) == 0;
}

static bool is_ours(const struct slurm_controller *controller, const struct slurm_job *record)
{
    return is_in_partition(record, controller->options.intake_partition) ||
           is_in_partition(record, controller->options.run_partition);
}

bool cluster_is_live(const struct slurm_controller *controller, const struct slurm_job *record)
{
    return is_ours(controller, record) && part_of(record) != PART_ENDED;
}

bool cluster_sees_all_jobs(
    const struct slurm_controller *controller, const struct cluster_asker *asker)
{
    return !controller->snapshot.hides_jobs || asker->uid == 0 || asker->uid == geteuid();
}

bool cluster_sees_jobs_of(
    const struct slurm_controller *controller, const struct cluster_asker *asker, uid_t uid)
{
    return cluster_sees_all_jobs(controller, asker) || asker->uid == uid;
}

static bool is_wanted(const struct cluster_asker *asker, const struct cluster_jobs_query *query,
    const struct slurm_job *record)
{
    bool is_live = part_of(record) != PART_ENDED;
    if (query->user && strcmp(asker->user_name(asker->context, record->uid), query->user) != 0)
        return false;
    if (strcasecmp(query->state, "all") == 0)
        return true;
    if (strcasecmp(query->state, "live") == 0)
        return is_live;
    if (strcasecmp(query->state, "ended") == 0)
        return !is_live;
    return strcasecmp(query->state, state_word(record)) == 0;
}

static struct listed_job listed_of(const struct slurm_job *record)
{
    return (struct listed_job){.part = part_of(record),
        .priority = record->priority,
        .base = record->array_id ? record->array_id : record->id,
        .index = record->array_id ? record->array_index : SLURM_NO_INDEX,
        .record = record};
}

static int compare_listed(const void *a, const void *b)
{
    const struct listed_job *one = a, *other = b;
    if (one->part != other->part)
        return one->part < other->part ? -1 : 1;
    if (one->priority != other->priority)
        return one->priority > other->priority ? -1 : 1;
    if (one->base != other->base)
        return one->base < other->base ? -1 : 1;
    return one->index < other->index ? -1 : one->index > other->index;
}

/* ---- one job ---- */

/* The controller's data about it; for a waiting array, about its first task. NULL: none. */
static const struct tracked_job *find_job(
    const struct slurm_controller *controller, const struct slurm_job *record)
{
    const struct listed_job place = listed_of(record);
    uint32_t index = place.index;
    if (record->array_indices && *record->array_indices)
        index = (uint32_t)strtoul(record->array_indices, NULL, 10);
    return id_map_get(&controller->jobs, (uint64_t)place.base << 32 | index);
}

/* The text may name jobs of others. */
static void explain_in_core(const struct slurm_controller *controller,
    const struct cluster_asker *asker, const struct tracked_job *job, const char **ret_word,
    char *text, size_t size)
{
    const struct task *task = core_task(controller->core, job->task);
    int ahead = task && task->queue ? core_ahead_of(controller->core, task, NULL) : 0;
    if (job->phase == JOB_PLACED) {
        *ret_word = "None";
        snprintf(text, size, "placed: Slurm is about to start it");
    } else if (ahead > 0) {
        *ret_word = "Priority";
        snprintf(text, size, "%d job%s before it", ahead, ahead > 1 ? "s are" : " is");
    } else {
        *ret_word = core_reason_word(controller->core, job->task);
        if (cluster_sees_all_jobs(controller, asker))
            controller_explain_waiting(controller, job, text, size);
    }
}

static void add_reason(const struct slurm_controller *controller, const struct cluster_asker *asker,
    const struct slurm_job *record, const struct tracked_job *job, json_t *object)
{
    char text[SLURM_TEXT_MAX] = "";
    const char *word = "None";
    bool waits = record->state == SLURM_STATE_PENDING;
    if (waits && record->is_held)
        word = "JobHeldUser";
    else if (waits && slurm_job_has_dependency(record))
        word = "Dependency";
    else if (waits && record->begin_s > controller->wall_s)
        word = "BeginTime";
    else if (waits && job && job->refusal) {
        word = job->lacks_licences ? "Licenses" : "BadConstraints";
        snprintf(text, sizeof text, "%s", job->refusal);
    } else if (waits && job && job->task)
        explain_in_core(controller, asker, job, &word, text, sizeof text);
    else if (waits)
        word = "Priority";
    json_object_set_new(object, "reason", json_string(word));
    json_object_set_new(object, "reason_text", json_string(text));
}

static json_t *make_moment(int64_t wall_s, bool is_known)
{
    return is_known && wall_s > 0 ? json_integer((json_int_t)wall_s) : json_null();
}

static void add_times(
    const struct slurm_controller *controller, const struct slurm_job *record, json_t *object)
{
    bool has_ended = slurm_state_is_end(record->state);
    bool has_started = record->state != SLURM_STATE_PENDING && record->start_s > 0;
    int64_t until_s = has_ended ? record->end_s : clock_wall_us() / SECOND_US;
    int64_t since_s = has_started ? record->start_s : until_s;
    json_object_set_new(object, "submitted_at", make_moment(record->submit_s, true));
    json_object_set_new(object, "started_at", make_moment(record->start_s, has_started));
    json_object_set_new(object, "ended_at", make_moment(record->end_s, has_ended));
    json_object_set_new(object, "begin_at",
        make_moment(record->begin_s, record->begin_s > controller->wall_s && !has_started));
    json_object_set_new(object, "wait_s", json_integer((json_int_t)(since_s - record->submit_s)));
    json_object_set_new(object, "exec_s", json_integer((json_int_t)(until_s - since_s)));
    json_object_set_new(object, "jct_s", json_integer((json_int_t)(until_s - record->submit_s)));
}

static void add_request(const struct slurm_controller *controller, const struct tracked_job *job,
    const struct task *task, json_t *object)
{
    const struct task_request *request = &job->request;
    const struct policy *policy = request->policy ? request->policy
                                                  : controller->options.settings.policy;
    bool is_known = request->need.kind >= NEED_ESTIMATED;
    enum sharing sharing = task && task->attempts > 0 ? task->run->share.sharing : request->sharing;
    json_object_set_new(object, "gpus_requested", json_integer(request->gpus));
    json_object_set_new(object, "policy", json_string(policy->name));
    json_object_set_new(object, "sharing", json_string(sharing_name(sharing)));
    json_object_set_new(object, "exclusive", json_boolean(request->exclusive));
    json_object_set_new(object, "need_mib",
        is_known ? json_real((double)request->need.bytes / (double)MIB) : json_null());
    json_object_set_new(object, "smact_expected", json_reading(request->expect.smact, 1));
    json_object_set_new(object, "expected_s", json_reading(request->expect.time_us, 1e6));
    json_object_set_new(object, "oom_count", json_integer(job->ooms));
    json_object_set_new(object, "attempt_count", json_integer(job->attempt));
}

/* Its GPUs, and the memory that it uses on them together. */
static void add_gpus(
    const struct slurm_controller *controller, const struct task *task, json_t *object)
{
    json_t *labels = json_array(), *uuids = json_array();
    struct reading used = reading_of(0);
    for (int i = 0; task && i < task->n_gpus; i++) {
        const struct cluster_gpu *gpu = &controller->nodes.gpus[task->gpus[i]];
        const struct gpu_view *view = &core_view(controller->core)->gpus[task->gpus[i]];
        const struct resident *resident = gpu_view_resident(view, task->id);
        json_array_append_new(labels, json_string(view->id.label));
        json_array_append_new(uuids, json_string(*gpu->uuid ? gpu->uuid : view->id.uuid));
        used.valid &= resident && resident->mem_used_bytes.valid &&
                      controller_hears_agent(controller, controller->nodes.nodes[gpu->node]);
        used.value += used.valid ? resident->mem_used_bytes.value : 0;
    }
    used.valid &= task && task->n_gpus > 0;
    json_object_set_new(object, "gpus", labels);
    json_object_set_new(object, "gpu_uuids", uuids);
    json_object_set_new(object, "mem_used_mib", json_reading(used, (double)MIB));
}

/* "0-9,12%2": the indices, and how many of the tasks may run at a time. */
static void add_array(const struct slurm_job *record, json_t *object)
{
    const char *indices = record->array_indices;
    bool is_task = record->array_id && record->array_index != SLURM_NO_INDEX;
    json_object_set_new(
        object, "array_id", record->array_id ? json_integer(record->array_id) : json_null());
    json_object_set_new(
        object, "array_index", is_task ? json_integer(record->array_index) : json_null());
    if (!indices || !*indices)
        return;
    size_t size = strcspn(indices, "%");
    long limit = indices[size] ? strtol(indices + size + 1, NULL, 10) : 0;
    json_object_set_new(object, "array_indices", json_stringn(indices, size));
    json_object_set_new(object, "array_limit", json_integer(limit));
}

/* Slurm takes any bytes for a name. */
static json_t *name_json(const struct slurm_job *record)
{
    json_t *name = json_string(record->name ? record->name : "");
    return name ? name : json_string("?");
}

/* How it gives way, while Slurm shows it as running. */
static void add_yield(const struct slurm_controller *controller, const struct cluster_asker *asker,
    const struct tracked_job *job, const struct task *task, json_t *object)
{
    const struct task_yield *yield = &task->run->yield;
    bool is_away = task->state == TASK_SUSPENDED || task->state == TASK_SUSPENDING ||
                   task->state == TASK_RESUMING;
    const char *why = controller_why_stays(controller, job);
    int64_t since_us = yield->since_us ? controller->now_us - yield->since_us : 0;
    bool has_rooms = job->phase == JOB_RUNNING && job->rooms;
    char text[SLURM_TEXT_MAX], name[32];
    json_object_set_new(object, "copy_room_mib",
        has_rooms ? json_real((double)job->room_bytes / (double)MIB) : json_null());
    json_object_set_new(
        object, "copy_room_text", has_rooms ? json_string(job->rooms) : json_null());
    json_object_set_new(
        object, "suspended_s", json_integer((yield->stopped_us + since_us) / SECOND_US));
    json_object_set_new(object, "suspensions", json_integer(yield->suspensions));
    json_object_set_new(object, "suspension_error", *why ? json_string(why) : json_null());
    if (!is_away)
        return;
    const struct tracked_job *to = id_map_get(&controller->by_task, yield->to_task);
    snprintf(text, sizeof text, "its GPU memory is in host memory");
    if (yield->reason == YIELD_UNUSED)
        snprintf(text, sizeof text, "its GPU memory is in host memory until it calls CUDA again");
    else if (to && cluster_sees_all_jobs(controller, asker))
        snprintf(text, sizeof text, "its GPU memory is in host memory: it gives way to job %s",
            slurm_controller_job_name(controller, to->task, name, sizeof name));
    json_object_set_new(object, "reason_text", json_string(text));
}

static json_t *job_json(const struct slurm_controller *controller,
    const struct cluster_asker *asker, const struct slurm_job *record)
{
    const struct tracked_job *job = find_job(controller, record);
    const struct task *task = job && job->task ? core_task(controller->core, job->task) : NULL;
    json_t *object = json_object();
    json_object_set_new(object, "id", json_integer(record->id));
    add_array(record, object);
    json_object_set_new(object, "name", name_json(record));
    json_object_set_new(object, "command", json_null());
    json_object_set_new(object, "user", json_string(asker->user_name(asker->context, record->uid)));
    json_object_set_new(object, "uid", json_integer(record->uid));
    json_object_set_new(object, "state", json_string(state_word(record)));
    add_reason(controller, asker, record, job, object);
    add_times(controller, record, object);
    json_object_set_new(object, "time_limit_s",
        record->time_limit_s ? json_integer((json_int_t)record->time_limit_s) : json_null());
    if (job)
        add_request(controller, job, task, object);
    add_gpus(controller, task, object);
    json_object_set_new(object, "requeue_count", json_integer(record->restarts));
    json_object_set_new(object, "partition", json_string(record->partition));
    if (job && task)
        add_yield(controller, asker, job, task, object);
    if (task && task->state == TASK_QUEUED)
        json_object_set_new(
            object, "position", json_integer(core_ahead_of(controller->core, task, NULL) + 1));
    return object;
}

/* ---- lists ---- */

static bool parse_place(const char *text, struct listed_job *ret_place)
{
    unsigned part;
    char rest;
    int n = sscanf(text, "%1u.%10" SCNu32 ".%10" SCNu32 ".%10" SCNu32 "%c", &part,
        &ret_place->priority, &ret_place->base, &ret_place->index, &rest);
    ret_place->part = n == 4 ? (enum part)part : PART_RUNNING;
    return n == 4 && part <= PART_ENDED;
}

/* Returns how many, in order; -ENOMEM. */
static ssize_t collect_listed(const struct slurm_controller *controller,
    const struct cluster_asker *asker, const struct cluster_jobs_query *query,
    struct listed_job **ret_list)
{
    const struct slurm_snapshot *snapshot = &controller->snapshot;
    struct listed_job *list = calloc(snapshot->n_jobs + 1, sizeof *list);
    size_t n = 0;
    if (!list)
        return -ENOMEM;
    for (size_t i = 0; i < snapshot->n_jobs; i++)
        if (is_ours(controller, &snapshot->jobs[i]) &&
            cluster_sees_jobs_of(controller, asker, snapshot->jobs[i].uid) &&
            is_wanted(asker, query, &snapshot->jobs[i]))
            list[n++] = listed_of(&snapshot->jobs[i]);
    qsort(list, n, sizeof *list, compare_listed);
    *ret_list = list;
    return (ssize_t)n;
}

int cluster_jobs_json(const struct slurm_controller *controller, const struct cluster_asker *asker,
    const struct cluster_jobs_query *query, json_t **ret_answer)
{
    struct listed_job *list, after;
    if (query->after && !parse_place(query->after, &after))
        return -EINVAL;
    ssize_t n = collect_listed(controller, asker, query, &list), i = 0;
    if (n < 0)
        return (int)n;
    while (query->after && i < n && compare_listed(&list[i], &after) <= 0)
        i++;
    json_t *jobs = json_array(), *answer = json_pack("{s:o}", "tasks", jobs);
    ssize_t end = n - i > PAGE_JOBS ? i + PAGE_JOBS : n;
    for (; i < end; i++)
        json_array_append_new(jobs, job_json(controller, asker, list[i].record));
    if (end < n) {
        const struct listed_job *last = &list[end - 1];
        json_object_set_new(answer, "next",
            json_sprintf("%d.%" PRIu32 ".%" PRIu32 ".%" PRIu32, (int)last->part, last->priority,
                last->base, last->index));
    }
    free(list);
    *ret_answer = answer;
    return answer ? 0 : -ENOMEM;
}

/* Number of tasks of the record; -1: Slurm has cut a long list. */
static int count_tasks(const struct slurm_job *record)
{
    struct array_spec spec;
    struct fault fault = {0};
    if (!record->array_indices || !*record->array_indices)
        return 1;
    if (array_spec_parse(record->array_indices, &fault, &spec) < 0)
        return -1;
    int n = spec.count;
    array_spec_fini(&spec);
    return n;
}

/* What `colloc show` prints of an array. */
static json_t *array_json(const struct slurm_controller *controller,
    const struct cluster_asker *asker, const struct slurm_job *first)
{
    json_t *states = json_object();
    int64_t count = 0;
    bool is_known = true;
    for (size_t i = 0; i < controller->snapshot.n_jobs; i++) {
        const struct slurm_job *record = &controller->snapshot.jobs[i];
        if (record->array_id != first->array_id)
            continue;
        const char *word = state_word(record);
        json_int_t before = json_integer_value(json_object_get(states, word));
        int n = count_tasks(record);
        is_known &= n >= 0;
        json_object_set_new(states, word, json_integer(before + (n < 0 ? 1 : n)));
        count += n;
    }
    return json_pack("{s:I, s:o, s:s, s:I, s:o, s:o}", "id", (json_int_t)first->array_id, "name",
        name_json(first), "user", asker->user_name(asker->context, first->uid), "uid",
        (json_int_t)first->uid, "count", is_known ? json_integer(count) : json_null(), "states",
        states);
}

static bool is_asked(const struct slurm_job *record, uint32_t id, uint32_t index)
{
    if (index != SLURM_NO_INDEX)
        return record->array_id == id && record->array_index == index;
    return record->id == id && record->array_id != id;
}

int cluster_job_json(const struct slurm_controller *controller, const struct cluster_asker *asker,
    uint32_t id, uint32_t index, json_t **ret_answer)
{
    const struct slurm_job *of_array = NULL;
    *ret_answer = NULL;
    for (size_t i = 0; i < controller->snapshot.n_jobs; i++) {
        const struct slurm_job *record = &controller->snapshot.jobs[i];
        if (!is_ours(controller, record) || !cluster_sees_jobs_of(controller, asker, record->uid))
            continue;
        of_array = record->array_id == id ? record : of_array;
        if (!is_asked(record, id, index))
            continue;
        *ret_answer = json_pack("{s:o}", "task", job_json(controller, asker, record));
        return *ret_answer ? 0 : -ENOMEM;
    }
    if (!of_array || index != SLURM_NO_INDEX)
        return -ENOENT;
    *ret_answer = json_pack("{s:o}", "array", array_json(controller, asker, of_array));
    return *ret_answer ? 0 : -ENOMEM;
}

void cluster_count_jobs(
    const struct slurm_controller *controller, int *ret_waiting, int *ret_running)
{
    *ret_waiting = *ret_running = 0;
    for (size_t i = 0; i < controller->snapshot.n_jobs; i++) {
        const struct slurm_job *record = &controller->snapshot.jobs[i];
        if (!is_ours(controller, record))
            continue;
        *ret_waiting += part_of(record) == PART_WAITING;
        *ret_running += part_of(record) == PART_RUNNING;
    }
}
