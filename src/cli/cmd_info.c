/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc info`: version and settings of the daemon (GET /v1/info). It prints whatever members the
 * answer has, objects indented below their name: a daemon of another version is shown whole.
 */
#include <stdio.h>

#include "cli/print.h"
#include "cli/session.h"

/* An object has its members below it, two columns further in; any other value is one line. */
static void print_member(const char *key, const json_t *value, int indent)
{
    const char *name;
    json_t *member;
    printf("%*s%-*s ", indent, "", 20 - indent, key);
    if (json_is_string(value)) {
        print_safe(stdout, json_string_value(value));
    } else if (!json_is_object(value)) {
        json_dumpf(value, stdout, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(10));
    }
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
