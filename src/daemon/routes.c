/* The routes of docs/protocol.md, but for submit. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "daemon/daemon.h"
#include "policy/policy.h"

#define LOG_CHUNK      (256u << 10)
#define WAIT_DEFAULT_S 30.0
#define WAIT_MAX_S     60.0

static bool may_touch(const struct api_request *request, uint32_t owner)
{
    uid_t uid = api_request_peer(request).uid;
    return uid == 0 || uid == owner;
}

static uint32_t owner_of(const json_t *record)
{
    return (uint32_t)json_integer_value(json_object_get(record, "uid"));
}

/* Takes a record and gives what the asker may see of it: a line of a task's log is its owner's. NULL without memory. */
static json_t *for_asker(const struct api_request *request, json_t *record)
{
    const char *evidence = json_string_value(json_object_get(record, "evidence"));
    const char *text = json_string_value(json_object_get(record, "reason_text"));
    if (!evidence || may_touch(request, owner_of(record)))
        return record;
    json_t *shown = json_copy(record);
    json_object_set_new(shown, "evidence", json_null());
    if (text && strstr(text, evidence))
        json_object_set_new(shown, "reason_text", json_string(""));
    json_decref(record);
    return shown;
}

static void reply_task(struct api_request *request, json_t *record)
{
    json_t *shown = for_asker(request, record);
    api_reply(request, 200, shown ? json_pack("{s:o}", "task", shown) : NULL);
}

static void reply_no_task(struct api_request *request, uint64_t id)
{
    api_reply_error(request, 404, "there is no task %llu", (unsigned long long)id);
}

/* The record of a task, live or ended; NULL after having answered that there is none, or that the log cannot be read.
 */
static json_t *find_record(struct daemon *daemon, struct api_request *request, uint64_t id)
{
    const struct task *task = core_task(daemon->core, id);
    struct fault fault = {0};
    json_t *record = NULL;
    if (task) {
        record = record_task(daemon, task);
        if (!record)
            api_reply(request, 500, NULL);
        return record;
    }
    int r = store_get_ended(daemon->store, id, &fault, &record);
    if (r == STORE_NONE)
        reply_no_task(request, id);
    else if (r < 0)
        api_reply_error(request, 500, "%s", fault.text);
    return r == 0 ? record : NULL;
}

/* ---- lists ---- */

/* Written as it grows: a long queue takes five times the memory as JSON objects. */
struct list {
    FILE *out;
    char *text;
    size_t size;
    bool any, failed;
    const struct api_request *request;
    const char *user;
};

static bool list_begin(struct list *list)
{
    list->out = open_memstream(&list->text, &list->size);
    if (list->out)
        fputs("{\"tasks\":[", list->out);
    return list->out;
}

static void list_add(struct list *list, json_t *record)
{
    const char *user = json_string_value(json_object_get(record, "user"));
    if (!record || (list->user && (!user || strcmp(user, list->user) != 0)))
        return;
    if (list->any)
        fputc(',', list->out);
    json_t *shown = for_asker(list->request, json_incref(record));
    list->failed |= json_dumpf(shown, list->out, API_JSON_FLAGS) < 0;
    json_decref(shown);
    list->any = true;
}

/* The text, or NULL when memory was out. */
static char *list_end(struct list *list)
{
    fputs("]}", list->out);
    list->failed |= ferror(list->out) != 0;
    if (fclose(list->out) == 0 && !list->failed)
        return list->text;
    free(list->text);
    return NULL;
}

static int on_ended(void *context, uint64_t id, const json_t *record)
{
    list_add(context, (json_t *)(uintptr_t)record);
    return 0;
}

/* A held task keeps its place. */
static bool is_in_main_queue(const struct task *task)
{
    return task->state == TASK_QUEUED || task->state == TASK_HELD;
}

static void list_live(struct daemon *daemon, struct list *list, const char *state)
{
    /* running ones first, then the recovery queue, then the main queue, each in order */
    for (int round = 0; round < 3; round++) {
        for (const struct task *task = core_next_task(daemon->core, 0); task;
             task = core_next_task(daemon->core, task->id)) {
            int of_round = is_in_main_queue(task) ? 2 : task->state == TASK_RECOVERING;
            if (of_round != round || (state && strcmp(task_state_word(task->state), state) != 0))
                continue;
            json_t *record = record_task(daemon, task);
            list_add(list, record);
            json_decref(record);
        }
    }
}

static int find_done_state(const char *word, enum task_state *ret_state)
{
    for (int state = TASK_COMPLETED; state < TASK_STATES; state++) {
        if (strcmp(task_state_word((enum task_state)state), word) == 0) {
            *ret_state = (enum task_state)state;
            return 0;
        }
    }
    return -EINVAL;
}

