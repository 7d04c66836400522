/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attempts of a task: on which GPUs each ran, from when to when, and how it ended.
 *
 * The core forgets where a task ran as soon as its GPUs are free again. The events of the log have
 * it: PLACE names the GPUs, EXITED the end. Each event of a live task is noted here once: when it
 * is decided or, after a restart, when the log is replayed. So the list survives the daemon, and
 * the record of an ended task holds it:
 *
 *     PLACE task 7 on GPU 2         [{"gpus": ["2"], "ended_at": null, ...}]
 *     EXITED, out of GPU memory     [{"gpus": ["2"], "ended_at": 1700000060, "reason": "OutOfMemory"}]
 *     PLACE task 7 on GPU 0         a second element follows
 *
 * An attempt has a list of its interruptions: from SUSPENDING, MOVING or PAUSE until the task
 * continues, and the GPUs on which it continues.
 */
#include "daemon/attempt_list.h"

static double seconds_of(int64_t us)
{
    return (double)us / 1e6;
}

const char *attempt_end_reason(enum failure_class failure)
{
    static const char *const words[FAILURE_CLASSES] = {
        [FAILURE_NONE] = "None",
        [FAILURE_GPU_OOM] = "OutOfMemory",
        [FAILURE_HOST_OOM] = "HostOutOfMemory",
        [FAILURE_PROGRAM] = "NonZeroExitCode",
        [FAILURE_SIGNAL] = "RaisedSignal",
        [FAILURE_TIME_LIMIT] = "TimeLimit",
        [FAILURE_CANCELLED] = "Cancelled",
        [FAILURE_LAUNCH] = "Launch",
        [FAILURE_LOST] = "Lost",
        [FAILURE_GPU_FAULT] = "GpuFault",
        [FAILURE_MPS] = "MpsServer",
        [FAILURE_GPU_GONE] = "GpuGone",
        [FAILURE_DEPENDENCY] = "DependencyNeverSatisfied",
        [FAILURE_REQUEUED] = "Requeued",
        [FAILURE_STOPPED] = "Stopped",
    };
    return words[failure];
}

/* Sets "gpus" and "gpu_uuids". */
static void set_gpus(json_t *object, const struct cluster_view *view, const int *gpus, int n)
{
    json_t *labels = json_array(), *uuids = json_array();
    for (int i = 0; i < n; i++) {
        if (gpus[i] < 0 || gpus[i] >= view->n_gpus)
            continue;
        json_array_append_new(labels, json_string(view->gpus[gpus[i]].id.label));
        json_array_append_new(uuids, json_string(view->gpus[gpus[i]].id.uuid));
    }
    json_object_set_new(object, "gpus", labels);
    json_object_set_new(object, "gpu_uuids", uuids);
}

/* ---- interruptions ---- */

/* The last interruption, if it has not ended; NULL: the task computes. */
static json_t *open_interruption(const json_t *attempt)
{
    const json_t *list = json_object_get(attempt, "interruptions");
    size_t count = json_array_size(list);
    json_t *last = count ? json_array_get(list, count - 1) : NULL;
    return json_is_null(json_object_get(last, "until")) ? last : NULL;
}

static void end_interruption(json_t *attempt, int64_t time_us)
{
    json_t *open = open_interruption(attempt);
    if (open)
        json_object_set_new(open, "until", json_real(seconds_of(time_us)));
}

/* The first ones make room for later ones; the task's counts have all. */
static void begin_interruption(json_t *attempt, const char *kind, const struct event *event)
{
    json_t *list = json_object_get(attempt, "interruptions");
    end_interruption(attempt, event->time_us); /* a paused task may be suspended */
    if (!list) {                               /* an older daemon began the attempt */
        json_object_set_new(attempt, "interruptions", json_array());
        list = json_object_get(attempt, "interruptions");
    }
    if (json_array_size(list) >= ATTEMPT_INTERRUPTIONS_MAX)
        json_array_remove(list, 0);
    json_t *begun = json_pack("{s:s, s:s, s:f, s:n, s:n, s:n}", "kind", kind, "reason",
        yield_reason_name(event->yield.reason), "since", seconds_of(event->time_us), "until",
        "gpus", "gpu_uuids");
    if (event->yield.to_task)
        json_object_set_new(begun, "for", json_integer((json_int_t)event->yield.to_task));
    json_array_append_new(list, begun);
}

