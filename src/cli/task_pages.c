/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon lists tasks that run, then those that wait, then those that have ended. Between two
 * pages a task may change from one part of the list to another:
 *
 *     page 1:  1 RUNNING, 2 PENDING      then task 3 starts, and task 1 ends
 *     page 2:  4 PENDING, 1 COMPLETED
 *
 * Task 1 came twice: what came first counts. Task 3 is missing: where tasks that have not ended
 * came in several pages, the pages with those that run are asked for again at the end, and the
 * tasks that have started meanwhile are added where running tasks are, before the others.
 */
#include "cli/task_pages.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/session.h"
#include "cli/task_view.h"

struct task_list {
    struct client *client;
    const char *path;
    json_t *reply, *tasks;
    json_t *seen;         /* an object whose keys are the ids of the tasks */
    bool is_live_divided; /* a later page has tasks that have not ended */
};

/* Returns whether the task is new. The waiting tasks of an array that share an entry always are:
 * its id is only that of the first. */
static bool note_task(struct task_list *list, const json_t *task)
{
    char id[32];
    snprintf(id, sizeof id, "%.0f", member_number(task, "id", 0));
    bool is_new = !json_object_get(list->seen, id) || json_object_get(task, "array_count");
    json_object_set_new(list->seen, id, json_true());
    return is_new;
}

static void copy_warning(struct task_list *list, const json_t *page)
{
    if (!json_object_get(list->reply, "warning"))
        json_object_set(list->reply, "warning", json_object_get(page, "warning"));
}

/* `next`: NULL: the first page. */
static int read_page(const struct task_list *list, const char *next, json_t **ret_page)
{
    char path[1200];
    snprintf(path, sizeof path, "%s", list->path);
    if (next)
        query_add(path, sizeof path, "after", next);
    return session_call(list->client, "GET", path, NULL, ret_page);
}

static int add_page(struct task_list *list, const char *next)
{
    json_t *page, *task;
    size_t i;
    int code = read_page(list, next, &page);
    if (code != EXIT_OK)
        return code;
    json_array_foreach(json_object_get(page, "tasks"), i, task) {
        list->is_live_divided |= json_is_null(json_object_get(task, "ended_at"));
        if (note_task(list, task))
            json_array_append(list->tasks, task);
    }
    copy_warning(list, page);
    json_object_del(list->reply, "next");
    json_object_set(list->reply, "next", json_object_get(page, "next"));
    json_decref(page);
    return EXIT_OK;
}

static bool has_started(const json_t *task)
{
    return task && json_is_null(json_object_get(task, "ended_at")) &&
           strcmp(member_text(task, "state", "PENDING"), "PENDING") != 0;
}

/* Adds the tasks of the page that have started meanwhile. Returns whether the next page may have
 * more of them. */
static bool add_started_of(struct task_list *list, const json_t *page, size_t *n_added)
{
    const json_t *tasks = json_object_get(page, "tasks");
    json_t *task;
    size_t i;
    json_array_foreach(tasks, i, task) {
        if (has_started(task) && note_task(list, task))
            json_array_insert(list->tasks, (*n_added)++, task);
    }
    copy_warning(list, page);
    return json_is_string(json_object_get(page, "next")) &&
           has_started(json_array_get(tasks, json_array_size(tasks) - 1));
}

static int add_started(struct task_list *list)
{
    json_t *page = NULL;
    size_t n_added = 0;
    bool is_more = true;
    int code = EXIT_OK;
    while (is_more) {
        json_t *before = page;
        code = read_page(list, member_text(before, "next", NULL), &page);
        json_decref(before);
        if (code != EXIT_OK)
            return code;
        is_more = add_started_of(list, page, &n_added);
    }
    json_decref(page);
    return code;
}

int task_pages_follow(struct client *client, const char *path, json_t *reply)
{
    struct task_list list = {client, path, reply, json_object_get(reply, "tasks"), NULL, false};
    const json_t *next, *task;
    size_t i;
    int code = EXIT_OK;
    if (!json_is_string(json_object_get(reply, "next")))
        return EXIT_OK;
    list.seen = json_object();
    json_array_foreach(list.tasks, i, task) {
        note_task(&list, task);
    }
    while (code == EXIT_OK && json_is_string(next = json_object_get(reply, "next")))
        code = add_page(&list, json_string_value(next));
    if (code == EXIT_OK && list.is_live_divided)
        code = add_started(&list);
    json_decref(list.seen);
    return code;
}
