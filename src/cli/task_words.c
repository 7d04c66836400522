/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A word is an id; with "_" an index of an array, or several in brackets. The daemon knows which
 * task has which index, so that these are checked for their form only.
 */
#include "cli/task_words.h"

#include <stdio.h>
#include <string.h>

#include "base/json_member.h"
#include "base/units.h"
#include "cli/print.h"
#include "cli/session.h"
#include "taskfile/array_spec.h"

static int refuse_word(const char *word)
{
    print_error(
        "%.80s: not a task id such as 12, 12_7 or 12_[3-9]: `colloc queue` lists the ids", word);
    return EXIT_USAGE;
}

/* Does it begin with an id? Returns what follows; NULL: no. */
static const char *skip_id(const char *word)
{
    char digits[24];
    size_t n = strspn(word, "0123456789");
    int64_t id;
    if (n == 0 || n >= sizeof digits)
        return NULL;
    memcpy(digits, word, n);
    digits[n] = '\0';
    return parse_int64(digits, 1, INT64_MAX, &id) == 0 ? word + n : NULL;
}

/* "12_[3-9]" */
static int expand_brackets(const char *word, const char *open, json_t *ids)
{
    char list[512], text[64];
    struct fault fault = {0};
    struct array_spec spec;
    size_t size = strlen(open);
    if (size < 3 || size >= sizeof list || open[size - 1] != ']')
        return refuse_word(word);
    memcpy(list, open + 1, size - 2);
    list[size - 2] = '\0';
    if (strchr(list, '%') || array_spec_parse(list, &fault, &spec) < 0)
        return refuse_word(word);
    for (int i = 0; i < spec.count; i++) {
        snprintf(text, sizeof text, "%.*s%d", (int)(open - word), word, spec.indices[i]);
        json_array_append_new(ids, json_string(text));
    }
    array_spec_fini(&spec);
    return EXIT_OK;
}

static int expand_word(const char *word, json_t *ids)
{
    const char *rest = skip_id(word);
    if (!rest || (*rest && *rest != '_'))
        return refuse_word(word);
    if (*rest == '_' && rest[1] == '[')
        return expand_brackets(word, rest + 1, ids);
    bool is_index = *rest && rest[1] && rest[1 + strspn(rest + 1, "0123456789")] == '\0';
    if (*rest && !is_index)
        return refuse_word(word);
    json_array_append_new(ids, json_string(word));
    return EXIT_OK;
}

int task_words_expand(const char *const *words, int count, json_t **ret_ids)
{
    json_t *ids = json_array();
    int code = EXIT_OK;
    for (int i = 0; i < count && code == EXIT_OK; i++)
        code = expand_word(words[i], ids);
    if (code == EXIT_OK)
        *ret_ids = ids;
    else
        json_decref(ids);
    return code;
}

/* A number is the id itself. 12_7 is looked up by the daemon, which knows the id of an array's
 * task. */
int task_word_find(struct client *client, const char *word, int64_t *ret_id)
{
    char path[160];
    json_t *reply, *ids;
    if (!strchr(word, '_'))
        return parse_task_id(word, ret_id);
    int code = task_words_expand(&word, 1, &ids);
    if (code != EXIT_OK)
        return code;
    bool is_one = json_array_size(ids) == 1;
    snprintf(path, sizeof path, "/v1/tasks/%s", json_string_value(json_array_get(ids, 0)));
    json_decref(ids);
    if (!is_one)
        return refuse_word(word);
    code = session_call(client, "GET", path, NULL, &reply);
    if (code != EXIT_OK)
        return code;
    *ret_id = (int64_t)member_number(json_object_get(reply, "task"), "id", 0);
    json_decref(reply);
    return EXIT_OK;
}

/* The tasks of an array have ids one after the other, in the order of their indices. */
static void add_array(const json_t *array, json_t *tasks)
{
    struct fault fault = {0};
    struct array_spec spec;
    double id = member_number(array, "id", 0), first = member_number(array, "first", 0);
    char shown[64];
    if (array_spec_parse(member_text(array, "indices", ""), &fault, &spec) < 0)
        return;
    for (int i = 0; i < spec.count; i++) {
        snprintf(shown, sizeof shown, "%.0f_%d", id, spec.indices[i]);
        json_array_append_new(
            tasks, json_pack("{s:I, s:s}", "id", (json_int_t)first + i, "shown", shown));
    }
    array_spec_fini(&spec);
}

int task_words_find_all(
    struct client *client, const char *const *words, int count, json_t **ret_tasks)
{
    json_t *ids, *word, *tasks = json_array();
    size_t i;
    int code = task_words_expand(words, count, &ids), first = EXIT_OK;
    *ret_tasks = NULL;
    if (code != EXIT_OK) {
        json_decref(tasks);
        return code;
    }
    json_array_foreach(ids, i, word) {
        char path[160], shown[64];
        json_t *reply;
        snprintf(path, sizeof path, "/v1/tasks/%s", json_string_value(word));
        code = session_call(client, "GET", path, NULL, &reply);
        first = first == EXIT_OK || code == EXIT_UNREACHABLE ? code : first;
        if (code == EXIT_UNREACHABLE)
            break;
        if (code != EXIT_OK)
            continue;
        const json_t *array = json_object_get(reply, "array"),
                     *task = json_object_get(reply, "task");
        if (array)
            add_array(array, tasks);
        else
            json_array_append_new(tasks, json_pack("{s:O, s:s}", "id", json_object_get(task, "id"),
                                             "shown", task_id_text(task, shown, sizeof shown)));
        json_decref(reply);
    }
    json_decref(ids);
    *ret_tasks = tasks;
    return first;
}

/* "12"; "14_3" for a task of an array; "14_[3-99%5]" for those that wait, of which at most 5 run at
 * once. */
const char *task_id_text(const json_t *task, char *text, size_t size)
{
    double array = member_number(task, "array_id", 0),
           limit = member_number(task, "array_limit", 0);
    const char *indices = member_text(task, "array_indices", NULL);
    if (array == 0)
        snprintf(text, size, "%.0f", member_number(task, "id", 0));
    else if (!indices)
        snprintf(text, size, "%.0f_%.0f", array, member_number(task, "array_index", 0));
    else if (strlen(indices) > 24) /* chosen: a column that leaves room for others */
        snprintf(text, size, "%.0f_[%.20s...]", array, indices);
    else if (limit > 0)
        snprintf(text, size, "%.0f_[%s%%%.0f]", array, indices, limit);
    else
        snprintf(text, size, "%.0f_[%s]", array, indices);
    return text;
}
