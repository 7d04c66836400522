/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon lists running tasks, then waiting ones, then ended ones. Between two pages a task may
 * change from one part of the list to another:
 *
 *     page 1:  1 RUNNING, 2 PENDING      then task 3 starts, and task 1 ends
 *     page 2:  4 PENDING, 1 COMPLETED
 *
 * Task 1 came twice: the first one counts. Task 3 is missing: if live tasks came in several pages,
 * the pages with running tasks are requested again at the end, and the tasks that have started
 * meanwhile are added to the running ones, before the others.
 *
 * An entry may be several waiting tasks of an array, "7_[0-9]". It counts as each of them: if 7_2
 * runs at the end, it is in the list already, and of an entry after 7_2 only the rest is added.
 */
#include "cli/task_pages.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_member.h"
#include "cli/session.h"
#include "taskfile/array_spec.h"

struct task_list {
    struct client *client;
    const char *path;
    json_t *reply, *tasks;
    json_t *seen;         /* an object whose keys are "12", or of a task of an array "7_2" */
    bool is_live_divided; /* a later page has tasks that have not ended */
};

/* Returns whether the key is new. */
static bool note_key(struct task_list *list, const char *key)
{
    bool is_new = !json_object_get(list->seen, key);
    json_object_set_new(list->seen, key, json_true());
    return is_new;
}

static bool note_index(struct task_list *list, const json_t *task, int index)
{
    char key[48];
    snprintf(key, sizeof key, "%.0f_%d", member_number(task, "array_id", 0), index);
    return note_key(list, key);
}

static void set_indices(json_t *entry, const struct array_spec *spec)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    array_indices_write(out, spec->indices, spec->count);
    fclose(out);
    json_object_set_new(entry, "array_indices", json_string(text));
    json_object_set_new(entry, "array_count", json_integer(spec->count));
    free(text);
}

/* Leaves those of the entry's tasks that are new. Returns whether there are any. */
static bool note_entry(struct task_list *list, json_t *entry)
{
    struct array_spec spec;
    int n_new = 0;
    if (array_spec_parse(member_text(entry, "array_indices", ""), NULL, &spec) < 0)
        return true;
    for (int i = 0; i < spec.count; i++)
        if (note_index(list, entry, spec.indices[i]))
            spec.indices[n_new++] = spec.indices[i];
    if (n_new < spec.count) {
        spec.count = n_new;
        set_indices(entry, &spec);
    }
    array_spec_fini(&spec);
    return n_new > 0;
}

/* Returns whether the task, or a task of the entry, is new. */
static bool note_task(struct task_list *list, json_t *task)
{
    const json_t *index = json_object_get(task, "array_index");
    char id[32];
    if (json_object_get(task, "array_count"))
        return note_entry(list, task);
    if (json_is_integer(index))
        return note_index(list, task, (int)json_integer_value(index));
    snprintf(id, sizeof id, "%.0f", member_number(task, "id", 0));
    return note_key(list, id);
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
    const json_t *next;
    json_t *task;
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