static bool is_live_word(const char *word)
{
    return strcmp(word, "PENDING") == 0 || strcmp(word, "RUNNING") == 0 || strcmp(word, "COMPLETING") == 0;
}

/* So that a limit counts this user's tasks; a name that the system no longer knows still finds its tasks by name. */
static void filter_by_user(const char *name, struct store_ended_filter *filter)
{
    struct passwd entry, *found = NULL;
    char space[4096];
    int64_t uid;
    if (name && getpwnam_r(name, &entry, space, sizeof space, &found) == 0 && found)
        uid = found->pw_uid;
    else if (!name || parse_int64(name, 0, UINT32_MAX, &uid) < 0)
        return;
    filter->of_uid = true;
    filter->uid = (uint32_t)uid;
}

static void route_list(void *context, struct api_request *request)
{
    struct daemon *daemon = context;
    const char *state = api_request_query(request, "state"), *limit = api_request_query(request, "limit");
    struct list list = {.request = request, .user = api_request_query(request, "user")};
    struct store_ended_filter filter = {.limit = 1000};
    struct fault fault = {0};
    if (!state)
        state = "live";
    bool all = strcmp(state, "all") == 0, ended = strcmp(state, "ended") == 0, live = strcmp(state, "live") == 0;
    bool one_done = find_done_state(state, &filter.state) == 0;
    if (!(all || live || ended || one_done || is_live_word(state))) {
        api_reply_error(request, 400, "state=%.40s: must be live, ended, all or a state such as RUNNING", state);
        return;
    }
    if (limit && parse_int64(limit, 1, 1000000, &filter.limit) < 0) {
        api_reply_error(request, 400, "limit=%.20s: must be from 1 to 1000000", limit);
        return;
    }
    if (!list_begin(&list)) {
        api_reply(request, 500, NULL);
        return;
    }
    filter_by_user(list.user, &filter);
    if (!ended && !one_done)
        list_live(daemon, &list, all || live ? NULL : state);
    if ((all || ended || one_done) && store_list_ended(daemon->store, &filter, on_ended, &list, &fault) < 0) {
        free(list_end(&list));
        api_reply_error(request, 500, "%s", fault.text);
        return;
    }
    api_reply_text(request, 200, list_end(&list));
}

/* ---- one task ---- */

struct story {
    struct daemon *daemon;
    json_t *events;
    json_t *submit_detail;
};

static json_t *event_text(const struct story *story, const struct event *event, const json_t *detail)
{
    const struct cluster_view *view = core_view(story->daemon->core);
    char text[512] = "";
    size_t used = 0;
    switch (event->kind) {
    case EVENT_PLACE:
        used = (size_t)snprintf(text, sizeof text, "GPU");
        for (int i = 0; i < event->place.n && used < sizeof text; i++)
            used +=
                (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? "," : " ",
                                 event->place.gpus[i] < view->n_gpus ? view->gpus[event->place.gpus[i]].id.label : "?");
        if (used < sizeof text)
            snprintf(text + used, sizeof text - used, ", %s%s", sharing_name(event->place.sharing),
                     event->place.whole ? ", to itself" : "");
        break;
    case EVENT_STARTED:
        if (json_object_get(detail, "sharing"))
            snprintf(text, sizeof text, "by streams: no MPS to be had");
        break;
    case EVENT_EXITED: {
        const char *evidence = json_string_value(json_object_get(detail, "evidence"));
        bool has_evidence = evidence && *evidence;
        snprintf(text, sizeof text, "%s%s%.400s", failure_name(event->exited.failure), has_evidence ? ": " : "",
                 has_evidence ? evidence : "");
        break;
    }
    case EVENT_END:
        snprintf(text, sizeof text, "%s", task_state_word(event->end));
        break;
    default:
        break;
    }
    json_t *string = json_string(text);
    return string ? string : json_string("");
}

static int on_story(void *context, const struct event *event, int64_t wall_us, const json_t *detail)
{
    struct story *story = context;
    if (event->kind == EVENT_SUBMIT && !story->submit_detail)
        story->submit_detail = json_incref((json_t *)(uintptr_t)detail);
    json_array_append_new(story->events, json_pack("{s:f, s:s, s:o}", "at", (double)wall_us / 1e6, "event",
                                                   event_name(event->kind), "text", event_text(story, event, detail)));
    return 0;
}

