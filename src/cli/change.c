/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc cancel`, `hold`, `release` and `update` of tasks. All tasks are tried; the exit code is
 * that of the first error.
 *
 * Tasks are named by ids, or selected by options such as --user or a range: then the list of live
 * tasks is read first, and each that matches and that the verb can change is changed. An id may be
 * a task (12), an array (12: all its tasks), or some of its tasks (12_7, 12_[3-9]).
 *
 * One task is changed by POST /v1/tasks/ID/VERB. They can be thousands: several are cancelled, held
 * and released by POST /v1/tasks/VERB with many ids, for which the daemon writes its log once.
 */
#include "cli/change.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/units.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/session_once.h"
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

/* ---- one request for one id ---- */

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

/* ---- one request for many ids ---- */

enum { AT_ONCE = 1000 }; /* docs/protocol.md */

static bool can_change_many(const char *verb)
{
    return strcmp(verb, "cancel") == 0 || strcmp(verb, "hold") == 0 || strcmp(verb, "release") == 0;
}

/* 12, or "12_7" */
static json_t *listed_id(const char *text)
{
    int64_t id;
    return parse_int64(text, 1, INT64_MAX, &id) == 0 ? json_integer(id) : json_string(text);
}

/* Does the daemon not know the request, because it is older? */
static bool is_unknown_request(int r, int status)
{
    return r == 0 && (status == 404 || status == 405);
}

/* Requests the ids from the first to before the last. Each has its answer in `answers` then: a
 * result; false: the whole request was refused, which was printed; null: it has none. */
static int request_part(struct client *client, const char *verb, const json_t *ids, size_t first,
    size_t last, json_t *answers)
{
    struct fault fault = {0};
    char path[80];
    int status = 0;
    json_t *part = json_array(), *reply = NULL;
    for (size_t i = first; i < last; i++)
        json_array_append_new(part, listed_id(json_string_value(json_array_get(ids, i))));
    json_t *body = json_pack("{s:o}", "tasks", part);
    snprintf(path, sizeof path, "/v1/tasks/%s", verb);
    int r = client_request(client, "POST", path, body, &fault, &status, &reply);
    json_decref(body);
    bool is_unknown = is_unknown_request(r, status);
    int code = is_unknown ? EXIT_OK : session_exit_code(r, status, &fault, &reply);
    const json_t *results = json_object_get(reply, "results");
    for (size_t i = first; i < last && !is_unknown; i++) {
        json_t *result = json_array_get(results, i - first);
        json_array_set_new(answers, i, code != EXIT_OK ? json_false() : json_incref(result));
    }
    json_decref(reply);
    return code;
}

/* As the daemon does, the last tasks are cancelled and held first, so that none of them is started
 * in between. */
static int request_many(struct client *client, const char *verb, const json_t *ids, json_t *answers)
{
    size_t n = json_array_size(ids), parts = (n + AT_ONCE - 1) / AT_ONCE;
    bool is_forward = strcmp(verb, "release") == 0;
    int first = EXIT_OK, code = EXIT_OK;
    for (size_t i = 0; i < parts && code != EXIT_UNREACHABLE; i++) {
        size_t begin = (is_forward ? i : parts - 1 - i) * AT_ONCE;
        code = request_part(
            client, verb, ids, begin, begin + AT_ONCE < n ? begin + AT_ONCE : n, answers);
        first = first == EXIT_OK || code == EXIT_UNREACHABLE ? code : first;
    }
    return first;
}

/* Adds the result of one id, or prints its error. */
static int add_result(const json_t *result, json_t *changed)
{
    struct fault fault = {0};
    int status = (int)member_number(result, "status", 0);
    if (status / 100 == 2) {
        add_changed(result, changed);
        return EXIT_OK;
    }
    client_error(status, result, &fault);
    print_error("%s", fault.text);
    return EXIT_REFUSED;
}

/* A list has no arrays, so that an id that is no task's may be one. */
static bool needs_own_request(const json_t *answer)
{
    return json_is_null(answer) || member_number(answer, "status", 0) == 404;
}

/*
 * Changes all, and prints in the order of the ids. Several are changed by few requests, if the
 * daemon can do that; each id that these leave open has another request. After a task that could
 * not be changed the others are, but not after the connection broke: then the other requests could
 * not be sent either.
 */
static int change_ids(
    struct client *client, const char *verb, const json_t *body, const json_t *ids, json_t *changed)
{
    json_t *answers = json_array();
    size_t n = json_array_size(ids);
    int first = EXIT_OK, code = EXIT_OK;
    for (size_t i = 0; i < n; i++)
        json_array_append_new(answers, json_null());
    if (n > 1 && can_change_many(verb))
        first = code = request_many(client, verb, ids, answers);
    for (size_t i = 0; i < n; i++) {
        const json_t *answer = json_array_get(answers, i);
        int outcome = EXIT_OK;
        if (!needs_own_request(answer))
            outcome = json_is_false(answer) ? EXIT_OK : add_result(answer, changed);
        else if (code != EXIT_UNREACHABLE)
            outcome = code = change_one(
                client, verb, body, json_string_value(json_array_get(ids, i)), changed);
        first = first == EXIT_OK ? outcome : first;
    }
    json_decref(answers);
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
        {"requeue", "requeued"},
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

/* What its state does not show of what the change does, or "". */
static const char *state_note(const json_t *task, const char *verb)
{
    const char *state = member_text(task, "state", "?");
    if (is_held(task))
        return " (JobHeldUser)";
    if (strcmp(state, "COMPLETING") == 0)
        return " (its processes are being ended)";
    if (strcmp(state, "SUSPENDED") != 0)
        return "";
    if (strcmp(verb, "resume") == 0)
        return " (it goes on when a GPU has room for it)";
    return strcmp(verb, "requeue") == 0 ? " (it is being ended, and waits again)" : "";
}

/* "Task 12 CANCELLED", "Task 13 PENDING (JobHeldUser)", "Array 14: 7 of 9 tasks held". `details`:
 * what follows, or "". */
static void print_one(const json_t *task, const char *verb, const char *details)
{
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
    printf("Task %s %s%s%s", task_id_text(task, id, sizeof id), member_text(task, "state", "?"),
        state_note(task, verb), colon);
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
    [CHANGE_USER] = OPTION(
        "user", TEXT, "NAME", .letter = 'u', .help = "select the tasks of this user"),
    [CHANGE_MINE] = FLAG_OPTION(
        "mine", .help = "select your own tasks, all of them unless more is given"),
    [CHANGE_NAME] = OPTION(
        "name", TEXT, "NAME", .letter = 'n', .help = "select tasks of this name"),
    [CHANGE_STATE] = OPTION("state", TEXT, "STATE", .letter = 's',
        .help = "select tasks in this state, such as PENDING, in capitals or not"),
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
    if (strcmp(verb, "requeue") == 0)
        return strcmp(member_text(task, "state", ""), "PENDING") != 0;
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
    json_array_append_new(ids, json_sprintf("%.0f", member_number(task, "id", 0)));
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
    if (strcmp(verb, "requeue") == 0)
        return "running task";
    return strcmp(verb, "hold") == 0 ? "waiting task that is not held" : "task that has not ended";
}

/* Adds the tasks that options and ranges select. Returns EXIT_OK or another code. */
static int select_live(const struct invocation *invocation, const char *verb, json_t *ids)
{
    size_t n_named = json_array_size(ids);
    json_t *reply;
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
    /* scancel says nothing then: it may be the last line of a script with `set -e` */
    bool may_be_none = invocation->is_slurm && selects_by_options(invocation);
    if (json_array_size(ids) == n_named) {
        if (!may_be_none)
            print_error("no %s is selected", selectable_tasks(verb));
        if (selects_by_options(invocation) && invocation->values[CHANGE_USER].set)
            warn_of_unknown_user(invocation->values[CHANGE_USER].text);
    }
    return json_array_size(ids) > 0 || may_be_none ? EXIT_OK : EXIT_REFUSED;
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

/* `ret_ids`: texts such as "12" and "12_7"; with EXIT_OK, for the caller to release. */
static int choose_tasks(const struct invocation *invocation, const char *verb, json_t **ret_ids)
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
    int code = task_words_expand(words, n, ret_ids);
    free(words);
    if (code != EXIT_OK || (!selects_by_options(invocation) && n_ranges == 0))
        return code;
    code = select_live(invocation, verb, *ret_ids);
    if (code != EXIT_OK)
        json_decref(*ret_ids);
    return code;
}

/* ---- the command ---- */

int change_tasks(const struct invocation *invocation, const char *verb)
{
    return change_tasks_with(invocation, verb, NULL, "");
}

int change_tasks_with(
    const struct invocation *invocation, const char *verb, const json_t *body, const char *details)
{
    CLEANUP(cleanup_client_close) struct client *client = NULL;
    json_t *ids;
    int code = check_selection(invocation);
    if (code == EXIT_OK)
        code = choose_tasks(invocation, verb, &ids);
    if (code != EXIT_OK)
        return code;
    code = session_open(invocation, &client);
    if (code == EXIT_OK) {
        json_t *changed = json_array();
        code = change_ids(client, verb, body, ids, changed);
        print_changed(invocation, verb, details, changed);
        json_decref(changed);
    }
    json_decref(ids);
    return code;
}
