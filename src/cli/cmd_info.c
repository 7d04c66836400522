/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc info`: version and settings of the daemon (GET /v1/info). It prints whatever members the
 * answer has, objects indented below their name: a daemon of another version is shown whole. The
 * end of a name says the unit of its number, which then stands beside the value:
 *
 *     "memory_available_mib": 24105.12891      memory available     23.5 GiB
 *     "settle_max_s": 60.0                     settle max           60 s
 *     "log_loss": null                         log loss             none
 */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cli/print.h"
#include "cli/session_once.h"
#include "cli/task_view.h"

/* Short times are settings, such as 0.5 s. */
static const char *duration_text(const json_t *seconds, char cell[CELL_SIZE])
{
    if (json_number_value(seconds) >= 3600)
        return seconds_text(seconds, cell);
    snprintf(cell, CELL_SIZE, "%.10g s", json_number_value(seconds));
    return cell;
}

static const struct unit {
    const char *suffix;
    const char *(*text)(const json_t *number, char cell[CELL_SIZE]);
} units[] = {{"_mib", mib_text}, {"_s", duration_text}, {"_at", moment_text}};

/* Returns the unit of a number that is called `key`; NULL: none. */
static const struct unit *find_unit(const char *key)
{
    size_t size = strlen(key);
    for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
        size_t n = strlen(units[i].suffix);
        if (size > n && strcmp(key + size - n, units[i].suffix) == 0)
            return &units[i];
    }
    return NULL;
}

/* Writes the name as words, without `unit` (may be NULL). Returns `label`. */
static const char *label_text(const char *key, const struct unit *unit, char label[CELL_SIZE])
{
    size_t n = strlen(key) - (unit ? strlen(unit->suffix) : 0);
    snprintf(label, CELL_SIZE, "%.*s", (int)n, key);
    for (char *at = label; (at = strchr(at, '_'));)
        *at = ' ';
    return label;
}

/* An empty list is an empty text, too, where the daemon writes its items with commas. */
static bool is_empty(const json_t *value)
{
    if (json_is_string(value))
        return !*json_string_value(value);
    return (json_is_array(value) || json_is_object(value)) && json_array_size(value) == 0 &&
           json_object_size(value) == 0;
}

/* An object has its members below it, two columns further in; any other value is one line. */
static void print_member(const char *key, const json_t *value, int indent)
{
    const char *name;
    json_t *member;
    const struct unit *unit = find_unit(key);
    char label[CELL_SIZE], cell[CELL_SIZE];
    printf("%*s%-*s ", indent, "", 20 - indent, label_text(key, unit, label));
    if (json_is_null(value) || is_empty(value))
        fputs("none", stdout);
    else if (json_is_number(value) && unit)
        fputs(unit->text(value, cell), stdout);
    else if (!json_is_object(value))
        print_safe(stdout, scalar_text(value, cell));
    putchar('\n');
    json_object_foreach((json_t *)value, name, member) {
        print_member(name, member, indent + 2);
    }
}

static int run(const struct invocation *invocation)
{
    const char *key;
    json_t *reply, *member;
    int code = session_get(invocation, "/v1/info", &reply);
    if (code != EXIT_OK)
        return code;
    if (invocation->common[COMMON_JSON].number) {
        print_json(reply);
    } else {
        json_object_foreach(reply, key, member) {
            print_member(key, member, 0);
        }
    }
    json_decref(reply);
    return EXIT_OK;
}

const struct command command_info = {
    .name = "info",
    .usage = "[OPTION...]",
    .summary = "show the daemon's version and settings",
    .description = "Prints the version of collocd, its placement policy, sharing, estimator and "
                   "all other settings.",
    .run = run,
};