static void add_script(struct daemon *daemon, json_t *record, const json_t *detail)
{
    const char *key = json_string_value(json_object_get(detail, "script"));
    char *script;
    size_t size;
    if (key && store_get_blob(daemon->store, key, NULL, &script, &size) == 0) {
        json_object_set_new(record, "script", json_stringn(script, size));
        free(script);
    }
}

/* What only the owner and root may see. */
static void add_private(struct daemon *daemon, json_t *record, uint64_t id)
{
    static const char *const kept[] = {"arguments", "cwd", "summary_name", "batch", "optimizer",
                                       "precision", "seq", "output",       "error"};
    struct story story = {.daemon = daemon, .events = json_array()};
    store_task_events(daemon->store, id, policy_find, on_story, &story, NULL);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        json_t *value = json_object_get(story.submit_detail, kept[i]);
        json_object_set_new(record, kept[i], value ? json_incref(value) : json_null());
    }
    add_script(daemon, record, story.submit_detail);
    json_object_set_new(record, "events", story.events);
    json_decref(story.submit_detail);
}

static void route_show(void *context, struct api_request *request)
{
    struct daemon *daemon = context;
    uint64_t id = api_request_id(request);
    json_t *record = find_record(daemon, request, id);
    if (!record)
        return;
    if (may_touch(request, owner_of(record)))
        add_private(daemon, record, id);
    reply_task(request, record);
}

/* ---- waiting for the end ---- */

struct waiter {
    struct waiter *next;
    struct daemon *daemon;
    struct api_request *request;
    uint64_t task;
    uv_timer_t timer;
};

static void on_waiter_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void unlink_waiter(struct daemon *daemon, struct waiter *waiter)
{
    for (struct waiter **at = &daemon->waiters; *at; at = &(*at)->next) {
        if (*at == waiter) {
            *at = waiter->next;
            break;
        }
    }
    uv_close((uv_handle_t *)&waiter->timer, on_waiter_closed);
}

static void on_waited_enough(uv_timer_t *timer)
{
    struct waiter *waiter = timer->data;
    struct daemon *daemon = waiter->daemon;
    json_t *record = find_record(daemon, waiter->request, waiter->task);
    if (record)
        reply_task(waiter->request, record);
    unlink_waiter(daemon, waiter);
    daemon_serve_soon(daemon);
}

void waiters_tell(struct daemon *daemon, uint64_t task, const json_t *record)
{
    for (struct waiter *waiter = daemon->waiters, *next; waiter; waiter = next) {
        next = waiter->next;
        if (task && waiter->task != task)
            continue;
        if (record)
            reply_task(waiter->request, json_incref((json_t *)(uintptr_t)record));
        unlink_waiter(daemon, waiter);
        daemon_serve_soon(daemon);
    }
}

static void route_wait(void *context, struct api_request *request)
{
    struct daemon *daemon = context;
    uint64_t id = api_request_id(request);
    const char *timeout = api_request_query(request, "timeout_s");
    double seconds = WAIT_DEFAULT_S;
    if (timeout && parse_double(timeout, 0, 1e9, &seconds) < 0) {
        api_reply_error(request, 400, "timeout_s=%.40s: is no number of seconds", timeout);
        return;
    }
    struct waiter *waiter = core_task(daemon->core, id) ? calloc(1, sizeof *waiter) : NULL;
    if (!waiter) {
        json_t *record = find_record(daemon, request, id);
        if (record)
            reply_task(request, record);
        return;
    }
    waiter->daemon = daemon;
    waiter->request = request;
    waiter->task = id;
    uv_timer_init(&daemon->loop, &waiter->timer);
    waiter->timer.data = waiter;
    seconds = seconds < WAIT_MAX_S ? seconds : WAIT_MAX_S;
    uv_timer_start(&waiter->timer, on_waited_enough, (uint64_t)(seconds * 1000), 0);
    waiter->next = daemon->waiters;
    daemon->waiters = waiter;
}

/* ---- logs ---- */

/*
 * Opens a log. One that the user named is opened as that user, so that nobody reads through us what is not his: file
 * access ids are this thread's own, and the daemon gave up its supplementary groups when it started.
 */
static int open_log(const char *path, bool named_by_user, uid_t uid, gid_t gid)
{
    if (!named_by_user)
        return open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int old_gid = setfsgid(gid), old_uid = setfsuid(uid);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int error = errno;
    setfsuid((uid_t)old_uid);
    setfsgid((gid_t)old_gid);
    errno = error;
    return fd;
}

