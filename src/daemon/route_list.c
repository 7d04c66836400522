/* GET /v1/tasks: the list is written as it grows, since it may be long. */
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/units.h"
#include "daemon/routes.h"

#define MOMENT_MAX_S 1e12

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
    attempts_upgrade((json_t *)(uintptr_t)record);
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
            if (of_round != round || (state && strcasecmp(record_state(daemon, task), state) != 0))
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
        if (strcasecmp(task_state_word((enum task_state)state), word) == 0) {
            *ret_state = (enum task_state)state;
            return 0;
        }
    }
    return -EINVAL;
}

static bool is_live_word(const char *word)
{
    return strcasecmp(word, "PENDING") == 0 || strcasecmp(word, "RUNNING") == 0 ||
           strcasecmp(word, "COMPLETING") == 0;
}

/* So that a limit counts this user's tasks; a name that the system no longer knows still finds its
 * tasks by name. */
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

/* Query parameter `name`, seconds since 1970, into microseconds; as it was where there is none. */
static int read_moment(struct api_request *request, const char *name, int64_t *ret_us)
{
    const char *text = api_request_query(request, name);
    double seconds;
    if (!text)
        return 0;
    if (parse_double(text, 0, MOMENT_MAX_S, &seconds) < 0) {
        api_reply_error(request, 400, "%s=%.40s: must be seconds since 1970", name, text);
        return -EINVAL;
    }
    *ret_us = (int64_t)(seconds * 1e6);
    return 0;
}

void route_list(void *context, struct api_request *request)
{
    struct daemon *daemon = context;
    const char *state = api_request_query(request, "state"),
               *limit = api_request_query(request, "limit");
    struct list list = {.request = request, .user = api_request_query(request, "user")};
    struct store_ended_filter filter = {.limit = 1000};
    struct fault fault = {0};
    if (!state)
        state = "live";
    bool all = strcasecmp(state, "all") == 0, ended = strcasecmp(state, "ended") == 0,
         live = strcasecmp(state, "live") == 0;
    bool one_done = find_done_state(state, &filter.state) == 0;
    if (!(all || live || ended || one_done || is_live_word(state))) {
        api_reply_error(request, 400,
            "state=%.40s: must be live, ended, all or a state such as RUNNING", state);
        return;
    }
    if (limit && parse_int64(limit, 1, 1000000, &filter.limit) < 0) {
        api_reply_error(request, 400, "limit=%.20s: must be from 1 to 1000000", limit);
        return;
    }
    if (read_moment(request, "since", &filter.since_wall_us) < 0 ||
        read_moment(request, "until", &filter.until_wall_us) < 0)
        return;
    if (!list_begin(&list)) {
        api_reply(request, 500, NULL);
        return;
    }
    filter_by_user(list.user, &filter);
    if (!ended && !one_done)
        list_live(daemon, &list, all || live ? NULL : state);
    if ((all || ended || one_done) &&
        store_list_ended(daemon->store, &filter, on_ended, &list, &fault) < 0) {
        free(list_end(&list));
        api_reply_error(request, 500, "%s", fault.text);
        return;
    }
    api_reply_text(request, 200, list_end(&list));
}