/* A failed move leaves the task suspended, or where it was. */
static void fail_interruption(json_t *attempt, const struct event *event)
{
    json_t *open = open_interruption(attempt);
    if (!open)
        return;
    json_object_set_new(open, "gpus", json_null());
    json_object_set_new(open, "gpu_uuids", json_null());
    if (event->suspension_failed.is_suspended)
        json_object_set_new(open, "kind", json_string("suspended"));
    else
        end_interruption(attempt, event->time_us);
}

static void note_interruption(
    json_t *attempt, const struct cluster_view *view, const struct event *event)
{
    json_t *open = open_interruption(attempt);
    switch (event->kind) {
    case EVENT_SUSPENDING:
        begin_interruption(attempt, "suspended", event);
        break;
    case EVENT_PAUSE:
        begin_interruption(attempt, "paused", event);
        break;
    case EVENT_MOVING:
        begin_interruption(attempt, "moved", event);
        set_gpus(open_interruption(attempt), view, event->yield.gpus, event->yield.n);
        break;
    case EVENT_RESUMING:
        if (open)
            set_gpus(open, view, event->yield.gpus, event->yield.n);
        break;
    case EVENT_RESUMED:
    case EVENT_MOVED:
    case EVENT_CONTINUE:
        end_interruption(attempt, event->time_us);
        break;
    case EVENT_SUSPENSION_FAILED:
        fail_interruption(attempt, event);
        break;
    default:
        break;
    }
}

/* ---- attempts ---- */

static json_t *begun_attempt(const struct cluster_view *view, const struct event *event)
{
    json_t *attempt = json_pack("{s:f, s:n, s:n, s:n, s:n, s:[]}", "started_at",
        seconds_of(event->time_us), "ended_at", "reason", "exit_code", "signal", "interruptions");
    set_gpus(attempt, view, event->place.gpus, event->place.n);
    return attempt;
}

static void end_attempt(json_t *attempt, int64_t time_us, const char *reason)
{
    end_interruption(attempt, time_us);
    json_object_set_new(attempt, "ended_at", json_real(seconds_of(time_us)));
    json_object_set_new(attempt, "reason", json_string(reason));
}

static void note_exit(json_t *attempt, const struct task *task, const struct event *event)
{
    const struct task_exit *exit = &event->exited;
    end_attempt(attempt, exit->ended_us ? exit->ended_us : event->time_us,
        attempt_end_reason(task && task->ending ? task->ending : exit->failure));
    if (exit->code >= 0)
        json_object_set_new(attempt, "exit_code", json_integer(exit->code));
    if (exit->signal)
        json_object_set_new(attempt, "signal", json_integer(exit->signal));
}

void attempt_list_note(json_t **list, const struct core *core, const struct event *event)
{
    size_t count = json_array_size(*list);
    json_t *last = count ? json_array_get(*list, count - 1) : NULL;
    if (event->kind == EVENT_PLACE && !*list)
        *list = json_array();
    if (event->kind == EVENT_PLACE)
        json_array_append_new(*list, begun_attempt(core_view(core), event));
    else if (event->kind == EVENT_UNSTARTED && last)
        end_attempt(last, event->time_us, "NotStarted");
    else if (event->kind == EVENT_EXITED && last)
        note_exit(last, core_task(core, event->task), event);
    else if (last)
        note_interruption(last, core_view(core), event);
}

static void show_wall_time(json_t *object, const char *key, int64_t ahead_us)
{
    const json_t *time = json_object_get(object, key);
    if (json_is_real(time))
        json_object_set_new(object, key, json_real(json_real_value(time) + seconds_of(ahead_us)));
}

json_t *attempt_list_copy(const json_t *list, int64_t ahead_us)
{
    json_t *copy = list ? json_deep_copy(list) : NULL, *attempt, *interruption;
    size_t i, k;
    json_array_foreach(copy, i, attempt) {
        show_wall_time(attempt, "started_at", ahead_us);
        show_wall_time(attempt, "ended_at", ahead_us);
        json_array_foreach(json_object_get(attempt, "interruptions"), k, interruption) {
            show_wall_time(interruption, "since", ahead_us);
            show_wall_time(interruption, "until", ahead_us);
        }
    }
    return copy ? copy : json_array();
}

void attempt_list_upgrade(json_t *record)
{
    json_t *count = json_object_get(record, "attempts");
    if (!json_is_integer(count))
        return;
    json_object_set(record, "attempt_count", count);
    json_object_set_new(record, "attempts", json_array());
}