static void log_path(struct daemon *daemon, const json_t *record, const json_t *detail, const char *stream,
                     int64_t attempt, char *path, size_t size, bool *ret_named)
{
    uint64_t id = (uint64_t)json_integer_value(json_object_get(record, "id"));
    bool is_stderr = strcmp(stream, "stderr") == 0;
    const char *output = json_string_value(json_object_get(detail, "output"));
    const char *error = json_string_value(json_object_get(detail, "error"));
    const char *named = is_stderr && error ? error : output;
    char folder[600];
    *ret_named = named != NULL && !(is_stderr && !error && !output);
    if (*ret_named) {
        struct attempt_spec spec = {.task_id = (int64_t)id};
        spec.cwd = json_string_value(json_object_get(detail, "cwd"));
        if (spec_output_path(&spec, named, path, size) == 0)
            return;
    }
    attempt_folder(daemon, id, (int)attempt, folder, sizeof folder);
    snprintf(path, size, "%s/%s", folder, stream);
}

/* `size`: of the log; 0 without one. */
static void reply_log(struct api_request *request, int fd, int64_t size, int64_t offset, int64_t attempt, bool ended)
{
    char *data = malloc(LOG_CHUNK);
    ssize_t n = data && offset < size ? pread(fd, data, LOG_CHUNK, offset) : 0;
    if (!data || n < 0) {
        api_reply_error(request, 500, "the log cannot be read: %s", strerror(data ? errno : ENOMEM));
        free(data);
        return;
    }
    char next_text[24], attempt_text[24];
    snprintf(next_text, sizeof next_text, "%lld", (long long)offset + n);
    snprintf(attempt_text, sizeof attempt_text, "%lld", (long long)attempt);
    const struct api_header headers[] = {{"Colloc-Next-Offset", next_text},
                                         {"Colloc-Attempt", attempt_text},
                                         {"Colloc-Ended", ended && n == 0 ? "true" : "false"},
                                         {NULL, NULL}};
    api_reply_bytes(request, "application/octet-stream", data, (size_t)n, headers);
    free(data);
}

static bool is_done(const json_t *record)
{
    return !json_is_null(json_object_get(record, "ended_at"));
}

static void serve_log(struct daemon *daemon, struct api_request *request, const json_t *record, const json_t *detail,
                      const char *stream, int64_t offset, int64_t attempt)
{
    char path[5000];
    bool named;
    int64_t attempts = json_integer_value(json_object_get(record, "attempts"));
    bool last = attempt == attempts;
    log_path(daemon, record, detail, stream, attempt, path, sizeof path, &named);
    gid_t gid = (gid_t)json_integer_value(json_object_get(detail, "gid"));
    int fd = attempt ? open_log(path, named, owner_of(record), gid) : -1;
    struct stat status = {0};
    if (fd < 0 && attempt && errno != ENOENT) {
        api_reply_error(request, errno == EACCES ? 403 : 500, "%s: %s", path, strerror(errno));
    } else if (fd >= 0 && (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))) {
        api_reply_error(request, 409, "%s: is no regular file", path);
    } else {
        reply_log(request, fd, status.st_size, offset, attempt, !last || is_done(record));
    }
    if (fd >= 0)
        close(fd);
}

static void route_log(void *context, struct api_request *request)
{
    struct daemon *daemon = context;
    const char *stream = api_request_query(request, "stream"), *offset_text = api_request_query(request, "offset");
    const char *attempt_text = api_request_query(request, "attempt");
    int64_t offset = 0, attempt;
    uint64_t id = api_request_id(request);
    json_t *record = find_record(daemon, request, id);
    if (!record)
        return;
    attempt = json_integer_value(json_object_get(record, "attempts"));
    int64_t attempts = attempt;
    if (!stream)
        stream = "stdout";
    if (!may_touch(request, owner_of(record)))
        api_reply_error(request, 403, "task %llu is not yours", (unsigned long long)id);
    else if ((strcmp(stream, "stdout") != 0 && strcmp(stream, "stderr") != 0) ||
             (offset_text && parse_int64(offset_text, 0, INT64_MAX, &offset) < 0) ||
             (attempt_text && parse_int64(attempt_text, 1, attempts, &attempt) < 0))
        api_reply_error(request, 400, "stream is stdout or stderr, offset a number, attempt 1 to %lld",
                        (long long)attempts);
    else {
        struct story story = {.daemon = daemon, .events = json_array()};
        store_task_events(daemon->store, id, policy_find, on_story, &story, NULL);
        serve_log(daemon, request, record, story.submit_detail, stream, offset, attempt);
        json_decref(story.events);
        json_decref(story.submit_detail);
    }
    json_decref(record);
}

/* ---- changes ---- */

