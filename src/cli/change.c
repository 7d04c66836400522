/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc cancel`, `hold`, `release` and `update`: one POST to /v1/tasks/ID/VERB for each task that
 * is named. All tasks are tried; the exit code is that of the first error.
 *
 * Tasks are named by ids, or selected by options such as --user or a range: then the list of live
 * tasks is read first, and each that matches and that the verb can change is changed. They can be
 * thousands: those are cancelled, held and released by POST /v1/tasks/VERB with many ids, for which
 * the daemon writes its log once. An id may be a task (12), an array (12: all its tasks), or some
 * of its tasks (12_7, 12_[3-9]).
 */
#include "cli/change.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/array.h"
#include "base/units.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/task_view.h"
#include "cli/task_words.h"

/* Adds the task, or the array with the number of its tasks that changed, to `changed`. */
static void add_changed(const json_t *reply, json_t *changed)
{
    json_t *array = json_object_get(reply, "array");
    if (array)
        json_object_set(array, "changed", json_object_get(reply, "changed"));
    json_array_append(changed, array ? array : json_object_get(reply, "task"));
    const char *note = member_text(reply, "note", NULL);
    if (note)
        print_error("%s", note);
}

/* Returns the exit code of this request only: the caller continues with the other tasks. */
static int change_one(
    struct client *client, const char *verb, const json_t *body, const char *id, json_t *changed)
{
    char path[160];
    json_t *reply;
    snprintf(path, sizeof path, "/v1/tasks/%s/%s", id, verb);
    int code = session_call(client, "POST", path, body, &reply);
    if (code != EXIT_OK)
        return code;
    add_changed(reply, changed);
    json_decref(reply);
    return EXIT_OK;
}

/* Goes on after a task that could not be changed, but not after the connection broke: then the
 * other requests could not be sent either. */
static int change_each(
    struct client *client, const char *verb, const json_t *body, const json_t *ids, json_t *changed)
{
    int first = EXIT_OK;
    size_t i;
    json_t *id;
    json_array_foreach(ids, i, id) {
        int code = change_one(client, verb, body, json_string_value(id), changed);
        first = first == EXIT_OK ? code : first;
        if (code == EXIT_UNREACHABLE)
            break;
    }
    return first;
}

/* ---- many at once ---- */

enum { AT_ONCE = 1000 }; /* docs/protocol.md */

static bool can_change_many(const char *verb)
{
    return strcmp(verb, "cancel") == 0 || strcmp(verb, "hold") == 0 || strcmp(verb, "release") == 0;
}

/* Adds what one answer has, or prints the errors. */
static int add_results(const json_t *results, json_t *changed)
{
    int first = EXIT_OK;
    size_t i;
    json_t *result;
    json_array_foreach(results, i, result) {
        struct fault fault = {0};
        int status = (int)member_number(result, "status", 0);
        if (status / 100 == 2) {
            add_changed(result, changed);
            continue;
        }
        client_error(status, result, &fault);
        print_error("%s", fault.text);
        first = EXIT_REFUSED;
    }
    return first;
}

/* Changes the tasks from the first to before the last. */
static int change_part(struct client *client, const char *verb, const json_t *ids, size_t first,
    size_t last, json_t *changed)
{
    char path[80];
    json_t *part = json_array(), *reply;
    for (size_t i = first; i < last; i++)
        json_array_append(part, json_array_get(ids, i));
    json_t *body = json_pack("{s:o}", "tasks", part);
    snprintf(path, sizeof path, "/v1/tasks/%s", verb);
    int code = session_call(client, "POST", path, body, &reply);
    json_decref(body);
    if (code != EXIT_OK)
        return code;
    code = add_results(json_object_get(reply, "results"), changed);
    json_decref(reply);
    return code;
}

/* Prints in the order of the ids; but as the daemon does, the last tasks are cancelled and held
 * first, so that none of them is started in between. */
static int change_many(
    struct client *client, const char *verb, const json_t *ids, json_t *ret_changed)
{
    size_t n = json_array_size(ids), parts = (n + AT_ONCE - 1) / AT_ONCE;
    bool is_forward = strcmp(verb, "release") == 0;
    json_t *changed = json_array();
    int first = EXIT_OK, code = EXIT_OK;
    for (size_t i = 0; i < parts; i++)
        json_array_append_new(changed, json_array());
    for (size_t i = 0; i < parts && code != EXIT_UNREACHABLE; i++) {
        size_t part = is_forward ? i : parts - 1 - i, begin = part * AT_ONCE;
        code = change_part(client, verb, ids, begin, begin + AT_ONCE < n ? begin + AT_ONCE : n,
            json_array_get(changed, part));
        first = first == EXIT_OK ? code : first;
    }
    for (size_t i = 0; i < parts; i++)
        json_array_extend(ret_changed, json_array_get(changed, i));
    json_decref(changed);
    return first;
}

static bool is_held(const json_t *task)
{
    return strcmp(member_text(task, "reason", ""), "JobHeldUser") == 0;
}

/* "10 of 10 tasks held". */
static const char *verb_participle(const char *verb)
{
    static const struct {
        const char *verb, *participle;
    } words[] = {
        {"cancel", "cancelled"},
        {"hold", "held"},
        {"release", "released"},
        {"suspend", "suspended"},
        {"resume", "resumed"},
        {"update", "updated"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (strcmp(words[i].verb, verb) == 0)
            return words[i].participle;
    return verb;
}

/* "Task 12 CANCELLED", "Task 13 PENDING (JobHeldUser)", "Array 14: 7 of 9 tasks held". `details`:
 * what follows, or "". */
static void print_one(const json_t *task, const char *verb, const char *details)
{
    const char *state = member_text(task, "state", "?"), *note = "";
    const char *colon = *details ? ": " : "";
    char id[CELL_SIZE];
    if (json_object_get(task, "changed")) {
        printf("Array %.0f: %.0f of %.0f tasks %s%s", member_number(task, "id", 0),
            member_number(task, "changed", 0), member_number(task, "count", 0),
            verb_participle(verb), colon);
        print_safe(stdout, details);
        putchar('\n');
        return;
    }
    if (is_held(task))
        note = " (JobHeldUser)";
    else if (strcmp(state, "COMPLETING") == 0)
        note = " (its processes are being ended)";
    printf("Task %s %s%s%s", task_id_text(task, id, sizeof id), state, note, colon);
    print_safe(stdout, details);
    putchar('\n');
}

/* With --json one object for all of them, {"tasks": [...]}, also when there is only one. */
static void print_changed(const struct invocation *invocation, const char *verb,
    const char *details, const json_t *changed)
{
    size_t i;
    json_t *task;
    if (invocation->common[COMMON_JSON].number) {
        json_t *object = json_pack("{sO}", "tasks", changed);
        print_json(object);
        json_decref(object);
        return;
    }
    json_array_foreach(changed, i, task) {
        print_one(task, verb, details);
    }
}

/* ---- selection ---- */

const struct option_spec change_options[CHANGE_OPTIONS] = {
    [CHANGE_USER] = {.name = "user",
        .letter = 'u',
        .kind = OPTION_TEXT,
        .argument = "NAME",
        .help = "select the tasks of this user"},
    [CHANGE_MINE] = {.name = "mine",
        .kind = OPTION_FLAG,
        .help = "select your own tasks, all of them unless more is given"},
    [CHANGE_NAME] = {.name = "name",
        .letter = 'n',
        .kind = OPTION_TEXT,
        .argument = "NAME",
        .help = "select tasks of this name"},
    [CHANGE_STATE] = {.name = "state",
        .letter = 's',
        .kind = OPTION_TEXT,
        .argument = "STATE",
        .help = "select tasks in this state, such as PENDING, in capitals or not"},
};

/* "12-40" */
struct id_range {
    int64_t first, last;
};

static bool parse_range(const char *word, struct id_range *ret_range)
{
    char digits[24];
    size_t n = strcspn(word, "-");
    if (word[n] != '-' || n >= sizeof digits)
        return false;
    memcpy(digits, word, n);
    digits[n] = '\0';
    return parse_int64(digits, 1, INT64_MAX, &ret_range->first) == 0 &&
           parse_int64(word + n + 1, ret_range->first, INT64_MAX, &ret_range->last) == 0;
}

static bool selects_by_options(const struct invocation *invocation)
{
    const struct option_value *values = invocation->values;
    return invocation->command->options == change_options &&
           (values[CHANGE_USER].set || values[CHANGE_MINE].number || values[CHANGE_NAME].set ||
               values[CHANGE_STATE].set);
}

/* The tasks that have not ended, as far as the daemon selects them. */
static int get_live(const struct invocation *invocation, json_t **ret_reply)
{
    char path[1024] = "/v1/tasks", name[LOGIN_NAME_MAX];
    const struct option_value *values = invocation->values;
    if (selects_by_options(invocation) && values[CHANGE_MINE].number)
        query_add(path, sizeof path, "user", own_user_name(name, sizeof name));
    else if (selects_by_options(invocation) && values[CHANGE_USER].set)
        query_add(path, sizeof path, "user", values[CHANGE_USER].text);
    return session_get(invocation, path, ret_reply);
}

/* A selection skips tasks that cannot be held or released, such as a running one. */
static bool is_changeable(const json_t *task, const char *verb)
{
    if (strcmp(verb, "release") == 0)
        return is_held(task);
    return strcmp(verb, "hold") != 0 ||
           (strcmp(member_text(task, "state", ""), "PENDING") == 0 && !is_held(task));
}

static bool is_selected(const struct invocation *invocation, const json_t *task)
{
    const struct option_value *values = invocation->values;
    return (!values[CHANGE_NAME].set ||
               strcmp(values[CHANGE_NAME].text, member_text(task, "name", "")) == 0) &&
           (!values[CHANGE_STATE].set ||
               strcasecmp(values[CHANGE_STATE].text, member_text(task, "state", "")) == 0);
}

static void add_id(json_t *ids, const json_t *task)
{
    json_array_append(ids, json_object_get(task, "id"));
}

static void add_selected(
    const struct invocation *invocation, const char *verb, const json_t *tasks, json_t *ids)
{
    size_t i;
    json_t *task;
    json_array_foreach(tasks, i, task) {
        if (is_selected(invocation, task) && is_changeable(task, verb))
            add_id(ids, task);
    }
}

static void add_range(
    const struct id_range *range, const char *verb, const json_t *tasks, json_t *ids)
{
    size_t i;
    json_t *task;
    json_array_foreach(tasks, i, task) {
        double id = member_number(task, "id", 0);
        if (id >= (double)range->first && id <= (double)range->last && is_changeable(task, verb))
            add_id(ids, task);
    }
}

static const char *selectable_tasks(const char *verb)
{
    if (strcmp(verb, "release") == 0)
        return "held task";
    return strcmp(verb, "hold") == 0 ? "waiting task that is not held" : "task that has not ended";
}

/* The tasks that the command line names and selects. */
struct chosen {
    json_t *named;    /* texts for paths */
    json_t *selected; /* ids of live tasks */
};

static void chosen_free(struct chosen *chosen)
{
    json_decref(chosen->named);
    json_decref(chosen->selected);
}

/* Adds the tasks that options and ranges select. Returns EXIT_OK or another code. */
static int select_live(const struct invocation *invocation, const char *verb, struct chosen *chosen)
{
    json_t *reply, *ids = chosen->selected;
    int code = get_live(invocation, &reply);
    if (code != EXIT_OK)
        return code;
    const json_t *tasks = json_object_get(reply, "tasks");
    if (selects_by_options(invocation))
        add_selected(invocation, verb, tasks, ids);
    for (int i = 0; i < invocation->operand_count; i++) {
        struct id_range range;
        if (parse_range(invocation->operands[i], &range))
            add_range(&range, verb, tasks, ids);
    }
    json_decref(reply);
    if (json_array_size(ids) == 0) {
        print_error("no %s is selected", selectable_tasks(verb));
        if (selects_by_options(invocation) && invocation->values[CHANGE_USER].set)
            warn_of_unknown_user(invocation->values[CHANGE_USER].text);
    }
    return json_array_size(ids) + json_array_size(chosen->named) > 0 ? EXIT_OK : EXIT_REFUSED;
}

static int check_selection(const struct invocation *invocation)
{
    bool selects = selects_by_options(invocation);
    if (selects != (invocation->operand_count > 0))
        return EXIT_OK;
    print_error(selects ? "give either ids or --user, --mine, --name and --state"
                        : "missing argument: an ID, or --mine, --user, --name or --state");
    return EXIT_USAGE;
}

/* With EXIT_OK, `ret_chosen` is for chosen_free. */
static int choose_tasks(
    const struct invocation *invocation, const char *verb, struct chosen *ret_chosen)
{
    const char **words = calloc((size_t)invocation->operand_count + 1, sizeof *words);
    struct id_range range;
    int n = 0, n_ranges = 0;
    for (int i = 0; i < invocation->operand_count; i++) {
        bool is_range = parse_range(invocation->operands[i], &range);
        n_ranges += is_range;
        if (!is_range)
            words[n++] = invocation->operands[i];
    }
    bool selects = selects_by_options(invocation);
    *ret_chosen = (struct chosen){.selected = json_array()};
    int code = task_words_expand(words, n, &ret_chosen->named);
    free(words);
    if (code == EXIT_OK && (selects || n_ranges > 0)) {
        code = select_live(invocation, verb, ret_chosen);
    }
    if (code != EXIT_OK)
        chosen_free(ret_chosen);
    return code;
}

/* ---- the command ---- */

int change_tasks(const struct invocation *invocation, const char *verb)
{
    return change_tasks_with(invocation, verb, NULL, "");
}

static int change_chosen(struct client *client, const char *verb, const json_t *body,
    const struct chosen *chosen, json_t *changed)
{
    json_t *each = json_copy(chosen->named), *id;
    size_t i;
    if (!can_change_many(verb))
        json_array_foreach(chosen->selected, i, id) {
            json_array_append_new(
                each, json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(id)));
        }
    int first = change_each(client, verb, body, each, changed);
    json_decref(each);
    if (first != EXIT_UNREACHABLE && can_change_many(verb)) {
        int code = change_many(client, verb, chosen->selected, changed);
        first = first == EXIT_OK ? code : first;
    }
    return first;
}

int change_tasks_with(
    const struct invocation *invocation, const char *verb, const json_t *body, const char *details)
{
    struct client *client;
    struct chosen chosen;
    int code = check_selection(invocation);
    if (code == EXIT_OK)
        code = choose_tasks(invocation, verb, &chosen);
    if (code != EXIT_OK)
        return code;
    code = session_open(invocation, &client);
    if (code == EXIT_OK) {
        json_t *changed = json_array();
        code = change_chosen(client, verb, body, &chosen, changed);
        print_changed(invocation, verb, details, changed);
        json_decref(changed);
        client_close(client);
    }
    chosen_free(&chosen);
    return code;
}