static void change(struct daemon *daemon, struct api_request *request, enum event_kind kind, const char *verb)
{
    uint64_t id = api_request_id(request);
    json_t *record = find_record(daemon, request, id);
    if (!record)
        return;
    uint32_t owner = owner_of(record);
    const char *state = json_string_value(json_object_get(record, "state"));
    const struct task *task = core_task(daemon->core, id);
    struct event event = daemon_event(daemon, kind, id);
    json_t *detail = json_pack("{s:I}", "by_uid", (json_int_t)api_request_peer(request).uid);
    if (!may_touch(request, owner))
        api_reply_error(request, 403, "task %llu is not yours", (unsigned long long)id);
    else if (daemon->log_broken)
        api_reply_error(request, 507, "the event log cannot be written at the moment");
    else if (kind == EVENT_CANCEL && task && task->ending)
        reply_task(request, json_incref(record));
    else if (!task || daemon_feed(daemon, &event, detail) != 0)
        api_reply_error(request, 409, "task %llu is %s: it cannot be %s", (unsigned long long)id, state, verb);
    else if (daemon->log_broken)
        api_reply_error(request, 507, "task %llu will be %s, but the event log cannot be written at the moment",
                        (unsigned long long)id, verb);
    else {
        json_t *now = find_record(daemon, request, id);
        if (now)
            reply_task(request, now);
    }
    json_decref(detail);
    json_decref(record);
}

static void route_cancel(void *context, struct api_request *request)
{
    change(context, request, EVENT_CANCEL, "cancelled");
}

static void route_hold(void *context, struct api_request *request)
{
    change(context, request, EVENT_HOLD, "held");
}

static void route_release(void *context, struct api_request *request)
{
    change(context, request, EVENT_RELEASE, "released");
}

/* ---- the rest ---- */

static void route_gpus(void *context, struct api_request *request)
{
    api_reply(request, 200, record_gpus(context));
}

static void route_metrics(void *context, struct api_request *request)
{
    char *text = metrics_text(context);
    if (text)
        api_reply_bytes(request, "text/plain; version=0.0.4; charset=utf-8", text, strlen(text), NULL);
    else
        api_reply(request, 500, NULL);
    free(text);
}

static void route_info(void *context, struct api_request *request)
{
    api_reply(request, 200, record_info(context));
}

static json_t *average(int64_t sum_us, int64_t n)
{
    return n ? json_real((double)sum_us / 1e6 / (double)n) : json_null();
}

static void route_stats(void *context, struct api_request *request)
{
    struct daemon *daemon = context;
    struct store_totals totals;
    struct fault fault = {0};
    if (store_get_totals(daemon->store, &fault, &totals) < 0) {
        api_reply_error(request, 500, "%s", fault.text);
        return;
    }
    int64_t ended = 0;
    for (int state = TASK_COMPLETED; state < TASK_STATES; state++)
        ended += totals.tasks[state];
    api_reply(request, 200,
              json_pack("{s:I, s:I, s:I, s:I, s:f, s:o, s:o, s:o, s:o, s:f}", "tasks_completed",
                        (json_int_t)totals.tasks[TASK_COMPLETED], "tasks_failed",
                        (json_int_t)(ended - totals.tasks[TASK_COMPLETED]), "oom", (json_int_t)totals.oom_count,
                        "recovered", (json_int_t)totals.recovered, "total_s",
                        (double)(totals.last_ended_wall_us - totals.first_submitted_wall_us) / 1e6, "avg_wait_s",
                        average(totals.wait_us, ended), "avg_exec_s", average(totals.exec_us, ended), "avg_jct_s",
                        average(totals.jct_us, ended), "mean_smact",
                        daemon->smact_n ? json_real(daemon->smact_sum / (double)daemon->smact_n) : json_null(),
                        "energy_mj", daemon->energy_j / 1e6));
}

const struct api_route daemon_routes[] = {
    {"POST", "/v1/tasks", route_submit},
    {"GET", "/v1/tasks", route_list},
    {"GET", "/v1/tasks/{id}", route_show},
    {"GET", "/v1/tasks/{id}/wait", route_wait},
    {"GET", "/v1/tasks/{id}/log", route_log},
    {"POST", "/v1/tasks/{id}/cancel", route_cancel},
    {"POST", "/v1/tasks/{id}/hold", route_hold},
    {"POST", "/v1/tasks/{id}/release", route_release},
    {"GET", "/v1/gpus", route_gpus},
    {"GET", "/v1/info", route_info},
    {"GET", "/v1/metrics", route_metrics},
    {"GET", "/v1/stats", route_stats},
    {NULL, NULL, NULL},
};
